#include "module_hooks.h"

#include <cstdint>
#include <utility>

#include "coordinator_hooks.h"
#include "gate.h"
#include "native_hook.h"
#include "param_statuses.h"
#include "session.h"
#include "shardscope/shardscope.h"

namespace nb = nanobind;

namespace shardscope::python {
namespace {

/// Hooks of stage 3 that run for every module of every pass: gates, spans, and which module's fetch or
/// release is in progress. Their arguments are those of the hooked methods (zero3_coordinator.py,
/// zero3_modules.py). In C++ because a model has more modules than anything else that is hooked.
class ModuleHooks {
 public:
  /// `session`: shardscope._session.session; `graph_task`: torch's id of the running backward, or -1; `kept`:
  /// for released(), which needs it. All but `graph_task` must outlive this.
  ModuleHooks(SessionState& session, ParamStatuses& statuses, nb::object graph_task, KeptReasons* kept)
      : session_(session), graph_task_(std::move(graph_task)), kept_(kept), statuses_(statuses) {}

  void release_begins(nb::handle module) { statuses_.module = session_.modules.of(module); }
  void released(nb::handle coordinator, nb::handle module, bool forward) {
    const std::uint32_t number = std::exchange(statuses_.module, SHARDSCOPE_NO_ID);
    if (number == SHARDSCOPE_NO_ID || !session_.started) return;
    if (shardscope_enabled(SHARDSCOPE_DETAIL_PARAMS) != 0) kept_->kept(coordinator, module, number);
    gate(number, forward ? SHARDSCOPE_GATE_POST_FORWARD : SHARDSCOPE_GATE_POST_BACKWARD);
  }

  void entering(nb::handle module) { statuses_.entering = session_.modules.of(module); }
  void forward_begins(nb::handle module) {
    const bool in_backward = nb::cast<std::int64_t>(graph_task_()) != -1;
    begin_span(module, in_backward ? SHARDSCOPE_PASS_RECOMPUTE : SHARDSCOPE_PASS_FORWARD);
  }
  void backward_begins(nb::handle module) { begin_span(module, SHARDSCOPE_PASS_BACKWARD); }
  void span_ends(nb::handle module) {
    const std::uint32_t number = session_.modules.of(module);
    if (number != SHARDSCOPE_NO_ID && session_.started) session_.end_span(number);
  }

 private:
  void gate(std::uint32_t number, std::int32_t kind) const {
    if (number != SHARDSCOPE_NO_ID && session_.in_micro_step) pass_gate(kind, number);
  }

  void begin_span(nb::handle module, std::uint8_t pass) const {
    const std::uint32_t number = session_.modules.of(module);
    if (number == SHARDSCOPE_NO_ID || !session_.started) return;
    session_.begin_span(pass, number);
  }

  SessionState& session_;
  nb::object graph_task_;
  KeptReasons* kept_;
  ParamStatuses& statuses_;
};

}  // namespace

void add_module_hooks(nb::module_& module) {
  using nb::arg;
  const Argument forward(2, "forward"), released(1, "submodule"), entered(1, "sub_module");
  nb::class_<ModuleHooks>(module, "ModuleHooks")
      .def(nb::init<SessionState&, ParamStatuses&, nb::object, KeptReasons*>(), nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 3>(), nb::keep_alive<1, 5>(), arg(), arg(), arg(),
           arg("kept").none() = nb::none())
      .def_prop_ro("release_begins",
                   hook_before<ModuleHooks>([released](ModuleHooks& hooks, const CallArguments& call) {
                     hooks.release_begins(released.of(call));
                   }))
      .def_prop_ro("released",
                   hook_after<ModuleHooks>([coordinator = Argument(0, "self"), released, forward](
                                               ModuleHooks& hooks, nb::handle, const CallArguments& call) {
                     hooks.released(coordinator.of(call), released.of(call), forward.is_true(call, false));
                   }))
      .def_prop_ro("entering",
                   hook_before<ModuleHooks>([entered](ModuleHooks& hooks, const CallArguments& call) {
                     hooks.entering(entered.of(call));
                   }))
      .def_prop_ro("forward_begins", hook_after<ModuleHooks>([entered](ModuleHooks& hooks, nb::handle,
                                                                       const CallArguments& call) {
                     hooks.forward_begins(entered.of(call));
                   }))
      .def_prop_ro("backward_begins", hook_after<ModuleHooks>([entered](ModuleHooks& hooks, nb::handle,
                                                                        const CallArguments& call) {
                     hooks.backward_begins(entered.of(call));
                   }))
      .def_prop_ro("span_ends",
                   hook_before<ModuleHooks>([entered](ModuleHooks& hooks, const CallArguments& call) {
                     hooks.span_ends(entered.of(call));
                   }));
}

}  // namespace shardscope::python
