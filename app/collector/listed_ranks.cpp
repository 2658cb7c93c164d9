#include "app/collector/listed_ranks.h"

#include <algorithm>
#include <utility>

#include "app/collector/hello_sum.h"
#include "app/collector/rank_listing.h"

namespace shardscope::collector {

namespace {
constexpr double kLately_s = 2;  ///< a rank sends a message at least every second
}  // namespace

void ListedRanks::take(Nodes::Node& node, const std::string& route, const wire::RelayHello& hello,
                       double now_s, const OnSilence& on_silence) {
  if (!node.listing.settled(hello)) take_list(node, route, hello, now_s, on_silence);
  node.listing.at_s = now_s;
}

void ListedRanks::take_list(Nodes::Node& node, const std::string& route, const wire::RelayHello& hello,
                            double now_s, const OnSilence& on_silence) {
  const Ranges before = clear_listing(node);
  RankListing& listing = node.listing;
  listing.at_s = now_s;
  listing.known = 0;
  listing.hello_sum = hello.hello_sum;
  // The ranks of a node that sends no checksum are iterated over with each hello.
  listing.kept =
      hello.hello_sum != 0 && std::max(hello.present.size(), hello.silent.size()) <= RankListing::kMostRanges;
  if (listing.kept) {
    listing.present = hello.present;
    listing.silent = hello.silent;
  }
  auto silent = hello.silent.begin();
  for (const wire::RelayHello::Range& range : hello.present) {
    const auto end = ranks_.from(range.first + range.count);
    for (auto at = ranks_.from(range.first); at != end; ++at) {
      RankSession& rank = at->second;
      if (rank.route != route) continue;
      while (silent != hello.silent.end() && silent->first + silent->count <= at->first) ++silent;
      const bool is_silent = silent != hello.silent.end() && silent->first <= at->first;
      if (is_silent && !rank.silent() && rank.row.connected && !rank.row.finished) on_silence.begins(rank);
      if (!is_silent && rank.silent()) on_silence.ends(rank);
      rank.control_received(now_s);
      listing.known += hello_sum(at->first, rank.control_incarnation);
      if (listing.kept && rank.node_clock == &node.clock) rank.listed_s = &listing.at_s;
    }
  }
  listing.changed = false;
  reschedule_unlisted(before, now_s);
}

void ListedRanks::forget(Nodes::Node& node, double now_s) { reschedule_unlisted(clear_listing(node), now_s); }

ListedRanks::Ranges ListedRanks::clear_listing(Nodes::Node& node) {
  RankListing& listing = node.listing;
  for (const wire::RelayHello::Range& range : listing.present) {
    const auto end = ranks_.from(range.first + range.count);
    for (auto at = ranks_.from(range.first); at != end; ++at) {
      RankSession& rank = at->second;
      if (rank.listed_s != &listing.at_s) continue;
      rank.note_listed();
      rank.listed_s = nullptr;
    }
  }
  listing.kept = false;
  listing.silent.clear();
  return std::exchange(listing.present, {});
}

void ListedRanks::reschedule_unlisted(const Ranges& before, double now_s) {
  for (const wire::RelayHello::Range& range : before) {
    const auto end = ranks_.from(range.first + range.count);
    for (auto at = ranks_.from(range.first); at != end; ++at) {
      if (at->second.listed_s == nullptr) ranks_.note_change(at->second, now_s);  // its deadline for silence
    }
  }
}

void ListedRanks::rank_changed(const RankSession& rank) {
  if (rank.node_clock == nullptr || rank.route.empty()) return;
  if (Nodes::Node* const node = nodes_.at(rank.route); node != nullptr) node->listing.changed = true;
}

void ListedRanks::add_to(wire::RelayHello& hello, double now_s) const {
  const auto add = [](Ranges& to, std::uint32_t rank) {
    if (!to.empty() && to.back().first + to.back().count == rank) {
      ++to.back().count;
    } else {
      to.push_back({rank, 1});
    }
  };
  const double since = now_s - kLately_s;
  for (const auto& [id, rank] : std::as_const(ranks_)) {
    if (!rank.row.connected || (rank.last_control() < since && !rank.silent())) continue;
    add(hello.present, id);
    if (rank.silent()) add(hello.silent, id);
  }
}

}  // namespace shardscope::collector
