#include "module_calls.h"

#include <Python.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "gate.h"
#include "gradient_hook.h"
#include "module_backward.h"
#include "module_call.h"
#include "native_hook.h"
#include "number_table.h"
#include "session.h"
#include "shardscope/shardscope.h"
#include "tensors.h"
#include "wrapper.h"

namespace shardscope::python {
namespace {

/// Forwards and backwards of modules without hooks of their framework (modules.py). In C++ because a step
/// calls every module, after a matrix product has evicted the caches.
class ModuleCalls {
 public:
  /// `graph_task`: torch's id of the running backward, or -1; `failed`: called with an exception of a hook;
  /// neither that one nor one that it raises is rethrown. `session` must outlive this.
  ModuleCalls(SessionState& session, nb::object tensor, nb::object make_table, nb::object graph_task,
              nb::object failed)
      : session_(session),
        tensors_(std::move(tensor), std::move(make_table)),
        graph_task_(std::move(graph_task)),
        gradients_{.backward = ModuleBackward(session), .failed = std::move(failed)} {}

  void watch(nb::handle owner, nb::handle module, Watched how) {
    gradients_.owner = owner;
    watched_.set(reinterpret_cast<std::uintptr_t>(module.ptr()), static_cast<std::uint32_t>(how));
    gradients_.on = true;
  }
  void forget() {
    gradients_.on = false;
    watched_ = NumberTable();
    forward_.clear();
    gradients_.backward.forget();
    reported_ = nb::none();
  }

  bool wrapped =
      false;  ///< whether call_begins() enters; call_ended() ends what has been entered in any case

  /// Before the forward of any module.
  void entering(nb::handle module, nb::handle arguments) {
    guarded(module,
            [&](Watched how) { enter(module, how, [&](const auto& f) { tensors_.each_in(arguments, f); }); });
  }
  /// After it, or after it has raised: then `result` is None.
  void leaving(nb::handle module, nb::handle result) {
    guarded(module, [&](Watched) { leave(module, result); });
  }
  /// The same as hooks of Module._call_impl(self, *args, **kwargs): the module, if it is watched.
  nb::object call_begins(const CallArguments& call) {
    if (!wrapped || call.positional < 1) return nb::none();
    const nb::handle module = call.values[0];
    const std::uint32_t how = watched_.of(module);
    if (how == SHARDSCOPE_NO_ID) return nb::none();
    guarded([&] {
      enter(module, static_cast<Watched>(how), [&](const auto& f) {
        for (Py_ssize_t i = 1; i < call.positional; ++i) tensors_.each_in_item(call.values[i], f);
      });
    });
    return nb::borrow(module);
  }
  void call_ended(nb::handle module, nb::handle result) {
    if (!module.is_none()) guarded([&] { leave(module, result); });
  }
  /// Enters a recorded module from a hook before its own forward. torch may still call our hook for it,
  /// unless ours was called before that hook or is only registered now.
  void already_entered(nb::handle module) {
    guarded(module, [&](Watched how) { enter(module, how, [](const auto&) {}); });
    reported_ = nb::borrow(module);
  }
  void group_begun(std::uint32_t module) {
    if (gradients_.on) guarded([&] { gradients_.backward.group_begun(module); });
  }

  /// The innermost module whose forward is open.
  [[nodiscard]] std::uint32_t entered() const {
    return forward_.empty() ? SHARDSCOPE_NO_ID : forward_.back()->module;
  }

