// Control messages of ranks to the collector: hello, clock round trips, commands at gates.
#include <cerrno>
#include <csignal>
#include <utility>

#include "app/collector/collector_state.h"
#include "app/collector/now.h"
#include "app/store/silences.h"

namespace shardscope::collector {

using store::Resumption;

namespace {
constexpr double kSilence_s = 3;  ///< a silence is reported from this length on when the rank sends again
constexpr double kPresentWithin_s = 3;  ///< a rank with a message in this time is connected
}  // namespace

void Collector::State::receive_control() {
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    Routed message;
    if (!receive(sockets.control, message, *sockets.watch)) return;
    if (!message.whole) continue;
    board.control();
    const wire::Decoded decoded =
        wire::decode(message.body.data(), message.body.size(), wire::From::rank_control);
    if (!decoded.message) {
      problems.reject(wire::name_of(decoded.reject), "a rank's control channel", decoded.why);
      continue;
    }
    const wire::Header& from = decoded.message->header;
    if (is_of_run(from, RunIdentity::Proof::hello)) {
      on_control(message.route.to_string(), *decoded.message, options.clock.at(message.received_ns));
    } else if (identity.known()) {
      down.refuse(message.route.to_string(), from, identity.refusal_of(from.run_id), now_s());
    }
  }
}

void Collector::State::on_control(const std::string& route, const wire::Message& message,
                                  std::int64_t received_ns) {
  const std::uint32_t id = message.header.rank;
  const double now = now_s();
  detect_stall(now);  // else it would be reported that the rank sends again
  if (const auto* hello = std::get_if<wire::Hello>(&message.body)) {
    on_hello(route, message.header, *hello);
    return;
  }
  if (const auto* node = std::get_if<wire::RelayHello>(&message.body)) {
    on_node(route, message.header, *node);
    return;
  }
  if (Nodes::Node* node = down.nodes().received_from(route, now); node != nullptr) {
    if (const auto* pong = std::get_if<wire::Pong>(&message.body)) {
      node->clock.add(pong->ping_sent_ns, pong->received_ns, pong->sent_ns, received_ns);
      node->answer.answered(pong->id);
      return;
    }
  }
  RankSession* const known = ranks.known(id);
  if (known == nullptr || known->route != route) return;  // its hello will follow
  RankSession& rank = *known;
  if (rank.silent() || now - rank.last_control() >= kSilence_s)
    liveness.end_silence(rank, now, RankLiveness::as_before(rank));
  rank.control_received(now);
  if (const auto* position = std::get_if<wire::Position>(&message.body); position && position->detail >= 0)
    shown.set_detail(position->detail);
  if (const auto* pong = std::get_if<wire::Pong>(&message.body)) {
    rank.clock.add(pong->ping_sent_ns, pong->received_ns, pong->sent_ns, received_ns);
    rank.answer.answered(pong->id);
  } else if (!relay.is_top()) {
    relay.pass_control(message);  // pauses are agreed on at the top
    if (const auto* position = std::get_if<wire::Position>(&message.body)) {
      rank.row.gate = position->position;
      rank.row_dirty = true;
    }
  } else if (const auto* prepared = std::get_if<wire::Prepared>(&message.body)) {
    pauses.prepared(id, *prepared, now);
  } else if (const auto* position = std::get_if<wire::Position>(&message.body)) {
    const auto& before = rank.row.gate;
    const auto& after = position->position;
    const bool holds_elsewhere =
        before.holding != after.holding || (after.holding && before.number != after.number);
    if (holds_elsewhere) rank.row_sent_s = -1e300;
    if (holds_elsewhere || before.number != after.number) rank.row_dirty = true;
    rank.row.gate = after;
    pauses.position(id, *position, now);
  }
  ranks.note_change(rank, now);
  sender.send_commands();
}

void Collector::State::on_hello(const std::string& route, const wire::Header& from,
                                const wire::Hello& hello) {
  const std::uint32_t id = from.rank;
  const double now = now_s();
  Nodes::Node* node = down.nodes().at(route);
  if (hello.relayed && node == nullptr) return;  // its collector's own hello must come first; it is repeated
  if (identity.contradicts(hello.world)) {
    const std::string why = identity.contradiction_of(hello.world);
    problems.reject("world", "rank " + std::to_string(id), why);
    if (identity.world_known()) down.refuse(route, from, why, now);
    return;
  }
  RankSession& rank = ranks.session(id);
  if (rank.row.connected && rank.route != route && rank.control_incarnation != from.incarnation &&
      rank.is_current(rank.control_incarnation) && !rank.silent() &&
      now - rank.last_control() < kPresentWithin_s) {
    // Once the process publishes it holds the rank's place; until then its rank is only a claim. A node's
    // collector that replaces a killed one sends hellos for the same ranks: that is no error.
    if (node == nullptr) {
      problems.reject("order", "rank " + std::to_string(id),
                      "another process than the one that publishes says that it is this rank");
    }
    return;
  }
  if (Upstream* const above = relay.upstream()) {
    wire::Hello passed_on = hello;
    passed_on.relayed = true;
    above->control(from, std::move(passed_on), now);
  }
  if (identity.world() == 0) {
    identity.set_provisional_world(hello.world);
    pauses.set_world(hello.world);
  }
  // A node's collector repeats hellos of its ranks: it reports itself whether a rank is silent.
  if (rank.control_incarnation != from.incarnation) {
    if (rank.silent() || rank.silence_recorded_s) liveness.end_silence(rank, now, Resumption::restarted);
  } else if (node == nullptr &&
             (rank.silent() || (rank.route == route && now - rank.last_control() >= kSilence_s))) {
    liveness.end_silence(rank, now,
                         rank.route == route ? RankLiveness::as_before(rank) : Resumption::on_another_host);
  }
  listed.rank_changed(rank);  // for its previous node
  if (rank.node_clock != (node != nullptr ? &node->clock : nullptr)) rank.listed_s = nullptr;
  rank.node_clock = node != nullptr ? &node->clock : nullptr;
  rank.same_clock = rank.node_clock == nullptr && hello.clock_id == clock_id;
  if (rank.control_incarnation != from.incarnation) {
    if (Upstream* const above = relay.upstream()) above->keep_clock(id, rank);
    rank.another_process(from.incarnation);
    if (rank.row.connected) pauses.rank_down(id, "has been replaced by another process", now);
    rank.row.connected = false;
    if (!rank.is_current(from.incarnation)) forget_end(rank);
  }
  if (rank.same_clock) rank.clock.same_clock();
  if (rank.route != route) rank.another_route(route);
  listed.rank_changed(rank);
  rank.row.pid = hello.pid;
  rank.row.host = hello.host;
  rank.pid_seen = rank.node_clock == nullptr && (hello.host == host || hello.host.empty()) && hello.pid > 0 &&
                  rank.same_clock && (kill(hello.pid, 0) == 0 || errno == EPERM);
  rank.last_control_s = now;
  if (!rank.row.connected) {
    rank.row.connected = true;
    rank.row_dirty = true;
    rank.row_sent_s = -1e300;
    pauses.rank_up(id);
  }
  if (!rank.has_tables) sender.ask_for_tables(rank);
  if (rank.row.finished) sender.confirm_finish(rank);  // its end came before its first hello
  ranks.note_change(rank, now);
}

}  // namespace shardscope::collector
