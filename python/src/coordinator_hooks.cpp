#include "coordinator_hooks.h"

#include <Python.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attribute.h"
#include "gate.h"
#include "native_hook.h"
#include "param_statuses.h"
#include "parts.h"
#include "session.h"
#include "shardscope/shardscope.h"

namespace nb = nanobind;

namespace shardscope::python {
namespace {

/// A private attribute of the coordinator, by Python's mangled name.
Attribute own(const char* name) {
  return Attribute(("_PartitionedParameterCoordinator__" + std::string(name)).c_str());
}

/// Parameters of one module in DeepSpeed's order of iteration, with their numbers in the run.
struct ModuleParams {
  nb::object gone;  ///< weak reference that removes this entry with its module
  std::tuple<std::size_t, std::size_t, std::uint32_t> version;
  std::vector<std::pair<nb::object, std::uint32_t>> all;
  std::vector<PyObject*> identities;  ///< of the same parameters, sorted

  [[nodiscard]] bool has(nb::handle param) const {
    return std::binary_search(identities.begin(), identities.end(), param.ptr());
  }
};

/// Fetches, gathers and releases of stage 3 (zero3_coordinator.py): the parameters fetched and prefetched at
/// each module, why prefetching stopped, and why parameters stay. In C++ because it runs for every module.
class CoordinatorHooks final : public KeptReasons {
 public:
  /// `iterate`(module) -> [parameter]: DeepSpeed's own iteration. `complete`: value of the coordinator's
  /// trace mode if the trace is complete; None: its method must be called. `statuses` must outlive this.
  CoordinatorHooks(SessionState& session, ParamStatuses& statuses, nb::object iterate, nb::object complete)
      : session_(session),
        statuses_(statuses),
        iterate_(std::move(iterate)),
        complete_(std::move(complete)) {}

  /// Before _fetch_sub_module_impl(), which has issued nothing yet: passes the gate. The result is the
  /// position in the trace, for fetch_ended().
  nb::object fetch_begins(nb::handle coordinator, nb::handle module, bool forward) {
    const std::uint32_t number = session_.modules.of(module);
    if (number != SHARDSCOPE_NO_ID && session_.in_micro_step)
      pass_gate(forward ? SHARDSCOPE_GATE_PRE_FORWARD : SHARDSCOPE_GATE_PRE_BACKWARD, number);
    statuses_.module = number;
    fetching_ = nb::borrow(module);
    prefetched_elems_ = 0;
    fetched_ = SHARDSCOPE_NO_ID;
    return step_id_.of(coordinator);
  }
  void fetch_ended(nb::handle step_id, nb::handle coordinator) {
    const std::uint32_t module = std::exchange(statuses_.module, SHARDSCOPE_NO_ID);
    fetching_ = nb::none();
    if (module == SHARDSCOPE_NO_ID || !session_.started) return;
    const auto available = available_.as<std::int64_t>(coordinator);
    shardscope_fetch_decision(why_no_more(coordinator, available), module, fetched_,
                              nb::cast<std::uint32_t>(step_id), prefetched_elems_, available);
  }

  /// Before __all_gather_params_(): the previous (cause, gather), for gather_issued().
  nb::object gather_begins(nb::handle params) {
    const nb::object before = nb::make_tuple(statuses_.cause_in, statuses_.gather);
    if (!session_.started) return before;
    std::vector<Part> parts;
    bool any = false, prefetch = fetching_.is_none();
    const ModuleParams* of_module = prefetch ? nullptr : &params_of(fetching_);
    for (const nb::handle param : params) {
      if (status_of(param) != SHARDSCOPE_NOT_AVAILABLE) continue;
      any = true;
      prefetch = prefetch || !of_module->has(param);
      const std::uint32_t number = session_.params.of(param);
      if (number != SHARDSCOPE_NO_ID) parts.emplace_back(number, numel_.as<std::int64_t>(param));
    }
    if (!any) return before;
    const std::uint32_t gather = ++session_.gathers;
    for (const Part& part : parts) statuses_.gathered_by(part.first, gather);
    Parts whole(std::move(parts));
    statuses_.cause_in = prefetch ? SHARDSCOPE_CAUSE_PREFETCH : SHARDSCOPE_CAUSE_FETCH;
    statuses_.gather = gather;
    if (prefetch) {
      prefetched_elems_ += whole.elems();
      shardscope_prefetch_issued(gather, statuses_.module, static_cast<std::uint32_t>(whole.size()),
                                 whole.elems());
    } else {
      fetched_ = gather;
    }
    session_.purpose = Purpose{SHARDSCOPE_LANE_GATHER, gather, nb::cast(std::move(whole))};
    return before;
  }
  void gather_issued(nb::handle before) {
    session_.purpose_served();
    statuses_.cause_in = nb::cast<std::uint8_t>(before[0]);
    statuses_.gather = nb::cast<std::uint32_t>(before[1]);
  }

