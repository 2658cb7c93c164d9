// `_core.ParamStatuses`: records DeepSpeed's assignments to Parameter.ds_status.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "memory_level.h"
#include "session.h"
#include "shardscope/shardscope.h"
#include "wrapper.h"

namespace shardscope::python {

namespace nb = nanobind;

/// For each parameter of ZeRO stage 3: its status, its current gather, and its bytes while it is gathered.
/// The coordinator's hooks set the context of the next changes (`module`, `gather`, causes). In C++ because
/// every parameter's status changes four times a micro-step.
///
/// Keeps the sums `gathered_bytes` (available) and `coming_bytes` (in flight); several parameters may be
/// views of one storage, so the storages alone could not distinguish them. Requires the GIL.
class ParamStatuses {
 public:
  std::uint32_t module = SHARDSCOPE_NO_ID;            ///< whose fetch or release is in progress
  std::uint32_t entering = SHARDSCOPE_NO_ID;          ///< whose pre-hook runs
  std::uint32_t gather = SHARDSCOPE_NO_ID;            ///< the gather being issued
  std::uint8_t cause_in = SHARDSCOPE_CAUSE_FETCH;     ///< of changes to in flight
  std::uint8_t cause_out = SHARDSCOPE_CAUSE_RELEASE;  ///< of changes to not available
  std::int64_t available_elems = 0, gathered_bytes = 0, coming_bytes = 0;

  /// Parameters of `session`, which must outlive this: they are added and removed with the run's models.
  /// The next three are the values of DeepSpeed's enumeration.
  /// `toggle`: the Switch of the hook.
  void follow(SessionState& session, nb::object not_available, nb::object in_flight, nb::object available,
              nb::object toggle) {
    session_ = &session;
    toggle_ = std::move(toggle);
    values_ = {std::move(not_available), std::move(in_flight), std::move(available)};
    rows_.clear();
    available_elems = gathered_bytes = coming_bytes = 0;
  }
  /// MemoryLevels to which byte changes are reported; None: not reported.
  void report(nb::object gathered, nb::object coming) {
    levels_ = {std::move(gathered), std::move(coming)};
    gathered_level_ = levels_[0].is_none() ? nullptr : &nb::cast<MemoryLevel&>(levels_[0]);
    coming_level_ = levels_[1].is_none() ? nullptr : &nb::cast<MemoryLevel&>(levels_[1]);
  }

  /// `param` was assigned `value`. Ignores parameters of models that are not described.
  void changed(nb::handle param, nb::handle value) {
    const std::uint32_t number = session_ != nullptr ? session_->params.of(param) : SHARDSCOPE_NO_ID;
    if (number == SHARDSCOPE_NO_ID) return;
    const std::uint8_t status = code_of(value);
    const std::uint8_t before = status_of(number);
    if (status == before) return;
    // Python code runs first: another thread may change a status meanwhile, and with it the rows.
    std::int64_t elem_bytes = number < rows_.size() ? rows_[number].elem_bytes : 0;
    if (elem_bytes == 0) elem_bytes = nb::cast<std::int64_t>(param.attr("element_size")());
    std::uint8_t cause = cause_out;
    if (status != SHARDSCOPE_NOT_AVAILABLE) {
      const bool persistent = before == SHARDSCOPE_NOT_AVAILABLE && gather == SHARDSCOPE_NO_ID &&
                              nb::cast<bool>(param.attr("ds_persist"));
      cause = persistent ? std::uint8_t{SHARDSCOPE_CAUSE_PERSISTENT} : cause_in;
    }
    Row& row = row_of(number);
    row.elem_bytes = elem_bytes;
    row.status = status;
    count_bytes(row, before);
    if (before == SHARDSCOPE_NOT_AVAILABLE) available_elems += row.elems;
    if (status == SHARDSCOPE_NOT_AVAILABLE) available_elems -= row.elems;
    const std::uint32_t brought_by = row.gather;
    if (status == SHARDSCOPE_NOT_AVAILABLE) row.gather = SHARDSCOPE_NO_ID;
    shardscope_param_status(status == SHARDSCOPE_IN_FLIGHT ? SHARDSCOPE_LANE_GATHER : SHARDSCOPE_LANE_COMPUTE,
                            status, cause, number, module, brought_by, row.elems, available_elems);
  }

  /// Whether status_of() equals DeepSpeed's: every assignment is recorded.
  [[nodiscard]] bool follows() const { return session_ != nullptr && switch_is_on(toggle_.ptr()); }
  [[nodiscard]] std::uint8_t status_of(std::uint32_t number) {
    return number < rows_.size() ? rows_[number].status : std::uint8_t{SHARDSCOPE_NOT_AVAILABLE};
  }
  [[nodiscard]] std::uint32_t gather_of(std::uint32_t number) {
    return number < rows_.size() ? rows_[number].gather : SHARDSCOPE_NO_ID;
  }
  /// Bytes of the whole parameter; 0 if its status never changed.
  [[nodiscard]] std::int64_t bytes_of(std::uint32_t number) const {
    return number < rows_.size() ? rows_[number].elems * rows_[number].elem_bytes : 0;
  }
  /// Parameter `number` is gathered by gather `id` until it is released. No effect if none are followed.
  void gathered_by(std::uint32_t number, std::uint32_t id) {
    if (session_ != nullptr) row_of(number).gather = id;
  }

 private:
  struct Row {
    std::uint8_t status = SHARDSCOPE_NOT_AVAILABLE;
    std::uint32_t gather = SHARDSCOPE_NO_ID;
    std::int64_t elems = 0, elem_bytes = 0;
  };

  [[nodiscard]] std::uint8_t code_of(nb::handle value) const {
    for (std::uint8_t code = 0; code < values_.size(); ++code)
      if (value.is(values_[code])) return code;
    throw std::runtime_error("a status that is none of NOT_AVAILABLE, INFLIGHT and AVAILABLE");
  }

  Row& row_of(std::uint32_t number) {
    while (rows_.size() <= number) {
      const auto elems = session_->elems(static_cast<std::uint32_t>(rows_.size()));
      rows_.emplace_back().elems = elems;
    }
    return rows_[number];
  }

  void count_bytes(const Row& row, std::uint8_t before) {
    const std::int64_t bytes = row.elems * row.elem_bytes;
    const auto held = [&](std::uint8_t status) { return (row.status == status) - (before == status); };
    // Decreases first, so that the sum never exceeds its true maximum.
    if (before == SHARDSCOPE_IN_FLIGHT) move(coming_bytes, coming_level_, held(SHARDSCOPE_IN_FLIGHT) * bytes);
    move(gathered_bytes, gathered_level_, held(SHARDSCOPE_AVAILABLE) * bytes);
    if (before != SHARDSCOPE_IN_FLIGHT) move(coming_bytes, coming_level_, held(SHARDSCOPE_IN_FLIGHT) * bytes);
  }
  static void move(std::int64_t& sum, MemoryLevel* level, std::int64_t bytes) {
    if (bytes == 0) return;
    sum += bytes;
    if (level != nullptr) level->add(bytes);
  }

  SessionState* session_ = nullptr;  ///< lives as long as the interpreter
  std::array<nb::object, 3> values_;
  nb::object toggle_;
  std::array<nb::object, 2> levels_;  ///< the owners of the next two
  MemoryLevel *gathered_level_ = nullptr, *coming_level_ = nullptr;
  std::vector<Row> rows_;  ///< by parameter's number
};

void add_param_statuses(nb::module_& module);

}  // namespace shardscope::python
