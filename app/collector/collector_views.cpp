// Requests of viewers and the collector's replies.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "app/collector/collector_state.h"
#include "app/collector/moment_request.h"
#include "app/collector/now.h"
#include "app/store/control_text.h"

namespace shardscope::collector {

void Collector::State::start_views() {
  viewers.emplace(sockets.view, record.sink().log(), header.incarnation, header,
                  ViewServer::Source{
                      [this](wire::ViewReply& reply, std::uint64_t known) { fill(reply, known); },
                      [this] { return shown.revision(); },
                      [this](std::uint64_t viewer, const wire::ViewCommand& command) {
                        record_command(command, sender);
                        pauses.command(viewer, command, now_s());
                        send_commands();
                      },
                      [this](std::uint64_t viewer) { pauses.heartbeat(viewer, now_s()); },
                      [this](std::uint64_t) { problems.reject("order", "a viewer", "a command came twice"); },
                      [this] {
                        problems.reject("full", "a viewer",
                                        std::to_string(ViewServer::kMaxPeers) + " viewers are there already");
                      },
                      [this](double waited_s) {
                        board.stalled();
                        problems.report("stalled", "cut off a viewer that for " +
                                                       std::to_string(static_cast<int>(waited_s)) +
                                                       " s did not receive what it had requested");
                      },
                  },
                  options.viewers);
}

namespace {

std::string name_of(int detail) {
  return detail >= 0 && detail < instrumentation::kValueCount<instrumentation::Detail>
             ? instrumentation::name_of(static_cast<instrumentation::Detail>(detail))
             : "nothing";
}

std::string name_of(const instrumentation::StopRule& rule) {
  using Kind = instrumentation::StopRule::Kind;
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

/// What becomes of it follows: that ranks hold, or why they do not.
void Collector::State::record_command(const wire::ViewCommand& command, const std::string& by) {
  using Kind = wire::ViewCommand::Kind;
  Severity severity = Severity::info;
  std::string text(store::kControlPrefix);
  if (command.kind == Kind::set_detail) {
    const int detail = static_cast<int>(command.detail), before = shown.set_detail(detail);
    const bool lower = detail < before;
    if (lower) severity = Severity::warning;
    text = lower ? std::string(store::kDetailLowered) : text + "detail set";
    text += (before < 0 ? "" : " from " + name_of(before)) + " to " + name_of(detail);
  } else if (command.kind == Kind::ask) {
    text += "the stacks of all ranks were requested";
  } else if (command.kind == Kind::pause) {
    text += "a pause was requested";
  } else if (command.rule.kind == instrumentation::StopRule::Kind::never) {
    text += "the run was resumed";
  } else {
    text += "a step to " + name_of(command.rule) + " was requested";
  }
  record_message(0, clock_now(), severity, text + " by " + by);
}

void Collector::State::take_detail() {
  const std::optional<instrumentation::Detail> detail = board.take_detail();
  if (!detail || upstream) return;
  wire::ViewCommand command;
  command.kind = wire::ViewCommand::Kind::set_detail;
  command.detail = *detail;
  record_command(command, "the recorder");
  pauses.command(0, command, now_s());
}

/// A moment later than now would keep nothing, and one without a time is now.
void Collector::State::take_moment_request(const wire::Text& asked) {
  auto moment = moment_of_request(asked.text);
  if (!moment) {
    problems.reject("value", "a viewer", "it asks to keep a moment of no kind");
    return;
  }
  moment->at_ns = asked.at_ns == 0 ? clock_now() : std::min(asked.at_ns, clock_now());
  moment->text = requested_text(moment->text, sender);
  ask_nodes_to_keep(*moment);
  board.ask_to_keep(std::move(*moment));
}

void Collector::State::take_asked_of_nodes() {
  for (const store::Moment& moment : board.take_asked_of_nodes()) ask_nodes_to_keep(moment);
}

void Collector::State::receive_views() {
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    Routed message;
    if (!receive(sockets.view, message, *sockets.watch)) return;
    if (!message.whole) continue;
    const wire::Decoded decoded = wire::decode(message.body.data(), message.body.size(), wire::From::viewer);
    if (!decoded.message) {
      problems.reject(wire::name_of(decoded.reject), "a viewer", decoded.why);
      continue;
    }
    const auto* asks = std::get_if<wire::Text>(&decoded.message->body);
    const bool commands = asks != nullptr || std::holds_alternative<wire::ViewCommand>(decoded.message->body);
    if (commands && !sockets.guard.may(message.body, instrumentation::KeyRole::control)) {
      problems.reject("right", "a viewer", "its key may view the run, not control it");
      continue;
    }
    if (upstream && commands && asks == nullptr) {
      problems.reject("right", "a viewer",
                      "this collector passes its ranks on; control the run at " + options.upstream);
      continue;
    }
    sender = sockets.guard.who(message.body);
    if (asks != nullptr) {
      take_moment_request(*asks);
      continue;
    }
    viewers->handle(message.route.to_string(), connection_of(message.body), *decoded.message, now_s());
  }
}

void Collector::State::fill(wire::ViewReply& reply, std::uint64_t known) const {
  const ControlState control_now = pauses.control(now_s());
  reply.pausing = control_now.pausing;
  reply.paused = control_now.paused;
  reply.gate = control_now.gate;
  reply.lease_left_s = control_now.lease_left_s;
  reply.note = control_now.note;
  reply.finished = shown.over();
  reply.exit_code = board.exit_code();
  for (const auto& [id, rank] : ranks) {
    if (rank.revision <= known && known != 0) continue;
    const store::RankRow& row = rank.row;
    wire::RankState state;
    state.rank = id;
    state.connected = row.connected;
    state.finished = row.finished;
    state.exit_code = row.exit_code;
    state.pid = row.pid;
    state.host = row.host;
    state.exit_message = row.exit_message;
    state.events = row.events;
    state.dropped = row.dropped;
    state.lost_messages = row.lost_messages;
    state.clock_offset_ns = row.clock_offset_ns;
    state.clock_residual_ns = row.clock_residual_ns;
    state.last_ns = row.last_ns;
    state.gate.position = row.gate;
    reply.ranks.push_back(std::move(state));
  }
}

}  // namespace shardscope::collector
