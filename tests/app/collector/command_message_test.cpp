// What a recording has of the commands that ranks were given.
#include "app/collector/command_message.h"

#include <gtest/gtest.h>

#include <string>

#include "app/store/control_text.h"

namespace shardscope::collector {
namespace {

using instrumentation::Detail;
using instrumentation::Severity;
using instrumentation::StopRule;
using instrumentation::wire::ViewCommand;
using Kind = ViewCommand::Kind;

ViewCommand command(Kind kind, StopRule rule = {}) {
  ViewCommand out;
  out.kind = kind;
  out.rule = rule;
  return out;
}

CommandMessage set_detail(Detail detail, int previous) {
  ViewCommand set = command(Kind::set_detail);
  set.detail = detail;
  return message_of(set, previous, "ann");
}

std::string text_of(const ViewCommand& given) {
  const CommandMessage message = message_of(given, -1, "ann");
  EXPECT_EQ(message.severity, Severity::info);
  EXPECT_TRUE(store::is_about_control(message.text));
  return message.text;
}

TEST(CommandMessage, NamesTheCommandAndWhoRequestedIt) {
  EXPECT_EQ(text_of(command(Kind::pause)), "control: a pause was requested by ann");
  EXPECT_EQ(text_of(command(Kind::ask)), "control: the stacks of all ranks were requested by ann");
  EXPECT_EQ(text_of(command(Kind::resume, {StopRule::Kind::never, 0})),
            "control: the run was resumed by ann");
}

TEST(CommandMessage, OfAStepNamesWhereItIsToEnd) {
  const auto to = [](StopRule::Kind kind) { return text_of(command(Kind::resume, {kind, 7})); };
  using Stop = StopRule::Kind;
  EXPECT_EQ(to(Stop::any_gate), "control: a step to the next gate was requested by ann");
  EXPECT_EQ(to(Stop::module), "control: a step to the next module was requested by ann");
  EXPECT_EQ(to(Stop::micro_step), "control: a step to the next micro-step was requested by ann");
  EXPECT_EQ(to(Stop::step), "control: a step to the next step was requested by ann");
  EXPECT_EQ(to(Stop::run_to_module), "control: a step to module 7 was requested by ann");
  EXPECT_EQ(to(Stop::run_to_param), "control: a step to parameter 7 was requested by ann");
  EXPECT_EQ(to(Stop::run_to_step), "control: a step to step 7 was requested by ann");
  EXPECT_EQ(to(Stop::run_to_bucket), "control: a step to bucket 7 was requested by ann");
  EXPECT_EQ(to(Stop::gate_number), "control: a step to gate 7 was requested by ann");
}

/// What was emitted before cannot be compared with what comes then: readers find it by its first words.
TEST(CommandMessage, ThatLowersDetailIsAWarningThatReadersFind) {
  const CommandMessage lowered = set_detail(Detail::steps, static_cast<int>(Detail::kernels));
  EXPECT_EQ(lowered.severity, Severity::warning);
  EXPECT_EQ(lowered.text, "control: detail lowered from kernels to steps by ann");
  EXPECT_TRUE(lowered.text.starts_with(store::kDetailLowered));

  const CommandMessage raised = set_detail(Detail::kernels, static_cast<int>(Detail::steps));
  EXPECT_EQ(raised.severity, Severity::info);
  EXPECT_EQ(raised.text, "control: detail set from steps to kernels by ann");

  const CommandMessage again = set_detail(Detail::steps, static_cast<int>(Detail::steps));
  EXPECT_EQ(again.severity, Severity::info) << "nothing is lowered";
}

TEST(CommandMessage, OfADetailWhoseFormerIsNotKnownNamesTheNewOneAlone) {
  const CommandMessage first = set_detail(Detail::steps, -1);
  EXPECT_EQ(first.severity, Severity::info);
  EXPECT_EQ(first.text, "control: detail set to steps by ann");
}

}  // namespace
}  // namespace shardscope::collector