 private:
  template <typename Body>
  void guarded(const Body& body) {
    try {
      body();
      return;
    } catch (nb::python_error& error) {
      error.restore();
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    if (!report_failure(gradients_.failed.ptr())) throw nb::python_error();
  }
  template <typename Body>
  void guarded(nb::handle module, const Body& body) {
    const std::uint32_t how = watched_.of(module);
    if (how != SHARDSCOPE_NO_ID) guarded([&] { body(static_cast<Watched>(how)); });
  }

  /// `each_input`(f): calls f for each tensor in the arguments.
  template <typename Each>
  void enter(nb::handle module, Watched how, const Each& each_input) {
    const bool again = module.is(std::exchange(reported_, nb::none()));
    const std::uint32_t number = session_.modules.of(module);
    if (again || number == SHARDSCOPE_NO_ID || !session_.in_micro_step ||
        shardscope_enabled(SHARDSCOPE_DETAIL_MODULES) == 0)
      return;
    const bool in_backward = nb::cast<std::int64_t>(graph_task_()) != -1;
    const std::uint8_t pass = in_backward ? SHARDSCOPE_PASS_RECOMPUTE : SHARDSCOPE_PASS_FORWARD;
    if (!in_backward) {
      if (how == Watched::gated) pass_gate(SHARDSCOPE_GATE_PRE_FORWARD, number);
      if (session_.spans.size() == 0) {  // left over after an exception
        forward_.clear();
        gradients_.backward.forget_early();
      }
    }
    std::shared_ptr<const ModuleCall> around;
    if (!forward_.empty())
      around = forward_.back();
    else if (in_backward)
      around = gradients_.backward.innermost();
    const auto call = std::make_shared<const ModuleCall>(number, pass, how, std::move(around));
    forward_.push_back(call);
    if (how == Watched::group) {
      if (in_backward) session_.begin_span(pass, number);  // FSDP2's hooks leave before ours see it
      return;
    }
    each_input([&](nb::handle tensor) { hook_tensor(tensor, call, false); });
    session_.begin_span(pass, number);
  }

  void leave(nb::handle module, nb::handle result) {
    reported_ = nb::none();
    const std::uint32_t number = session_.modules.of(module);
    if (forward_.empty() || number != forward_.back()->module) return;
    const std::shared_ptr<const ModuleCall> call = std::move(forward_.back());
    forward_.pop_back();
    if (call->how == Watched::group) {
      if (call->pass == SHARDSCOPE_PASS_RECOMPUTE)
        session_.end_span(number);
      else
        gradients_.backward.of_group(call);
      return;
    }
    session_.end_span(number);
    tensors_.each_in(result, [&](nb::handle tensor) { hook_tensor(tensor, call, true); });
    if (call->how == Watched::gated && call->pass == SHARDSCOPE_PASS_FORWARD && session_.in_micro_step)
      pass_gate(SHARDSCOPE_GATE_POST_FORWARD, number);
  }

  /// Backward of a call: begins with the gradient of its outputs, ends with that of its inputs.
  void hook_tensor(nb::handle tensor, const std::shared_ptr<const ModuleCall>& call, bool begins) {
    tensors_.hook(
        tensor, [&] { return gradient_hook(gradients_, call, begins); },
        [&](nb::handle table) { return added_to_hook(table, gradients_, call, begins); });
  }

  SessionState& session_;
  Tensors tensors_;
  nb::object graph_task_;
  BackwardHooks gradients_;
  NumberTable watched_;  ///< id(module) -> Watched
  Calls forward_;        ///< calls whose forward is open
  nb::object reported_ =
      nb::none();  ///< the module of already_entered(), until the next one is entered or left
};

}  // namespace

void add_module_calls(nb::module_& module) {
  using nb::arg;
  nb::enum_<Watched>(module, "Watched")
      .value("GATED", Watched::gated)
      .value("PLAIN", Watched::plain)
      .value("GROUP", Watched::group);
  nb::class_<ModuleCalls>(module, "ModuleCalls")
      .def(nb::init<SessionState&, nb::object, nb::object, nb::object, nb::object>(), nb::keep_alive<1, 2>(),
           arg("session"), arg("tensor"), arg("make_table").none(), arg("graph_task"), arg("failed"))
      .def("watch", [](nb::handle self, nb::handle module,
                       Watched how) { nb::inst_ptr<ModuleCalls>(self)->watch(self, module, how); })
      .def("forget", &ModuleCalls::forget)
      .def_rw("wrapped", &ModuleCalls::wrapped)
      .def("entering", &ModuleCalls::entering)
      .def("leaving", &ModuleCalls::leaving, arg(), arg().none())
      .def_prop_ro("call_begins", hook_before<ModuleCalls>([](ModuleCalls& calls, const CallArguments& call) {
                     return calls.call_begins(call);
                   }))
      .def_prop_ro("call_ended",
                   [](nb::object self) {
                     auto* calls = nb::inst_ptr<ModuleCalls>(self);
                     return NativeHook{
                         .before = nullptr,
                         .after = [self, calls](nb::handle module, nb::handle result, const CallArguments&) {
                           calls->call_ended(module, result);
                         }};
                   })
      .def("already_entered", &ModuleCalls::already_entered)
      .def("group_begun", &ModuleCalls::group_begun)
      .def_prop_ro("entered", &ModuleCalls::entered);
}

}  // namespace shardscope::python
