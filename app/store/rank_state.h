// The state computed from one block of a rank's events: spans, instants, parameter statuses, memory,
// gates, buckets. The newest block of a run grows; an older one is rebuilt from its chunk when a query
// needs it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "app/store/bucket_tracker.h"
#include "app/store/kind_table.h"
#include "app/store/lane.h"
#include "app/store/memory_index.h"
#include "app/store/status_index.h"
#include "app/store/store.h"

namespace shardscope::store {

/// All state of a rank at one time that a later event may depend on. Times are on the collector's clock.
struct RankKeyframe {
  std::array<Lane::Keyframe, ev::kStreamCount> lanes;
  std::array<MemoryIndex::Keyframe, ev::kMemoryPoolCount> memory;
  std::vector<BucketState> buckets;
};

/// Interval of a rank's missing events. Collector's clock; kNever: unknown.
struct Missing {
  std::int64_t from_ns = Lane::kNever;
  std::int64_t until_ns = Lane::kNever;
  bool begun = false;  ///< an event after `from_ns` has been added
  [[nodiscard]] bool known() const noexcept { return from_ns != Lane::kNever; }
};
/// Missing events before a chunk or among its events. Where their begin is unknown, they
/// may be between its messages too.
[[nodiscard]] Missing missing_of(const Chunk& chunk);

/// With more ranks than this, the memory of a block, up to a megabyte, is not kept for the next.
inline constexpr std::size_t kRanksWithRoom = 32;

using EndWithoutBegin = Store::EndWithoutBegin;

struct InstantCount {
  ev::EventKind kind{};
  std::uint8_t code = 0;
  std::uint32_t count = 0;
};

/// Times are on the collector's clock.
class RankState {
 public:
  enum class For : std::uint8_t {
    views,   ///< everything
    blocks,  ///< what a block stores: numbers of instants and gates, latest statuses
    totals,  ///< no instants, statuses, gates and levels of detail
    // Parts of a block that is read again, one at a time.
    spans,
    states,    ///< statuses, memory, buckets
    instants,  ///< and gates
  };
  using Corrections = std::array<std::vector<MemoryIndex::Change>, ev::kMemoryPoolCount>;
  explicit RankState(For use = For::views);
  /// Continues from a keyframe and grows: with levels of detail, and corrects memory at gaps.
  RankState(const RankKeyframe& from, std::vector<ParamState> statuses);
  /// Rebuilds a block, or a part of it. `corrections`: those inserted by the memory indices the first time.
  RankState(const RankKeyframe& from, std::vector<ParamState> statuses, const Corrections& corrections,
            For use);

