#include "runtime/simulate/shared_links.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace shardscope::simulate {
namespace {

/// Work of one unshared nanosecond. Divisible by all numbers of sharers up to 8, so nothing is lost to
/// rounding when a rank's few lanes share its links.
constexpr std::int64_t kParts = 840;

}  // namespace

void SharedLinks::add(std::uint64_t key, std::int64_t begin_ns, std::int64_t alone_ns,
                      std::span<const std::uint32_t> links) {
  if (!transfers_.emplace(key, Transfer{alone_ns * kParts, begin_ns, 0, 0, links}).second)
    throw std::logic_error("shared links: transfer " + std::to_string(key) + " is under way");
  changes_.push({begin_ns, true, key});
}

std::optional<SharedLinks::End> SharedLinks::next() {
  while (!changes_.empty()) {
    const Change change = changes_.top();
    changes_.pop();
    now_ns_ = std::max(now_ns_, change.ns);
    if (change.begins) {
      if (begin(change.key, now_ns_)) continue;
      const End early{change.key, transfers_.at(change.key).end_ns};
      transfers_.erase(change.key);
      return early;
    }
    const auto found = transfers_.find(change.key);
    // Its rate has changed since: another entry has its end.
    if (found == transfers_.end() || found->second.sharers == 0 || found->second.end_ns != change.ns)
      continue;
    end(change.key, change.ns);
    return End{change.key, change.ns};
  }
  return std::nullopt;
}

bool SharedLinks::begin(std::uint64_t key, std::int64_t now_ns) {
  Transfer& transfer = transfers_.at(key);
  const std::int64_t alone_end_ns = transfer.since_ns + transfer.left / kParts;
  if (alone_end_ns < now_ns) {
    transfer.end_ns = alone_end_ns;
    return false;
  }
  transfer.left -= (now_ns - transfer.since_ns) * kParts;
  transfer.since_ns = now_ns;
  for (const std::uint32_t link : transfer.links) on_link_[link].push_back(key);
  if (transfer.links.empty()) affected_.push_back(key);
  share_anew(transfer.links, now_ns);
  return true;
}

void SharedLinks::end(std::uint64_t key, std::int64_t now_ns) {
  const std::span<const std::uint32_t> links = transfers_.at(key).links;
  for (const std::uint32_t link : links) std::erase(on_link_[link], key);
  transfers_.erase(key);
  share_anew(links, now_ns);
}

void SharedLinks::share_anew(std::span<const std::uint32_t> links, std::int64_t now_ns) {
  for (const std::uint32_t link : links) {
    for (const std::uint64_t key : on_link_[link]) {
      if (affected_.empty() || affected_.back() != key) affected_.push_back(key);
    }
  }
  std::sort(affected_.begin(), affected_.end());
  affected_.erase(std::unique(affected_.begin(), affected_.end()), affected_.end());
  for (const std::uint64_t key : affected_) {
    Transfer& transfer = transfers_.at(key);
    std::int64_t sharers = 1;
    for (const std::uint32_t link : transfer.links)
      sharers = std::max(sharers, static_cast<std::int64_t>(on_link_[link].size()));
    if (sharers == transfer.sharers) continue;
    if (transfer.sharers > 0) {
      transfer.left -= (now_ns - transfer.since_ns) * kParts / transfer.sharers;
      transfer.left = std::max<std::int64_t>(transfer.left, 0);
    }
    transfer.since_ns = now_ns;
    transfer.sharers = sharers;
    transfer.end_ns = now_ns + (transfer.left * sharers + kParts - 1) / kParts;
    changes_.push({transfer.end_ns, false, key});
  }
  affected_.clear();
}

}  // namespace shardscope::simulate