  /// In the order of the coordinator's own checks.
  void kept(nb::handle coordinator, nb::handle module, std::uint32_t number) override {
    const ModuleParams& of_module = params_of(module);
    std::optional<bool> complete;  // of the trace; read only if needed
    for (const auto& [param, param_number] : of_module.all) {
      if (param_number == SHARDSCOPE_NO_ID) continue;
      const std::uint8_t status = statuses_.follows() ? statuses_.status_of(param_number) : status_of(param);
      if (status == SHARDSCOPE_NOT_AVAILABLE) continue;  // most of them: not checked further
      shardscope_release_kept(why_kept(coordinator, param, status, complete), number, param_number,
                              session_.elems(param_number));
    }
  }

 private:
  /// The coordinator's reason to stop prefetching, from the state that its loop left behind.
  std::uint8_t why_no_more(nb::handle coordinator, std::int64_t available) {
    const auto bucket = bucket_.as<std::int64_t>(coordinator);
    if (bucket == 0) return SHARDSCOPE_PREFETCH_DISABLED;
    if (!has_complete_trace(coordinator)) return SHARDSCOPE_PREFETCH_NO_TRACE;
    const nb::object queue = queue_.of(coordinator);
    if (nb::len(queue) == 0) return SHARDSCOPE_PREFETCH_END_OF_TRACE;
    if (is_offloaded(param_.of(queue[0]))) return SHARDSCOPE_PREFETCH_OFFLOADED;
    // Elements available when the prefetch loop began: without those that it gathered itself.
    const std::int64_t room = limit_.as<std::int64_t>(coordinator) - (available - prefetched_elems_);
    return room < bucket ? SHARDSCOPE_PREFETCH_LIVE_LIMIT : SHARDSCOPE_PREFETCH_BUCKET_FULL;
  }
  [[nodiscard]] bool has_complete_trace(nb::handle coordinator) const {
    if (complete_.is_none()) return nb::cast<bool>(is_complete_trace_.call(coordinator));
    return trace_mode_.of(coordinator).is(complete_);
  }
  /// Whether its shard must be read from NVMe first.
  [[nodiscard]] bool is_offloaded(nb::handle param) const {
    if (nvme_swapper_.or_none(param).is_none()) return false;
    const nb::object shard = param.attr("ds_tensor");
    if (shard.attr("final_location").is_none()) return false;
    const nb::object name = nb::getattr(shard.attr("status"), "name", nb::str(""));
    return PyUnicode_CompareWithASCIIString(name.ptr(), "NOT_AVAILABLE") == 0;
  }

  /// DeepSpeed's current value. The names of its enumeration are looked up once each.
  std::uint8_t status_of(nb::handle param) {
    nb::object value = status_.of(param);
    for (const auto& [known, code] : codes_)
      if (value.is(known)) return code;
    const nb::object name = value.attr("name");
    const auto is = [&](const char* text) { return PyUnicode_CompareWithASCIIString(name.ptr(), text) == 0; };
    const std::uint8_t code = is("AVAILABLE")  ? SHARDSCOPE_AVAILABLE
                              : is("INFLIGHT") ? SHARDSCOPE_IN_FLIGHT
                                               : SHARDSCOPE_NOT_AVAILABLE;
    return codes_.emplace_back(std::move(value), code).second;
  }

  std::uint8_t why_kept(nb::handle coordinator, nb::handle param, std::uint8_t status,
                        std::optional<bool>& complete) {
    const nb::object attributes = own_attributes(param);
    const auto is_true = [&](const Attribute& attribute) {
      const int truth = PyObject_IsTrue(attribute.in_or_of(attributes, param).ptr());
      if (truth < 0) throw nb::python_error();
      return truth != 0;
    };
    if (is_true(external_)) return SHARDSCOPE_KEEP_EXTERNAL;
    if (is_true(active_)) return SHARDSCOPE_KEEP_IN_USE;
    if (status != SHARDSCOPE_AVAILABLE) return SHARDSCOPE_KEEP_NOT_AVAILABLE;
    if (is_true(persist_)) return SHARDSCOPE_KEEP_PERSISTENT;
    if (!complete) complete = has_complete_trace(coordinator);
    const bool fetched_ahead = *complete && nb::cast<std::int64_t>(fetched_for_.of(coordinator)[param]) >
                                                step_id_.as<std::int64_t>(coordinator);
    // DeepSpeed caches its answer for a module and a position, even after the trace was recorded anew;
    // without a reuse distance the reason can only be that the parameter was fetched for a later use.
    const bool reuses = reuse_distance_.as<std::int64_t>(coordinator) > 0;
    return fetched_ahead || !reuses ? SHARDSCOPE_KEEP_ALREADY_FETCHED : SHARDSCOPE_KEEP_REUSED_SOON;
  }

