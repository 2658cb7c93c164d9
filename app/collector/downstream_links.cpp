#include "app/collector/downstream_links.h"

#include <cerrno>
#include <cstddef>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "app/collector/moment_request.h"
#include "instrumentation/clock.h"

namespace shardscope::collector {

namespace {
constexpr double kRepeatRefusal_s = 5;
constexpr std::size_t kMostRefusals = 1024;
constexpr double kAskAgain_s = 0.1;  ///< at the end, interval of pings to peers without an answer
}  // namespace

DownstreamLinks::Sent DownstreamLinks::send(const std::string& route, const wire::Message& message) {
  const wire::Frame frame = wire::encode(message);
  sockets_.control_used();
  try {
    if (!sockets_.control.send(zmq::const_buffer(route.data(), route.size()),
                               zmq::send_flags::sndmore | zmq::send_flags::dontwait)) {
      return Sent::full;
    }
    (void)sockets_.control.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::dontwait);
  } catch (const zmq::error_t& error) {
    return error.num() == EHOSTUNREACH ? Sent::closed : Sent::full;
  }
  return Sent::taken;
}

DownstreamLinks::Sent DownstreamLinks::send(const RankSession& rank, wire::Body body) {
  if (rank.route.empty()) return Sent::taken;
  wire::Message message;
  message.header = header_;
  message.header.rank = rank.row.rank;
  message.body = std::move(body);
  return send(rank.route, message);
}

void DownstreamLinks::ping_nodes(double now_s, const instrumentation::HostClock& clock,
                                 const CollectorPace& pace) {
  for (const std::string& route : nodes_.pings_due(now_s)) {
    wire::Message message;
    message.header = header_;
    wire::Ping ping = next_ping(clock.at(instrumentation::monotonic_now_ns()), pace);
    if (const Nodes::Node* const node = nodes_.at(route); node != nullptr) ping.known = node->listing.known;
    message.body = ping;
    // A node's collector that still runs makes another connection.
    if (send(route, message) != Sent::closed) continue;
    if (Nodes::Node* const node = nodes_.at(route); node != nullptr) node->answer.connection_ended();
  }
}

std::vector<std::string> DownstreamLinks::ask_nodes_to_keep(const store::Moment& moment) {
  std::vector<std::string> missed = nodes_.not_reached();
  for (const std::string& route : nodes_.reached()) {
    const Nodes::Node* const node = nodes_.at(route);
    if (node == nullptr) continue;
    wire::RankCommand command;
    command.kind = wire::RankCommand::Kind::keep;
    command.text = moment_request_text(moment.kind, moment.text);
    command.step = moment.step;
    command.of_rank = moment.rank;
    // The offset is a function of the node's time. An estimate of that time, off by the drift over one
    // offset, suffices.
    const auto on_node = [&](std::int64_t at_ns) {
      return at_ns - node->clock.offset_ns(at_ns - node->clock.offset_ns(at_ns));
    };
    if (node->clock.known()) {
      command.at_ns = on_node(moment.at_ns);
      if (moment.lasts_until_ns > moment.at_ns) command.until_ns = on_node(moment.lasts_until_ns);
    }
    wire::Message message;
    message.header = header_;
    message.body = std::move(command);
    if (send(route, message) != Sent::taken) missed.push_back(node->host);
  }
  return missed;
}

void DownstreamLinks::refuse(const std::string& route, const wire::Header& to, const std::string& why,
                             double now_s) {
  if (refused_.size() >= kMostRefusals) refused_.clear();
  const auto [refused_at, first] = refused_.try_emplace(route, now_s);
  if (!first && now_s - refused_at->second < kRepeatRefusal_s) return;
  refused_at->second = now_s;
  wire::Message message;
  message.header = header_;
  message.header.run_id = to.run_id;
  message.header.rank = to.rank;
  message.body = wire::Refusal{why};
  send(route, message);
}

void DownstreamLinks::send_receipts(RankTable& ranks, double now_s, const Send& send) {
  for (const auto& [route, due] : std::exchange(receipts_due_, {})) {
    std::vector<RankSession*> named;  // in the receipt
    wire::Received receipt;
    const auto send_now = [&] {
      if (named.empty()) return;
      const Sent sent = send(*named.front(), std::exchange(receipt, {}));
      for (RankSession* const rank : std::exchange(named, {})) {
        if (sent == Sent::full) {
          queue_receipt(*rank);
        } else if (sent == Sent::taken) {
          rank->confirmed(now_s);
          if (rank->row.finished) await_answer(*rank);
        }
      }
    };
    for (const std::uint32_t id : due) {
      RankSession* const rank = ranks.known(id);
      if (rank == nullptr) continue;
      rank->receipt_pending = false;
      if (rank->route != route) {  // it has another route by now
        ranks.note_change(*rank, now_s);
        continue;
      }
      const RankSession::Confirmation what = rank->confirmation();
      if (named.empty()) {
        receipt.source = what.source;
        receipt.next = what.next;
      } else {
        receipt.others.push_back({id, what.source, what.next});
      }
      named.push_back(rank);
      if (receipt.others.size() == wire::Received::kMostOthers) send_now();
    }
    send_now();
  }
}

void DownstreamLinks::confirm_end(RankSession& rank, const Send& send) {
  wire::RankCommand command;
  command.kind = wire::RankCommand::Kind::finish_received;
  const Sent sent = send(rank, command);
  rank.end_unconfirmed = sent == Sent::full;
  if (sent == Sent::taken) await_answer(rank);
}

void DownstreamLinks::await_answer(RankSession& rank) {
  if (rank.route.empty()) return;
  if (rank.node_clock == nullptr) {
    rank.answer.sent_before(ping_id_ + 1);
  } else if (Nodes::Node* node = nodes_.at(rank.route); node != nullptr) {
    node->answer.sent_before(ping_id_ + 1);
  }
}

// [Note: who knows of an end]
// A rank, or a node's collector, waits at its end until this collector has confirmed it. When this collector
// ends, its connections close and the keys that it made are deleted; a client that detects this reconnects
// and loses unread messages: on a busy machine some tenths of a second of confirmations. So this collector
// ends only when the peers whose ends it has confirmed have answered a later ping, or have closed their
// connections: both mean that they have read the confirmation.
bool DownstreamLinks::answers_awaited(RankTable& ranks, double now_s) {
  const bool ask = now_s >= next_ask_s_;
  if (ask) {
    next_ask_s_ = now_s + kAskAgain_s;
    nodes_.ping_soon();
  }
  bool awaited = nodes_.any_awaited();
  for (auto& [id, rank] : ranks) {
    if (!rank.row.connected || !rank.row.finished || !(rank.answer.awaited() || rank.end_unconfirmed))
      continue;
    awaited = true;
    if (!ask) break;
    rank.next_ping_s = now_s;
    ranks.note_change(rank, now_s);
  }
  return awaited;
}

}  // namespace shardscope::collector
