#include "app/collector/command_message.h"

#include "app/store/control_text.h"

namespace shardscope::collector {

using instrumentation::Severity;
using instrumentation::StopRule;
using instrumentation::wire::ViewCommand;

namespace {

std::string name_of(int detail) {
  return detail >= 0 && detail < instrumentation::kValueCount<instrumentation::Detail>
             ? instrumentation::name_of(static_cast<instrumentation::Detail>(detail))
             : "nothing";
}

std::string name_of(const StopRule& rule) {
  using Kind = StopRule::Kind;
  switch (rule.kind) {
    case Kind::never:
      return "";
    case Kind::any_gate:
      return "the next gate";
    case Kind::module:
      return "the next module";
    case Kind::micro_step:
      return "the next micro-step";
    case Kind::step:
      return "the next step";
    case Kind::run_to_module:
      return "module " + std::to_string(rule.id);
    case Kind::run_to_param:
      return "parameter " + std::to_string(rule.id);
    case Kind::run_to_step:
      return "step " + std::to_string(rule.id);
    case Kind::run_to_bucket:
      return "bucket " + std::to_string(rule.id);
    case Kind::gate_number:
      return "gate " + std::to_string(rule.id);
  }
  return "";
}

}  // namespace

CommandMessage message_of(const ViewCommand& command, int previous_detail, const std::string& by) {
  using Kind = ViewCommand::Kind;
  CommandMessage out{Severity::info, std::string(store::kControlPrefix)};
  if (command.kind == Kind::set_detail) {
    const int detail = static_cast<int>(command.detail);
    if (detail < previous_detail) {
      out = {Severity::warning, std::string(store::kDetailLowered)};
    } else {
      out.text += "detail set";
    }
    out.text += (previous_detail < 0 ? "" : " from " + name_of(previous_detail)) + " to " + name_of(detail);
  } else if (command.kind == Kind::ask) {
    out.text += "the stacks of all ranks were requested";
  } else if (command.kind == Kind::pause) {
    out.text += "a pause was requested";
  } else if (command.rule.kind == StopRule::Kind::never) {
    out.text += "the run was resumed";
  } else {
    out.text += "a step to " + name_of(command.rule) + " was requested";
  }
  out.text += " by " + by;
  return out;
}

}  // namespace shardscope::collector
