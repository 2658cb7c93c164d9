// `_core.Buckets`: buckets of gradients, opened with their first gradient, flushed for a reason, numbered in
// order of opening.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "gate.h"
#include "parts.h"
#include "session.h"
#include "shardscope/shardscope.h"

namespace shardscope::python {

/// The buckets of one framework. A key distinguishes buckets that are open at the same time, usually by the
/// type of their elements.
class Buckets {
 public:
  /// `session` must outlive this.
  explicit Buckets(SessionState& session) : session_(session) {}

  std::uint32_t trigger = SHARDSCOPE_NO_ID;  ///< parameter whose gradient became ready last
  bool epilogue = false;                     ///< whether flushes happen at the end of a backward
  nb::object coming = nb::none();            ///< that parameter itself

  void comes(nb::handle param) {
    trigger = session_.params.of(param);
    coming = nb::borrow(param);
  }
  void came() {
    trigger = SHARDSCOPE_NO_ID;
    coming = nb::none();
  }

  /// Id of the open bucket of this key; opens one if there is none.
  std::uint32_t of(nb::handle key, std::uint32_t buffer) {
    PyObject* found = PyDict_GetItemWithError(open_.ptr(), key.ptr());
    if (found != nullptr) return nb::cast<std::uint32_t>(nb::handle(found));
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    const std::uint32_t number = next(buffer);
    open_[key] = number;
    return number;
  }

  /// The number of a new bucket, which is opened.
  std::uint32_t next(std::uint32_t buffer) {
    const std::uint32_t number = session_.buckets++;
    shardscope_bucket_open(number, buffer);
    return number;
  }

  /// Adds the gradient of `param`; `bucket_elems`: size of the bucket afterwards.
  void add(nb::handle key, std::uint32_t param, std::int64_t elems, std::int64_t bucket_elems,
           std::uint32_t buffer) {
    shardscope_bucket_add(of(key, buffer), param, elems, bucket_elems);
  }

  /// A bucket filled by all its parameters at once, whose reduction is issued next. `parts`: Parts.
  void whole(nb::object parts, std::uint8_t reason) {
    const auto& all = nb::cast<const Parts&>(parts);
    const std::uint32_t number = next(0);
    all.fill(number);
    (void)pass_gate(SHARDSCOPE_GATE_BUCKET, number);
    shardscope_bucket_flush(reason, number, trigger, static_cast<std::uint32_t>(all.size()), all.elems());
    session_.purpose = Purpose{SHARDSCOPE_LANE_REDUCE, number, std::move(parts)};
  }

  /// Passes the gate, emits the flush and sets the purpose of the following reduction. `reason`: none if it
  /// follows from the size or from the end of a backward.
  std::uint32_t flush(nb::handle key, nb::handle parts, std::int64_t elems, bool too_large,
                      std::optional<std::uint8_t> reason) {
    const std::uint32_t number = of(key, 0);
    flush_open(number, parts, elems, too_large, reason);
    if (PyDict_DelItem(open_.ptr(), key.ptr()) < 0) throw nb::python_error();
    return number;
  }
  /// The same for a bucket of next().
  void flush_open(std::uint32_t number, nb::handle parts, std::int64_t elems, bool too_large,
                  std::optional<std::uint8_t> reason) {
    (void)pass_gate(SHARDSCOPE_GATE_BUCKET, number);
    const auto own = static_cast<std::uint8_t>(epilogue                      ? SHARDSCOPE_FLUSH_EPILOGUE
                                               : too_large                   ? SHARDSCOPE_FLUSH_EXTRA_LARGE
                                               : trigger == SHARDSCOPE_NO_ID ? SHARDSCOPE_FLUSH_BOUNDARY
                                                                             : SHARDSCOPE_FLUSH_FULL);
    shardscope_bucket_flush(reason.value_or(own), number, trigger, static_cast<std::uint32_t>(nb::len(parts)),
                            elems);
    session_.purpose = Purpose{SHARDSCOPE_LANE_REDUCE, number, nb::borrow(parts)};
  }

 private:
  SessionState& session_;
  nb::dict open_;  ///< key -> number
};

void add_buckets(nanobind::module_& module);

}  // namespace shardscope::python
