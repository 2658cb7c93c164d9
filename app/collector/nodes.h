// The collectors of nodes below this one: route, clock and liveness of each. Pure: the caller sends, and
// passes in received messages and the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/collector/awaited_answer.h"
#include "app/collector/clock_estimator.h"
#include "app/collector/rank_listing.h"

namespace shardscope::collector {

class Nodes {
 public:
  static constexpr double kSilent_s = 6;
  static constexpr std::size_t kMost = 4096;        ///< nodes stored, disconnected ones among them
  static constexpr std::uint32_t kQuickPings = 10;  ///< the first of a node: its first chunks need its clock

  class Node {
   public:
    std::string host;
    ClockEstimator clock;  ///< the times of the node's ranks are on it
    AwaitedAnswer answer;  ///< to the confirmations of its ranks' ends
    RankListing listing;

   private:
    friend class Nodes;
    std::string route_;  ///< unique; empty: another node has sent a hello from there since
    double last_message_s_ = 0, next_ping_s_ = 0;
    std::uint32_t pings_ = 0;
    bool gone_ = false;
  };

  enum class HelloOutcome : std::uint8_t {
    first,
    again,
    back,     ///< it had been silent
    refused,  ///< there are kMost others; it is not added
  };
  /// Whether anything points to the node's clock, so that the node must not be erased.
  using InUse = std::function<bool(const Node&)>;
  /// Handles a hello of a node's collector, the first or a repeated one. `incarnation`: its process. A route
  /// belongs to the process whose hello came from it last. A node without a route is erased unless it is in
  /// use: at once when a hello of another node comes from its route, silent ones when there are kMost. Only
  /// then `in_use` is called.
  HelloOutcome hello_received(
      std::uint64_t incarnation, const std::string& route, const std::string& host, bool same_clock,
      double now_s, const InUse& in_use = [](const Node&) { return true; });
  /// Null: no node has this route. The pointer is valid while the node is in use, until clear().
  [[nodiscard]] Node* at(const std::string& route);
  /// The same, for a message received from there.
  Node* received_from(const std::string& route, double now_s);
  /// Hosts whose collector has become silent since the last call.
  [[nodiscard]] std::vector<std::string> take_newly_silent(double now_s);
  /// Nodes whose stored list of ranks is older than `seconds`.
  [[nodiscard]] std::vector<Node*> not_listing(double now_s, double seconds);
  /// Marks each node's ranks to be compared one by one with its next hello.
  void ranks_changed() noexcept;
  /// Routes of nodes, not silent, to which a ping is due; counts the pings as sent.
  [[nodiscard]] std::vector<std::string> pings_due(double now_s);
  /// Routes of the nodes that are not silent; hosts of the silent ones and of those without a route.
  [[nodiscard]] std::vector<std::string> reached() const;
  [[nodiscard]] std::vector<std::string> not_reached() const;
  /// Makes all pings due now: their content has changed.
  void ping_soon() noexcept;
  /// Whether a node that is not silent still owes an answer (Node::answer).
  [[nodiscard]] bool any_awaited() const noexcept;
  /// Extends deadlines by a time in which this collector itself received nothing: no node was silent then.
  void extend_deadlines(double seconds);
  void clear();
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }

 private:
  void forget_unreached(const InUse& in_use);
  std::map<std::uint64_t, Node> nodes_;            ///< by incarnation
  std::map<std::string, std::uint64_t> at_route_;  ///< incarnations
};

}  // namespace shardscope::collector
