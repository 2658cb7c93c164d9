// Transfers that share links: how long each takes when others are on the same links meanwhile. Pure:
// transfers in, times out.
//
// [Note: fair shares]
// A link gives each of the transfers on it an equal part of its rate, and a transfer goes at the pace of the
// link on which it gets least: with n transfers on its busiest link it needs n nanoseconds for what alone
// takes one. What it leaves of its other links is not given to others. Where transfers use the same links, as
// the lanes of one rank do, that is exact.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <unordered_map>
#include <vector>

namespace shardscope::simulate {

class SharedLinks {
 public:
  /// Links are numbered from 0.
  explicit SharedLinks(std::size_t links) : on_link_(links) {}

  /// A transfer that alone would take `alone_ns` on `links` (each once; they outlive the transfer). `key` is
  /// its own among those that have not ended; throws std::logic_error. It may begin at any time; before the
  /// last end that next() returned, its links are taken to have been unshared: earlier transfers are
  /// forgotten.
  void add(std::uint64_t key, std::int64_t begin_ns, std::int64_t alone_ns,
           std::span<const std::uint32_t> links);

  struct End {
    std::uint64_t key = 0;
    std::int64_t ns = 0;
  };
  /// The transfer that ends first of those that were added, of equal ones that with the lowest key: it is on
  /// no link any more. nullopt: there is none. It holds if nothing that begins before is added afterwards.
  [[nodiscard]] std::optional<End> next();

 private:
  struct Transfer {
    std::int64_t left = 0;      ///< of its work, in parts of nanoseconds alone on its links (see kParts)
    std::int64_t since_ns = 0;  ///< when that was so
    std::int64_t sharers = 0;   ///< on its busiest link, itself included; 0: it has not begun
    std::int64_t end_ns = 0;    ///< if nothing changes
    std::span<const std::uint32_t> links;
  };
  /// What happens to a transfer at a time: it begins, or, if nothing changed since, it ends.
  struct Change {
    std::int64_t ns = 0;
    bool begins = false;
    std::uint64_t key = 0;
    /// Ends first: a transfer that begins at that time does not share with them.
    [[nodiscard]] bool operator>(const Change& other) const noexcept {
      if (ns != other.ns) return ns > other.ns;
      if (begins != other.begins) return begins;
      return key > other.key;
    }
  };

  /// False: it was over before now.
  [[nodiscard]] bool begin(std::uint64_t key, std::int64_t now_ns);
  /// Takes it off its links.
  void end(std::uint64_t key, std::int64_t now_ns);
  /// How many share its busiest link is counted anew, from now on, for it and those on its links.
  void share_anew(std::span<const std::uint32_t> links, std::int64_t now_ns);

  std::vector<std::vector<std::uint64_t>> on_link_;  ///< keys of the transfers that have begun
  std::unordered_map<std::uint64_t, Transfer> transfers_;
  std::priority_queue<Change, std::vector<Change>, std::greater<>> changes_;
  std::vector<std::uint64_t> affected_;
  std::int64_t now_ns_ = INT64_MIN;
};

}  // namespace shardscope::simulate
