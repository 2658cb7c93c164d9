// Collectors in a chain: messages of nodes' collectors below this one, and, where this is a node's collector
// itself, relaying between its ranks and the collector above.
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "app/collector/collector_state.h"
#include "app/collector/now.h"
#include "app/store/silences.h"

namespace shardscope::collector {

void Collector::State::on_node(const std::string& route, const wire::Header& from,
                               const wire::RelayHello& hello) {
  const bool same_clock = hello.clock_id == clock_id;
  const double now = now_s();
  std::optional<std::set<const ClockEstimator*>> used;
  const auto in_use = [&](const Nodes::Node& node) {
    if (!used) {
      used.emplace();
      for (const auto& [id, rank] : ranks) used->insert(rank.node_clock);
    }
    return used->contains(&node.clock);
  };
  switch (down.nodes().hello_received(from.incarnation, route, hello.host, same_clock, now, in_use)) {
    case Nodes::HelloOutcome::refused:
      problems.reject("node", "the collector of node " + hello.host,
                      "there are " + std::to_string(Nodes::kMost) + " others already");
      return;
    case Nodes::HelloOutcome::back:
      messages.record(0, Severity::info, "the collector of node " + hello.host + " is back");
      break;
    case Nodes::HelloOutcome::first:
    case Nodes::HelloOutcome::again:
      break;
  }
  const auto begins = [this, now](RankSession& rank) { liveness.begin_silence(rank, now); };
  const auto ends = [this, now](RankSession& rank) {
    liveness.end_silence(rank, now, store::Resumption::on_another_host);
  };
  listed.take(*down.nodes().at(route), route, hello, now, {begins, ends});
}

void Collector::State::service_nodes(double now) {
  for (const std::string& node_host : down.nodes().take_newly_silent(now)) {
    messages.record(0, Severity::error,
                    "the collector of node " + node_host + " has been silent for " +
                        std::to_string(static_cast<int>(Nodes::kSilent_s)) + " s");
  }
  for (Nodes::Node* const node : down.nodes().not_listing(now, RankTable::kSilentAfter_s))
    listed.forget(*node, now);
  down.ping_nodes(now, options.clock, pacing.pace());
}

void Collector::State::start_upstream() {
  relay.start(
      sockets.context,
      UpstreamOptions{.endpoint = options.upstream,
                      .key_file = options.upstream_key,
                      .bytes = options.intake_bytes,
                      .id = header.incarnation,
                      .host = host,
                      .clock_id = clock_id,
                      .clock = options.clock,
                      .command = {},
                      .keep = [this](const wire::RankCommand& command) { moments.take_from_above(command); },
                      .list_ranks = [this](wire::RelayHello& hello) { listed.add_to(hello, now_s()); }},
      [this](RankSession& rank, wire::Body body) { sender.send(rank, std::move(body)); });
}

void Collector::State::forward_upstream() {
  if (!relay.forward()) return;
  problems.report("upstream",
                  "the collector above takes events in too slowly: this one sheds them, lowest detail first");
}

}  // namespace shardscope::collector
