// `_core.SessionState`: the state of `shardscope._session.session`, the only instance, that hooks use.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "number_table.h"
#include "open_spans.h"
#include "shardscope/shardscope.h"

namespace shardscope::python {

/// Purpose of the next collectives. `parts`: Parts, or an empty tuple after the first collective.
struct Purpose {
  std::uint8_t lane;
  std::uint32_t id;  ///< of the gather or bucket
  nb::object parts;
};

/// A collective whose Work has no future. `on_host`: of its tensors. `returned`: its call was synchronous and
/// has returned, whatever the Work reports. `silent`: set when such a Work does not report it. Later ones of
/// the kind are then None: a Work keeps its buffers alive, which the framework would use again.
struct Unfinished {
  nb::object work, ended;
  bool on_host, returned;
  std::shared_ptr<bool> silent;
};

/// Numbers of elements of parameters.
struct ElemCounts {
  std::vector<std::int64_t> all;
};

/// Adjacent in memory and not attributes of a Python object, each of which takes several cache lines that a
/// matrix product has just evicted. Requires the GIL.
class SessionState {
 public:
  bool started = false;    ///< whether events are recorded
  bool keeping = false;    ///< collectives are kept for the run, which has not started yet
  bool on_device = false;  ///< work is queued for a GPU: streams wait, the host does not
  bool in_micro_step = false;
  std::optional<std::uint8_t> phase;  ///< SHARDSCOPE_PHASE_... that is open
  std::uint32_t step = 0, micro_step = 0;
  std::uint32_t gathers = 0, buckets = 0, sequence = 0;
  std::uint32_t apart = 0;     ///< collectives so far in groups without a description
  std::uint32_t models = 0;    ///< number of described models: caches by module may change with it
  std::int64_t available = 0;  ///< elements of gathered parameters
  std::optional<Purpose> purpose;
  std::optional<std::uint8_t> all_reduce_lane;   ///< if a framework has a separate lane
  std::optional<shardscope_event> until_issued;  ///< ends a span when the next collective is issued
  std::vector<Unfinished> unfinished;            ///< wait_for()
  NumberTable modules, params;
  OpenSpans spans;         ///< of modules, in the compute lane
  ElemCounts param_elems;  ///< by parameter's number

  void reset() { *this = SessionState(); }

  [[nodiscard]] std::int64_t elems(std::uint32_t param) const { return param_elems.all.at(param); }

  /// Ends collectives that have completed. Does not wait.
  void poll();
  /// Calls ended(failed) once it is complete.
  void wait_for(Unfinished collective) { unfinished.push_back(std::move(collective)); }

  /// The framework has waited for this gather's or bucket's collective in this lane, so its output is in host
  /// memory: also if the Work does not report it (gloo's asynchronous reduce-scatter).
  void waited_for(std::uint8_t lane, std::uint32_t owner);

  /// Call when a collective is issued.
  void issued() {
    if (until_issued) shardscope_emit(&*until_issued);
    until_issued.reset();
  }
  /// All collectives of a gather or a bucket have been issued.
  void purpose_served() {
    purpose.reset();
    poll();
  }

  void begin_span(std::uint8_t pass, std::uint32_t module) {
    poll();
    spans.begin(pass, module, micro_step);
  }
  /// Ends the innermost span of this module, and unfinished ones within it. No effect if none is open.
  void end_span(std::uint32_t module) { spans.end(module, micro_step); }

 private:
  /// Whether it ended by an error; nullopt: it has not ended.
  [[nodiscard]] std::optional<bool> outcome_of(const Unfinished& collective) const;
};

void add_session(nb::module_& module);

}  // namespace shardscope::python
