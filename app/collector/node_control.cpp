// Collectors in a chain: messages to those of the nodes below this one, and, where it is one of those itself,
// what it relays between its ranks and the collector above.
#include <algorithm>
#include <utility>

#include "app/collector/collector_state.h"
#include "app/collector/now.h"

namespace shardscope::collector {

namespace {
constexpr double kNodeSilent_s = 6;
}

Collector::State::Node* Collector::State::node_at(const std::string& route) {
  const auto known = node_routes.find(route);
  return known == node_routes.end() ? nullptr : &nodes[known->second];
}

void Collector::State::on_node(const std::string& route, const wire::Header& from,
                               const wire::RelayHello& hello) {
  const auto [at, added] = nodes.try_emplace(from.incarnation);
  Node& node = at->second;
  if (node.route != route) {
    node_routes.erase(node.route);
    node_routes[route] = from.incarnation;
    node.route = route;
  }
  node.host = hello.host;
  node.last_message_s = now_s();
  if (added && hello.clock_id == clock_id) node.clock.same_clock();
  if (std::exchange(node.gone, false)) {
    record_message(0, clock_now(), Severity::info, "the collector of node " + node.host + " is back");
  }
}

void Collector::State::look_after_nodes(double now) {
  for (auto& [id, node] : nodes) {
    if (!node.gone && now - node.last_message_s > kNodeSilent_s) {
      node.gone = true;
      record_message(0, clock_now(), Severity::error,
                     "the collector of node " + node.host + " has been silent for " +
                         std::to_string(static_cast<int>(kNodeSilent_s)) + " s");
    }
    if (node.gone || now < node.next_ping_s) continue;
    node.next_ping_s = now + (node.pings++ < 10 ? 0.02 : 1.0);
    wire::Message message;
    message.header = header;
    message.body = wire::Ping{++ping_id, clock_now()};
    const wire::Frame frame = wire::encode(message);
    sockets.control_used();
    try {
      if (!sockets.control.send(zmq::const_buffer(node.route.data(), node.route.size()),
                                zmq::send_flags::sndmore | zmq::send_flags::dontwait)) {
        continue;
      }
      (void)sockets.control.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::dontwait);
    } catch (const zmq::error_t&) {  // it has closed its connection; if it lives, it makes another
    }
  }
}

void Collector::State::pass_command(std::uint32_t rank, wire::RankCommand command) {
  const auto known = ranks.find(rank);
  if (known == ranks.end()) return;
  // Ranks know this collector's numbers only; the answer goes up with the number of the request from above.
  const std::uint64_t theirs = std::exchange(command.id, 0);
  command = pauses.numbered(command);
  if (command.kind == wire::RankCommand::Kind::prepare_pause) {
    prepared_for_upstream[rank] = {command.id, theirs};
  }
  send_to_rank(known->second, command);
}

void Collector::State::pass_control(const wire::Message& message) {
  wire::Body body = message.body;
  if (auto* prepared = std::get_if<wire::Prepared>(&body)) {
    const auto asked = prepared_for_upstream.find(message.header.rank);
    if (asked == prepared_for_upstream.end() || asked->second.first != prepared->command) return;
    prepared->command = asked->second.second;
  }
  upstream->control(message.header, std::move(body));
}

void Collector::State::start_upstream() {
  upstream.emplace(sockets.context,
                   UpstreamOptions{.endpoint = options.upstream,
                                   .key_file = options.upstream_key,
                                   .bytes = options.intake_bytes,
                                   .id = header.incarnation,
                                   .host = host,
                                   .clock_id = clock_id,
                                   .clock = options.clock,
                                   .command = [this](std::uint32_t rank, const wire::RankCommand& command) {
                                     pass_command(rank, command);
                                   }});
}

void Collector::State::pass_upstream() {
  upstream->pump(now_s());
  if (upstream->shed() != status.shed_upstream) {  // which only this thread writes
    report_problem("upstream",
                   "the collector above takes events in too slowly: this one sheds them, lowest detail "
                   "first");
  }
  // A node has seen the end when each of its ranks has ended and the collector above knows it all.
  const bool all =
      !ranks.empty() && ranks.size() >= identity.local_world() &&
      std::all_of(ranks.begin(), ranks.end(), [](const auto& e) { return e.second.row.finished; });
  // The collector above may have ended before its last word came here: when it has been sent everything, that
  // is waited for as long as for anything else at the end.
  const double now = now_s();
  if (!all || !upstream->sent()) all_sent_s = now;
  const bool over = all && (upstream->drained() || now - all_sent_s > options.linger_s);
  const std::lock_guard lock(status_mutex);
  status.shed_upstream = upstream->shed();
  status.finished = over;
}

}  // namespace shardscope::collector
