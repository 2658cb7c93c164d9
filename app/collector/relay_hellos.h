// The hellos that a node's collector sends to the collector above: its ranks' and its own (NodeHello).
// Also decides which of the control messages that its ranks repeat are relayed (RepeatedMessages). Pure: the
// caller sends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/collector/hello_agreement.h"
#include "app/collector/hello_sum.h"
#include "app/collector/node_hello.h"
#include "app/collector/repeated_messages.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

class RelayHellos {
 public:
  struct LastHello {
    instrumentation::wire::Header header;
    instrumentation::wire::Hello hello;
  };

  /// Call for another connection: nothing was sent over it yet.
  void begin_anew() {
    node_.begin_anew();
    repeats_.forget();
  }
  /// The last messages sent may be lost, and no message passes before begin_anew().
  void connection_ended() {
    node_.connection_ended();
    repeats_.forget();
  }
  /// Discards the ranks' hellos: they were of another run than the one relayed.
  void forget_ranks() { last_hellos_.clear(); }
  [[nodiscard]] bool any_rank() const noexcept { return !last_hellos_.empty(); }
  /// The run id in the hello of the lowest rank; only if any_rank().
  [[nodiscard]] const std::string& run_id() const { return last_hellos_.begin()->second.header.run_id; }

  /// Whether a hello of the node is due; the caller then sends it.
  [[nodiscard]] bool node_due(double now_s) noexcept { return node_.due(now_s); }
  /// Stores a rank's hello; `header`: as sent to the collector above. True where a hello of the node is due
  /// first: the collector above ignores the hello of a rank before that of its node, since it would have
  /// no route for confirmations until the rank's next hello that passes. Not with each rank's hello: a hello
  /// of the node iterates over all ranks.
  [[nodiscard]] bool rank_hello(const instrumentation::wire::Header& header,
                                const instrumentation::wire::Hello& hello, double now_s) {
    last_hellos_[header.rank] = {header, hello};
    return !node_.named() && node_.due(now_s);
  }
  /// Whether a rank's hello is to be sent now. Where it is not, the rank repeats it.
  [[nodiscard]] bool passes(const instrumentation::wire::Header& header) {
    return node_.named() && repeats_.passes(header.rank, header.incarnation);
  }
  /// The same for a position. The collector above ignores ranks until the hello of their node.
  [[nodiscard]] bool passes(std::uint32_t rank, const instrumentation::wire::Position& position) {
    return node_.named() && repeats_.passes(rank, position);
  }
  /// The connection did not accept the rank's message that passed last.
  void not_taken(std::uint32_t rank) { repeats_.forget(rank); }
  /// The rank was silent: the collector above has discarded its position.
  void was_silent(std::uint32_t rank) { repeats_.forget_position(rank); }

  /// Call after sending the node's hello; `taken`: the connection accepted it. Returns the ranks' hellos to
  /// send after it: until the collector above pings, it may have ignored the hello as one of another run, and
  /// with it those of the ranks.
  [[nodiscard]] std::vector<const LastHello*> node_hello_sent(bool taken) {
    node_.hello_sent(taken);
    std::vector<const LastHello*> again;
    if (!taken || node_.known()) return again;
    for (const auto& [rank, last] : last_hellos_) {
      if (contains(listed_, rank)) again.push_back(&last);
    }
    return again;
  }
  /// The last hello of the header's rank; null: this process of the rank has sent none.
  [[nodiscard]] const LastHello* of(const instrumentation::wire::Header& header) const {
    const auto known = last_hellos_.find(header.rank);
    const bool same = known != last_hellos_.end() && known->second.header.incarnation == header.incarnation;
    return same ? &known->second : nullptr;
  }
  /// A hello of the node lists these ranks. Returns the checksum of those that have sent a hello, for that of
  /// the node.
  [[nodiscard]] std::uint64_t lists(const std::vector<instrumentation::wire::RelayHello::Range>& present,
                                    double now_s) {
    std::uint64_t sum = 0;
    for (const auto& [rank, last] : last_hellos_) {
      if (contains(present, rank)) sum += hello_sum(rank, last.header.incarnation);
    }
    listed_ = present;
    agreement_.announced(sum, now_s);
    return sum;
  }
  /// Process `above` has pinged, with its checksum `known`. Returns the hellos to send again: those of all
  /// ranks listed last, where `above` is another process or may have missed some, or where the checksums have
  /// differed for HelloAgreement's intervals. Hellos of unlisted ranks are of processes that have ended.
  [[nodiscard]] std::vector<const LastHello*> pinged(std::uint64_t above, std::uint64_t known, double now_s) {
    std::vector<const LastHello*> again;
    const bool anew = node_.pinged(above, now_s);
    if (anew) agreement_.begin(now_s);
    if (!anew && !agreement_.answered(known, now_s)) return again;
    repeats_.forget();
    for (const auto& [rank, last] : last_hellos_) {
      if (contains(listed_, rank) && repeats_.passes(rank, last.header.incarnation)) again.push_back(&last);
    }
    return again;
  }

 private:
  /// `ranges`: in ascending order.
  [[nodiscard]] static bool contains(const std::vector<instrumentation::wire::RelayHello::Range>& ranges,
                                     std::uint32_t rank) {
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), rank,
                                        [](std::uint32_t r, const auto& range) { return r < range.first; });
    return after != ranges.begin() && rank - (after - 1)->first < (after - 1)->count;
  }

  std::vector<instrumentation::wire::RelayHello::Range> listed_;  ///< with the last hello of the node
  HelloAgreement agreement_;
  std::map<std::uint32_t, LastHello> last_hellos_;  ///< the last hello of each rank
  NodeHello node_;
  RepeatedMessages repeats_;
};

}  // namespace shardscope::collector
