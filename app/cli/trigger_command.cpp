#include "app/cli/trigger_command.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <csignal>
#include <exception>
#include <utility>
#include <vector>

#include "instrumentation/plain_text.h"

namespace shardscope::cli {

TriggerCommand::TriggerCommand(std::string command, std::string endpoint, Report report,
                               Clock::duration limit)
    : command_(std::move(command)),
      endpoint_(std::move(endpoint)),
      report_(std::move(report)),
      limit_(limit) {}

void TriggerCommand::add(const analysis::Trigger& trigger) {
  if (!command_.empty()) waiting_.insert_or_assign(trigger.kind, trigger);
}

void TriggerCommand::next() {
  if (child_) look_at_child();
  if (child_ || waiting_.empty()) return;
  const analysis::Trigger trigger = std::move(waiting_.extract(waiting_.begin()).mapped());
  try {
    start(trigger);
  } catch (const std::exception& error) {  // a machine without a free process: the watch continues
    failed(trigger.kind, fmt::format("could not be started: {}", error.what()));
  }
}

void TriggerCommand::start(const analysis::Trigger& trigger) {
  const auto id = [](std::uint32_t number) {
    return number == instrumentation::kNoId ? std::string() : std::to_string(number);
  };
  // Standard output has the lines of `watch`, for programs with --json.
  child_.emplace(std::vector<std::string>{"/bin/sh", "-c", command_}, Process::Output::to_standard_error,
                 std::vector<std::pair<std::string, std::string>>{
                     {"SHARDSCOPE_TRIGGER", analysis::name_of(trigger.kind)},
                     {"SHARDSCOPE_TRIGGER_TEXT", instrumentation::plain_line(trigger.text)},
                     {"SHARDSCOPE_TRIGGER_STEP", id(trigger.step)},
                     {"SHARDSCOPE_TRIGGER_RANK", id(trigger.rank)},
                     {"SHARDSCOPE_ENDPOINT", endpoint_}});
  kind_ = trigger.kind;
  began_ = Clock::now();
  ending_ = Ending::by_itself;
}

void TriggerCommand::look_at_child() {
  const Clock::time_point now = Clock::now();
  const std::optional<int> code = child_->poll();
  if (!code) {
    if (ending_ == Ending::by_itself && now - began_ > limit_) {
      child_->signal(SIGTERM);
      ending_ = Ending::terminated;
      terminated_ = now;
    } else if (ending_ == Ending::terminated && now - terminated_ > kGrace) {
      child_->signal(SIGKILL);
      ending_ = Ending::killed;
    }
    return;
  }
  child_.reset();
  if (ending_ != Ending::by_itself) {
    failed(kind_, fmt::format("was ended after {}",
                              std::chrono::duration_cast<std::chrono::duration<double>>(limit_)));
  } else if (*code != 0) {
    failed(kind_, fmt::format("ended with exit code {}", *code));
  } else {
    reported_.erase(kind_);
  }
}

void TriggerCommand::failed(analysis::TriggerKind kind, const std::string& how) {
  if (!reported_.insert(kind).second) return;
  report_(
      fmt::format("--on-trigger at {}: the command {}; not reported again for this trigger until it succeeds",
                  analysis::name_of(kind), how));
}

}  // namespace shardscope::cli
