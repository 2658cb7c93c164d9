#include "module_hooks.h"

#include <cstdint>
#include <utility>

#include "gate.h"
#include "param_statuses.h"
#include "session.h"
#include "shardscope/shardscope.h"

namespace nb = nanobind;

namespace shardscope::python {
namespace {

/// Hooks of stage 3 that run for every module of every pass: gates, spans, whose fetch or release is going
/// on. Their arguments are those of the methods that they stand before or after (zero3_coordinator.py,
/// zero3_modules.py). In C++ because a model has more modules than all else that is hooked together.
class ModuleHooks {
 public:
  /// `session`: shardscope._session.session; `graph_task`: torch's number of the backward that runs, or -1;
  /// `kept`(coordinator, module, number) emits why parameters stay, for released(). `statuses` must outlive
  /// this.
  ModuleHooks(nb::object session, ParamStatuses& statuses, nb::object graph_task, nb::object kept)
      : session_(std::move(session)),
        graph_task_(std::move(graph_task)),
        kept_(std::move(kept)),
        statuses_(statuses) {}

  void fetch_gate(nb::handle, nb::handle module, bool forward) {
    gate(session_.module(module), forward ? SHARDSCOPE_GATE_PRE_FORWARD : SHARDSCOPE_GATE_PRE_BACKWARD);
  }

  void release_begins(nb::handle, nb::handle module, bool) { statuses_.module = session_.module(module); }
  void released(nb::handle, nb::handle, nb::handle coordinator, nb::handle module, bool forward) {
    const std::uint32_t number = std::exchange(statuses_.module, SHARDSCOPE_NO_ID);
    if (number == SHARDSCOPE_NO_ID || !session_.started()) return;
    if (shardscope_enabled(SHARDSCOPE_DETAIL_PARAMS) != 0) kept_(coordinator, module, number);
    gate(number, forward ? SHARDSCOPE_GATE_POST_FORWARD : SHARDSCOPE_GATE_POST_BACKWARD);
  }

  void entering(nb::handle, nb::handle module) { statuses_.entering = session_.module(module); }
  void forward_begins(nb::handle, nb::handle, nb::handle, nb::handle module) {
    const bool in_backward = nb::cast<std::int64_t>(graph_task_()) != -1;
    begin_span(module, in_backward ? SHARDSCOPE_PASS_RECOMPUTE : SHARDSCOPE_PASS_FORWARD);
  }
  void backward_begins(nb::handle, nb::handle, nb::handle, nb::handle module) {
    begin_span(module, SHARDSCOPE_PASS_BACKWARD);
  }
  void span_ends(nb::handle, nb::handle module) {
    const std::uint32_t number = session_.module(module);
    if (number != SHARDSCOPE_NO_ID && session_.started()) session_.spans().end(number, session_.micro_step());
  }

 private:
  void gate(std::uint32_t number, std::int32_t kind) const {
    if (number != SHARDSCOPE_NO_ID && session_.in_micro_step()) pass_gate(kind, number);
  }

  void begin_span(nb::handle module, std::uint8_t pass) const {
    const std::uint32_t number = session_.module(module);
    if (number == SHARDSCOPE_NO_ID || !session_.started()) return;
    session_.poll();
    session_.spans().begin(pass, number, session_.micro_step());
  }

  Session session_;
  nb::object graph_task_, kept_;
  ParamStatuses& statuses_;
};

}  // namespace

void add_module_hooks(nb::module_& module) {
  using nb::arg;
  nb::class_<ModuleHooks>(module, "ModuleHooks")
      .def(nb::init<nb::object, ParamStatuses&, nb::object, nb::object>(), nb::keep_alive<1, 3>(), arg(),
           arg(), arg(), arg("kept") = nb::none())
      .def("fetch_gate", &ModuleHooks::fetch_gate, arg().none(), arg("current_submodule"), arg("forward"))
      .def("release_begins", &ModuleHooks::release_begins, arg().none(), arg("submodule"),
           arg("forward") = false)
      .def("released", &ModuleHooks::released, arg().none(), arg().none(), arg().none(), arg("submodule"),
           arg("forward") = false)
      .def("entering", &ModuleHooks::entering, arg().none(), arg("sub_module"))
      .def("forward_begins", &ModuleHooks::forward_begins, arg().none(), arg().none(), arg().none(),
           arg("sub_module"))
      .def("backward_begins", &ModuleHooks::backward_begins, arg().none(), arg().none(), arg().none(),
           arg("sub_module"))
      .def("span_ends", &ModuleHooks::span_ends, arg().none(), arg("sub_module"));
}

}  // namespace shardscope::python
