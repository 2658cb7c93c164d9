// Duration of transfers that share links. Pure: transfers in, times out.
//
// [Note: fair shares]
// A link divides its rate equally among its transfers, and the link with the smallest share determines the
// rate of a transfer: with n transfers on its busiest link it needs n nanoseconds for the work of one alone.
// Its unused share of other links is not given to others. If transfers use the same links, as the lanes of
// one rank do, that is exact.
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

  /// Adds a transfer that alone would take `alone_ns` on `links` (each once; must outlive the transfer).
  /// `key` must be unique among unfinished transfers, else throws std::logic_error. It may begin at any time;
  /// before the last end returned by next() its links count as unshared, since earlier transfers are
  /// forgotten.
  void add(std::uint64_t key, std::int64_t begin_ns, std::int64_t alone_ns,
           std::span<const std::uint32_t> links);

  struct End {
    std::uint64_t key = 0;
    std::int64_t ns = 0;
  };
  /// Removes and returns the transfer that ends first, among equal ones that with the lowest key; nullopt:
  /// there is none. Correct if no transfer that begins earlier is added later.
  [[nodiscard]] std::optional<End> next();

 private:
  struct Transfer {
    std::int64_t left = 0;      ///< remaining work, in fractions of unshared nanoseconds (see kParts)
    std::int64_t since_ns = 0;  ///< time for which `left` holds
    std::int64_t sharers = 0;   ///< transfers on its busiest link, itself included; 0: not begun
    std::int64_t end_ns = 0;    ///< if nothing changes
    std::span<const std::uint32_t> links;
  };
  /// A change of a transfer at a time: it begins or, if its rate has not changed since, ends.
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

  /// False: it ended before `now_ns`.
  [[nodiscard]] bool begin(std::uint64_t key, std::int64_t now_ns);
  /// Takes it off its links.
  void end(std::uint64_t key, std::int64_t now_ns);
  /// Recomputes the number of sharers from `now_ns` on, for all transfers on `links`.
  void share_anew(std::span<const std::uint32_t> links, std::int64_t now_ns);

  std::vector<std::vector<std::uint64_t>> on_link_;  ///< keys of the transfers that have begun
  std::unordered_map<std::uint64_t, Transfer> transfers_;
  std::priority_queue<Change, std::vector<Change>, std::greater<>> changes_;
  std::vector<std::uint64_t> affected_;
  std::int64_t now_ns_ = INT64_MIN;
};

}  // namespace shardscope::simulate
