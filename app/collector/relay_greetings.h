// What a node's collector sends to the collector above about who is there: which of its ranks have greeted,
// when it greets itself (NodeGreeting), and which messages of its ranks are passed on again
// (RepeatedMessages). Pure: the caller sends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/collector/greeted_sum.h"
#include "app/collector/greeting_agreement.h"
#include "app/collector/node_greeting.h"
#include "app/collector/repeated_messages.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

class RelayGreetings {
 public:
  struct LastHello {
    instrumentation::wire::Header header;
    instrumentation::wire::Hello hello;
  };

  /// Nothing has been sent over another connection.
  void begin_anew() {
    node_.begin_anew();
    repeats_.forget();
  }
  /// What was sent last over it may be lost, and nothing passes before begin_anew().
  void connection_ended() {
    node_.connection_ended();
    repeats_.forget();
  }
  /// They were of another run than is passed on.
  void forget_ranks() { last_hellos_.clear(); }
  [[nodiscard]] bool any_rank() const noexcept { return !last_hellos_.empty(); }
  /// That of the first rank; one has greeted.
  [[nodiscard]] const std::string& run_id() const { return last_hellos_.begin()->second.header.run_id; }

  /// A hello of the node is due, which is then sent.
  [[nodiscard]] bool node_due(double now_s) noexcept { return node_.due(now_s); }
  /// A rank greets; `header` is as the collector above gets it. True where a hello of the node is due first:
  /// of a rank whose node it does not know yet the collector above takes none, as it would have nowhere to
  /// send its confirmations to until the rank's next hello that passes. Not with each rank's hello: a hello
  /// of the node goes over all ranks.
  [[nodiscard]] bool rank_greets(const instrumentation::wire::Header& header,
                                 const instrumentation::wire::Hello& hello, double now_s) {
    last_hellos_[header.rank] = {header, hello};
    return !node_.named() && node_.due(now_s);
  }
  /// Whether its hello is to be sent now. Where it is not, the rank sends it again.
  [[nodiscard]] bool passes(const instrumentation::wire::Header& header) {
    return node_.named() && repeats_.passes(header.rank, header.incarnation);
  }
  /// The collector above takes none of a rank that has not greeted over this connection.
  [[nodiscard]] bool passes(std::uint32_t rank, const instrumentation::wire::Position& position) {
    return node_.named() && repeats_.passes(rank, position);
  }
  /// The connection did not take what passed last of it.
  void not_taken(std::uint32_t rank) { repeats_.forget(rank); }
  /// The rank was silent: a pause does not wait for it, and where it is counts no more above.
  void was_silent(std::uint32_t rank) { repeats_.forget_position(rank); }

  /// The node's hello was sent. What is to follow it, of the ranks that it lists: the collector above may
  /// have taken it for no message of its run, and then takes none of its ranks'. Once it pings the node it
  /// knows it.
  [[nodiscard]] std::vector<const LastHello*> node_hello_sent(bool taken) {
    node_.hello_sent(taken);
    std::vector<const LastHello*> again;
    if (!taken || node_.known()) return again;
    for (const auto& [rank, last] : last_hellos_) {
      if (contains(listed_, rank)) again.push_back(&last);
    }
    return again;
  }
  /// Null: this process of the rank has not greeted.
  [[nodiscard]] const LastHello* of(const instrumentation::wire::Header& header) const {
    const auto known = last_hellos_.find(header.rank);
    const bool same = known != last_hellos_.end() && known->second.header.incarnation == header.incarnation;
    return same ? &known->second : nullptr;
  }
  /// A hello of the node lists these ranks. Returns the sum of who has greeted of them, for that hello.
  [[nodiscard]] std::uint64_t lists(const std::vector<instrumentation::wire::RelayHello::Range>& present,
                                    double now_s) {
    std::uint64_t sum = 0;
    for (const auto& [rank, last] : last_hellos_) {
      if (contains(present, rank)) sum += greeted_sum(rank, last.header.incarnation);
    }
    listed_ = present;
    agreement_.announced(sum, now_s);
    return sum;
  }
  /// Process `above` has pinged; it sums up `known` of the ranks that were listed to it. What is to be sent
  /// then of the ranks that were listed last: all, where it is another than before, or may have missed some,
  /// or where the sums have differed for a while. The hellos of the others are of processes that have gone.
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
  GreetingAgreement agreement_;
  std::map<std::uint32_t, LastHello> last_hellos_;  ///< the last hello of each rank
  NodeGreeting node_;
  RepeatedMessages repeats_;
};

}  // namespace shardscope::collector