  /// DeepSpeed's iteration is repeated only if its result may differ, for example after external parameters
  /// have been registered during the first forward.
  const ModuleParams& params_of(nb::handle module) {
    // In the instance dictionary: for missing attributes Module.__getattr__ runs, in Python, and raises.
    const nb::object own = own_attributes(module);
    const nb::object external = external_params_.in(own);
    const std::tuple version{nb::len(parameters_.in(own)), external.is_none() ? 0 : nb::len(external),
                             session_.models};
    const auto found = known_.find(module.ptr());
    if (found != known_.end() && found->second.version == version) return found->second;
    ModuleParams made;
    made.version = version;
    for (const nb::handle param : iterate_(module)) {
      made.all.emplace_back(nb::borrow(param), session_.params.of(param));
      made.identities.push_back(param.ptr());
    }
    std::sort(made.identities.begin(), made.identities.end());
    made.gone = nb::weakref(module, nb::cpp_function([this, key = module.ptr()](nb::handle) {
                              // Destroyed when the table is whole again: its parameters may take other
                              // modules with them.
                              const auto entry = known_.extract(key);
                            }));
    return known_[module.ptr()] = std::move(made);
  }

  SessionState& session_;
  ParamStatuses& statuses_;
  nb::object iterate_, complete_;
  nb::object fetching_ = nb::none();          ///< the module whose fetch is in progress
  std::int64_t prefetched_elems_ = 0;         ///< in that fetch
  std::uint32_t fetched_ = SHARDSCOPE_NO_ID;  ///< gather of that fetch
  std::unordered_map<PyObject*, ModuleParams> known_;
  std::vector<std::pair<nb::object, std::uint8_t>> codes_;  ///< of values of ds_status
  Attribute step_id_ = own("step_id"), available_ = own("n_available_params"),
            bucket_ = own("prefetch_bucket_sz"), trace_mode_ = own("trace_mode"), queue_ = own("param_queue"),
            limit_ = own("max_n_available_params"), reuse_distance_ = own("max_reuse_dist_in_numel"),
            fetched_for_ = own("most_recent_step_id_param_fetched_for");
  Attribute is_complete_trace_{"is_complete_trace"}, param_{"param"}, status_{"ds_status"},
      numel_{"ds_numel"}, persist_{"ds_persist"}, active_{"ds_active_sub_modules"},
      external_{"is_external_param"}, nvme_swapper_{"nvme_swapper"}, parameters_{"_parameters"},
      external_params_{"_external_params"};
};

}  // namespace

void add_coordinator_hooks(nb::module_& module) {
  using nb::arg;
  const Argument coordinator(0, "self");
  nb::class_<KeptReasons>(module, "KeptReasons");
  nb::class_<CoordinatorHooks, KeptReasons>(module, "CoordinatorHooks")
      .def(nb::init<SessionState&, ParamStatuses&, nb::object, nb::object>(), nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 3>(), arg("session"), arg("statuses"), arg("iterate"), arg("complete").none())
      .def_prop_ro("fetch_begins",
                   hook_before<CoordinatorHooks>([coordinator, module = Argument(1, "current_submodule"),
                                                  forward = Argument(2, "forward")](
                                                     CoordinatorHooks& hooks, const CallArguments& call) {
                     return hooks.fetch_begins(coordinator.of(call), module.of(call),
                                               forward.is_true(call, false));
                   }))
      .def_prop_ro("fetch_ended",
                   hook_after<CoordinatorHooks>(
                       [coordinator](CoordinatorHooks& hooks, nb::handle step_id, const CallArguments& call) {
                         hooks.fetch_ended(step_id, coordinator.of(call));
                       }))
      .def_prop_ro("gather_begins",
                   hook_before<CoordinatorHooks>(
                       [params = Argument(1, "params")](CoordinatorHooks& hooks, const CallArguments& call) {
                         return hooks.gather_begins(params.of(call));
                       }))
      .def_prop_ro("gather_issued",
                   hook_after<CoordinatorHooks>([](CoordinatorHooks& hooks, nb::handle before,
                                                   const CallArguments&) { hooks.gather_issued(before); }));
}

}  // namespace shardscope::python
