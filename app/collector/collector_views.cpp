// Requests of viewers and the collector's replies.
#include <optional>
#include <utility>

#include "app/collector/collector_state.h"
#include "app/collector/command_message.h"
#include "app/collector/now.h"

namespace shardscope::collector {

void Collector::State::start_views() {
  viewers.emplace(sockets.view, record.sink().log(), header.incarnation, header,
                  ViewServer::Source{
                      [this](wire::ViewReply& reply, std::uint64_t known) { fill(reply, known); },
                      [this] { return shown.revision(); },
                      [this](std::uint64_t viewer, const wire::ViewCommand& command) {
                        record_command(command, requester);
                        pauses.command(viewer, command, now_s());
                        sender.send_commands();
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

void Collector::State::record_command(const wire::ViewCommand& command, const std::string& by) {
  const bool sets_detail = command.kind == wire::ViewCommand::Kind::set_detail;
  const int before = sets_detail ? shown.set_detail(static_cast<int>(command.detail)) : -1;
  const CommandMessage message = message_of(command, before, by);
  messages.record(0, message.severity, message.text);
}

void Collector::State::take_detail() {
  const std::optional<instrumentation::Detail> detail = board.take_detail();
  if (!detail || !relay.is_top()) return;
  wire::ViewCommand command;
  command.kind = wire::ViewCommand::Kind::set_detail;
  command.detail = *detail;
  record_command(command, "the recorder");
  pauses.command(0, command, now_s());
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
    if (!relay.is_top() && commands && asks == nullptr) {
      problems.reject("right", "a viewer",
                      "this collector passes its ranks on; control the run at " + options.upstream);
      continue;
    }
    requester = sockets.guard.who(message.body);
    if (asks != nullptr) {
      moments.take_of_viewer(*asks, requester);
      continue;
    }
    viewers->handle(message.route.to_string(), connection_of(message.body), *decoded.message, now_s());
  }
}

void Collector::State::fill(wire::ViewReply& reply, std::uint64_t known) const {
  shown.add_to(reply, pauses.control(now_s()));
  reply.exit_code = board.exit_code();
  ranks.add_states(reply, known);
}

}  // namespace shardscope::collector