  /// Sets what depends on the run's stage.
  void set_stage(const std::array<bool, ev::kMemoryCategoryCount>& model_state, const ParamState& initial);
  /// Expected length of the block that begins: makes levels of detail cheaper.
  void expect(std::int64_t ns) noexcept;
  /// Events are missing since the latest one.
  void gap() { gap(Missing{}); }
  void add(const ev::Event& event, std::int64_t at_ns, const std::vector<std::uint32_t>& parents);
  /// Adds events; `clock_offset_ns` added to their times gives the collector's clock.
  void add(std::span<const ev::Event> events, std::int64_t clock_offset_ns,
           const std::vector<std::uint32_t>& parents, std::optional<Missing>& missing);
  /// Call before adding an event of `at_ns`. Makes open spans uncertain: when the interval of the missing
  /// events begins those open before it, when it ends those begun within it. At once where the interval is
  /// unknown. Resets `missing` at its end.
  void note_missing_until(std::int64_t at_ns, std::optional<Missing>& missing) {
    if (missing) [[unlikely]]
      pass_missing(at_ns, missing);
  }
  /// Call after the last event of a chunk.
  void end_missing(std::optional<Missing>& missing);
  /// Reserves memory for these events, where all are added at once.
  void reserve(std::span<const ev::Event> events);
  /// Sorts and indexes events since the last call.
  void settle();
  /// Ends the block: completes its levels of detail.
  void close_stretch();
  /// Begins the next block: `sink(lane, span)` receives every span that has ended.
  template <typename Sink>
  void begin_next_stretch(Sink sink) {
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].begin_next_stretch([&](const Span& span) { sink(static_cast<ev::StreamId>(i), span); });
    }
    for (MemoryIndex& memory : memory_) memory.begin_next_stretch();
    status_.begin_next_stretch();
    instants_.clear();
    counts_.clear();
    unmatched_ends_.clear();
    ends_without_begin_.clear();
    gates_.clear();
    gate_count_ = 0;
    notable_.clear();
    bucket_events_.clear();
    settled_instants_ = settled_gates_ = settled_buckets_ = 0;
    buckets_before_ = buckets_.open();
  }

  /// After begin_next_stretch(): frees the memory of the last block. With few ranks it is cheaper to
  /// keep it.
  void shrink() {
    for (Lane& lane : lanes_) lane.shrink();
    notable_.shrink_to_fit();
  }

  [[nodiscard]] RankKeyframe keyframe() const;
  /// Earliest begin of an open span; INT64_MAX where none is open.
  [[nodiscard]] std::int64_t open_since() const noexcept;
  [[nodiscard]] const Lane& lane(ev::StreamId stream) const;
  [[nodiscard]] const std::array<Lane, ev::kStreamCount>& lanes() const noexcept { return lanes_; }
  [[nodiscard]] const std::vector<ev::Event>& instants() const noexcept { return instants_; }
  [[nodiscard]] std::vector<InstantCount> instant_counts() const;  ///< by kind and code
  /// Ends whose begin is missing, by kind; code 1: explained.
  [[nodiscard]] const std::vector<InstantCount>& unmatched_ends() const noexcept { return unmatched_ends_; }
  /// Only where the events were read for views or spans.
  [[nodiscard]] const std::vector<EndWithoutBegin>& ends_without_begin() const noexcept {
    return ends_without_begin_;
  }
  [[nodiscard]] const StatusIndex& status() const noexcept { return status_; }
  [[nodiscard]] const MemoryIndex& memory(std::size_t pool) const { return memory_[pool]; }
  [[nodiscard]] const std::vector<Store::GateRow>& gates() const noexcept { return gates_; }
  [[nodiscard]] std::uint32_t gate_count() const noexcept { return gate_count_; }
  /// Events from which the table of steps is computed, in order of arrival: step_*, values of steps, tokens,
  /// and paused_end with the duration of the pause in v0.
  [[nodiscard]] const std::vector<ev::Event>& notable() const noexcept { return notable_; }
  [[nodiscard]] std::vector<BucketState> buckets_at(std::int64_t at_ns) const;
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  void gap(const Missing& missing);
  void pass_missing(std::int64_t at_ns, std::optional<Missing>& missing);
  void add_instant(const ev::Event& event, std::int64_t at_ns);
  void add_of_state(const ev::Event& event, std::int64_t at_ns);  ///< statuses, memory, buckets
  void note(const ev::Event& event, std::int64_t at_ns);
  void count_unmatched_end(const ev::Event& end, std::int64_t at_ns);
  /// Whether this part of the events is kept; blocks have only numbers of instants.
  [[nodiscard]] bool keeps(For part) const noexcept {
    return for_ == For::views || for_ == part || (for_ == For::blocks && part != For::instants);
  }

  For for_ = For::views;
  std::array<Lane, ev::kStreamCount> lanes_;
  std::vector<ev::Event> instants_;  ///< `ticks` has nanoseconds of the collector's clock
  KindTable<std::uint32_t> counts_;  ///< of instants, for blocks
  std::vector<InstantCount> unmatched_ends_;
  std::vector<EndWithoutBegin> ends_without_begin_;
  StatusIndex status_;
  std::array<MemoryIndex, ev::kMemoryPoolCount> memory_;
  std::vector<Store::GateRow> gates_;
  std::uint32_t gate_count_ = 0;
  std::vector<ev::Event> notable_;
  std::vector<ev::Event> bucket_events_;  ///< as instants_
  BucketTracker buckets_;
  std::vector<BucketState> buckets_before_;  ///< at the begin of the block
  std::size_t settled_instants_ = 0, settled_gates_ = 0, settled_buckets_ = 0;
};

}  // namespace shardscope::store
