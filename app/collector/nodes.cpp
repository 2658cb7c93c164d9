#include "app/collector/nodes.h"

#include <algorithm>
#include <utility>

namespace shardscope::collector {

Nodes::HelloOutcome Nodes::hello_received(std::uint64_t incarnation, const std::string& route,
                                          const std::string& host, bool same_clock, double now_s,
                                          const InUse& in_use) {
  if (nodes_.size() >= kMost && !nodes_.contains(incarnation)) {
    forget_unreached(in_use);
    if (nodes_.size() >= kMost) return HelloOutcome::refused;
  }
  const auto [known, added] = nodes_.try_emplace(incarnation);
  Node& node = known->second;
  if (node.route_ != route) {
    at_route_.erase(node.route_);
    if (const auto before = at_route_.find(route); before != at_route_.end()) {
      Node& other = nodes_[before->second];
      other.route_.clear();
      other.answer.connection_ended();
      if (!in_use(other)) nodes_.erase(before->second);
    }
    at_route_[route] = incarnation;
    node.route_ = route;
    node.listing.changed = true;  // its ranks have no route there before a hello of theirs comes from there
    node.next_ping_s_ = 0;        // it repeats all hellos until it is pinged there
  }
  node.host = host;
  node.last_message_s_ = now_s;
  if (added && same_clock) node.clock.same_clock();
  if (std::exchange(node.gone_, false)) return HelloOutcome::back;
  return added ? HelloOutcome::first : HelloOutcome::again;
}

void Nodes::forget_unreached(const InUse& in_use) {
  std::erase_if(nodes_, [&](const auto& entry) {
    const Node& node = entry.second;
    if (!(node.gone_ || node.route_.empty()) || in_use(node)) return false;
    if (!node.route_.empty()) at_route_.erase(node.route_);
    return true;
  });
}

Nodes::Node* Nodes::at(const std::string& route) {
  const auto known = at_route_.find(route);
  return known == at_route_.end() ? nullptr : &nodes_[known->second];
}

Nodes::Node* Nodes::received_from(const std::string& route, double now_s) {
  Node* const node = at(route);
  if (node != nullptr) node->last_message_s_ = now_s;
  return node;
}

std::vector<std::string> Nodes::take_newly_silent(double now_s) {
  std::vector<std::string> hosts;
  for (auto& [incarnation, node] : nodes_) {
    if (node.gone_ || now_s - node.last_message_s_ <= kSilent_s) continue;
    node.gone_ = true;
    hosts.push_back(node.host);
  }
  return hosts;
}

std::vector<Nodes::Node*> Nodes::not_listing(double now_s, double seconds) {
  std::vector<Node*> out;
  for (auto& [incarnation, node] : nodes_) {
    if (node.listing.kept && now_s - node.listing.at_s > seconds) out.push_back(&node);
  }
  return out;
}

void Nodes::ranks_changed() noexcept {
  for (auto& [incarnation, node] : nodes_) node.listing.changed = true;
}

std::vector<std::string> Nodes::pings_due(double now_s) {
  std::vector<std::string> routes;
  for (auto& [incarnation, node] : nodes_) {
    if (node.gone_ || node.route_.empty() || now_s < node.next_ping_s_) continue;
    node.next_ping_s_ = now_s + (node.pings_++ < kQuickPings ? 0.02 : 1.0);
    routes.push_back(node.route_);
  }
  return routes;
}

std::vector<std::string> Nodes::reached() const {
  std::vector<std::string> routes;
  for (const auto& [incarnation, node] : nodes_) {
    if (!node.gone_ && !node.route_.empty()) routes.push_back(node.route_);
  }
  return routes;
}

std::vector<std::string> Nodes::not_reached() const {
  std::vector<std::string> hosts;
  for (const auto& [incarnation, node] : nodes_) {
    if (node.gone_ || node.route_.empty()) hosts.push_back(node.host);
  }
  return hosts;
}

void Nodes::ping_soon() noexcept {
  for (auto& [incarnation, node] : nodes_) node.next_ping_s_ = 0;
}

bool Nodes::any_awaited() const noexcept {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto& entry) { return !entry.second.gone_ && entry.second.answer.awaited(); });
}

void Nodes::extend_deadlines(double seconds) {
  for (auto& [incarnation, node] : nodes_) {
    node.last_message_s_ += seconds;
    node.listing.at_s += seconds;
  }
}

void Nodes::clear() {
  nodes_.clear();
  at_route_.clear();
}

}  // namespace shardscope::collector
