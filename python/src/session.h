// What hooks in C++ read and set of `shardscope._session.session`.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>

#include "attribute.h"
#include "open_spans.h"
#include "shardscope/shardscope.h"

namespace shardscope::python {

/// The number that a table, id(object) -> number, has for the object; SHARDSCOPE_NO_ID: none.
inline std::uint32_t number_in(nb::handle table, nb::handle object) {
  const nb::object key = nb::steal(PyLong_FromVoidPtr(object.ptr()));
  if (!key.is_valid()) throw nb::python_error();
  PyObject* number = PyDict_GetItemWithError(table.ptr(), key.ptr());
  if (number != nullptr) return nb::cast<std::uint32_t>(nb::handle(number));
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return SHARDSCOPE_NO_ID;
}

class Session {
 public:
  explicit Session(nb::object session) : session_(std::move(session)) {}

  [[nodiscard]] bool started() const { return started_.is_true(session_); }
  /// Work is queued for a GPU: a stream waits, the host does not.
  [[nodiscard]] bool on_device() const { return on_device_.is_true(session_); }
  [[nodiscard]] bool in_micro_step() const { return in_micro_step_.is_true(session_); }
  [[nodiscard]] std::uint32_t micro_step() const { return micro_step_.as<std::uint32_t>(session_); }
  [[nodiscard]] OpenSpans& spans() const { return nb::cast<OpenSpans&>(spans_.of(session_)); }
  [[nodiscard]] std::uint32_t module(nb::handle module) const {
    return number_in(modules_.of(session_), module);
  }
  [[nodiscard]] std::uint32_t param(nb::handle param) const { return number_in(params_.of(session_), param); }
  [[nodiscard]] std::int64_t elems(std::uint32_t param) const {
    return nb::cast<std::int64_t>(param_elems_.of(session_)[param]);
  }
  /// How often a model has been described: what is cached by module may differ afterwards.
  [[nodiscard]] std::size_t models() const { return nb::len(names_.of(session_)); }

  /// Ends what collectives are complete by now.
  void poll() const {
    if (unfinished_.is_true(session_)) (void)poll_.call(session_);
  }
  void wait_for(nb::handle work, nb::handle ended) const {
    unfinished_.of(session_).attr("append")(nb::make_tuple(work, ended));
  }
  /// A collective is issued now.
  void issued() const {
    if (!until_issued_.of(session_).is_none()) (void)issued_.call(session_);
  }

  /// (lane, gather or bucket, its Parts): what the next collectives are for. None: nothing is known.
  [[nodiscard]] nb::object purpose() const { return purpose_.of(session_); }
  void purpose(nb::handle purpose) const { purpose_.set(session_, purpose); }
  void purpose_served() const {
    purpose(nb::none());
    poll();
  }
  /// The lane that all-reduces of this framework have, None: none of their own.
  [[nodiscard]] nb::object all_reduce_lane() const { return all_reduce_lane_.of(session_); }

  [[nodiscard]] std::uint32_t next_gather() const {
    const std::uint32_t gather = gathers_.as<std::uint32_t>(session_) + 1;
    gathers_.set(session_, nb::int_(gather));
    return gather;
  }
  [[nodiscard]] std::uint32_t next_bucket() const {
    const auto bucket = buckets_.as<std::uint32_t>(session_);
    buckets_.set(session_, nb::int_(bucket + 1));
    return bucket;
  }
  /// The number of the next collective of all ranks.
  [[nodiscard]] std::uint32_t next_sequence() const {
    const auto sequence = sequence_.as<std::uint32_t>(session_);
    sequence_.set(session_, nb::int_(sequence + 1));
    return sequence;
  }

 private:
  nb::object session_;
  Attribute started_{"started"}, on_device_{"on_device"}, in_micro_step_{"in_micro_step"},
      micro_step_{"micro_step"}, spans_{"spans"}, modules_{"modules"}, params_{"params"},
      param_elems_{"param_elems"}, names_{"names"}, unfinished_{"unfinished"}, poll_{"poll"},
      until_issued_{"until_issued"}, issued_{"issued"}, purpose_{"purpose"},
      all_reduce_lane_{"all_reduce_lane"}, gathers_{"gathers"}, buckets_{"buckets"}, sequence_{"sequence"};
};

}  // namespace shardscope::python
