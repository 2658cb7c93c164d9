// Lookups that the store does not provide: fetches with their outcome, waits of a rank in one list,
// parameters of a collective. Updated incrementally with a growing store.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "app/analysis/counters.h"
#include "app/gui/model/gradient_states.h"
#include "app/gui/model/step_series.h"
#include "app/store/store.h"
#include "instrumentation/event_fields.h"
#include "runtime/plan/prefetch_outcome.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

enum class FetchOutcome : std::uint8_t { pending, on_demand, early, just_in_time, late, mistargeted, unused };
[[nodiscard]] const char* word(FetchOutcome outcome) noexcept;

/// One coalesced all-gather of parameters on one rank, from issue to first use.
struct Fetch {
  std::uint32_t gather = ev::kNoId;
  std::uint32_t module = ev::kNoId;  ///< the module it was fetched for
  bool prefetched = false;
  std::int64_t started_ns = 0;           ///< its parameters became in flight
  std::int64_t ended_ns = store::kOpen;  ///< the operation ended on its lane
  std::int64_t used_ns = store::kOpen;   ///< its parameters became available to compute
  std::int64_t wait_ns = 0;              ///< time that compute waited for it
  std::int64_t elems = 0;
  std::vector<std::uint32_t> params;
  /// As reported by the rank (prefetch_outcome). nullopt for ranks that report none (attached frameworks):
  /// then derived from the times above.
  std::optional<plan::PrefetchOutcome> reported;
  [[nodiscard]] FetchOutcome outcome() const noexcept;
  /// Time between its arrival and its first use; 0 when late.
  [[nodiscard]] std::int64_t unused_ns() const noexcept;
};

/// NCCL's data on a collective, summed over its operations.
struct NcclNote {
  std::uint32_t operations = 0;
  ev::Fields<ev::EventKind::nccl_collective> first;
  bool alike = true;  ///< all have the algorithm, protocol, channels and warps of `first`
  std::uint32_t channels_timed = 0, channels_used = 0;
  std::int64_t kernel_ns = 0;  ///< of the longest kernel, GPU clock
  std::int64_t spread_ns = 0;  ///< maximum time between the ends of its first and last channel
  std::uint32_t proxies = 0;
  std::int64_t proxy_ns = 0;  ///< of the longest
};
/// Device memory outside the runtime at a time.
struct OutsideMemory {
  std::int64_t at_ns = 0;
  std::int64_t bytes = 0;
};
/// The last sample at or before a time; nullopt before the first.
[[nodiscard]] std::optional<std::int64_t> outside_at(std::span<const OutsideMemory> samples,
                                                     std::int64_t at_ns);

enum class Completeness : std::uint8_t { growing, complete };

/// Part of a run to index; default: all of it.
struct IndexWindow {
  std::int64_t begin_ns = store::Store::kBegin, end_ns = store::Store::kEnd;
  friend bool operator==(const IndexWindow&, const IndexWindow&) = default;
};

class RunIndex {
 public:
  using Window = IndexWindow;
  /// Adds what the store has received since the last call. In a live run the newest instants are left
  /// for the next call, because events of another thread of the rank may still be sorted in before
  /// them; with `complete` all are added. Only `window` is indexed; another window restarts the
  /// index.
  void update(const store::Store& store, Completeness completeness, Window window = {});
  /// The same in parts of a few milliseconds, for about `time`: call again until it returns true. Nothing is
  /// covered before that. What the store has received meanwhile is added with the last part.
  [[nodiscard]] bool advance(const store::Store& store, Completeness completeness, Window window,
                             std::chrono::nanoseconds time);
  /// Whether the recorded events in [begin, end) are indexed. False before the first
  /// update.
  [[nodiscard]] bool covers(std::int64_t begin_ns, std::int64_t end_ns) const noexcept {
    return begun_ && !next_ && window_.begin_ns <= begin_ns && end_ns <= window_.end_ns;
  }
  /// Whether all that the store has received in the window is indexed, as `completeness` demands.
  [[nodiscard]] bool current(const store::Store& store, Completeness completeness) const noexcept {
    return begun_ && !next_ && revision_ == store.revision() && completeness_ == completeness;
  }
  /// Whether the whole run is covered.
  [[nodiscard]] bool whole() const noexcept { return begun_ && !next_ && window_ == Window{}; }
  /// The window covered; nullopt before the first update.
  [[nodiscard]] std::optional<Window> extent() const noexcept {
    return begun_ ? std::optional(window_) : std::nullopt;
  }
  [[nodiscard]] std::span<const Fetch> fetches(std::uint32_t rank) const;  ///< by started_ns
  /// The fetch carried out by a span of the gather lane, or null.
  [[nodiscard]] const Fetch* fetch_of(std::uint32_t rank, const store::Span& gather_span) const;
  [[nodiscard]] const Fetch* fetch_by_id(std::uint32_t rank, std::uint32_t gather) const;
  [[nodiscard]] std::span<const store::Span> waits(std::uint32_t rank) const;  ///< by begin
  /// Index range of the `spans` (in order of begin, not overlapping) that overlap [begin, end).
  [[nodiscard]] static std::pair<std::size_t, std::size_t> overlapping(std::span<const store::Span> spans,
                                                                       std::int64_t begin_ns,
                                                                       std::int64_t end_ns);
  /// Parameters moved by collective `sequence` on this rank (reduce lanes; from its parts).
  [[nodiscard]] std::span<const std::uint32_t> parts(std::uint32_t rank, std::uint32_t sequence) const;
  /// NCCL's data on collective `sequence`; null if its plugin was not loaded or did not record it.
  [[nodiscard]] const NcclNote* nccl(std::uint32_t rank, std::uint32_t sequence) const;
  [[nodiscard]] std::span<const OutsideMemory> outside(std::uint32_t rank) const;  ///< by time
  [[nodiscard]] std::span<const BucketFlush> flushes(std::uint32_t rank) const;    ///< by time
  /// A rank's sampled counters, in order of their first sample.
  [[nodiscard]] std::span<const analysis::CounterSeries> counters(std::uint32_t rank) const;
  /// The values of one of them, for a curve; null if the rank has none of that name.
  [[nodiscard]] const StepSeries* counter_curve(std::uint32_t rank, const std::string& name) const;

 private:
  struct Seen {
    std::int64_t last_begin_ns = INT64_MIN;  ///< of the last span added
    std::int64_t from_ns = INT64_MIN;        ///< spans that ended earlier have been added
  };
  struct RankIndex {
    std::int64_t instants_until = INT64_MIN;  ///< instants up to this time have been added
    std::vector<Seen> gather_seen;            ///< per depth of the gather lane
    std::vector<Seen> compute_seen;           ///< per depth of the compute lane
    std::vector<Fetch> fetches;
    std::unordered_map<std::uint32_t, std::size_t> by_gather;
    std::vector<store::Span> waits;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> parts;
    std::unordered_map<std::uint32_t, NcclNote> nccl;
    std::vector<OutsideMemory> outside;
    std::vector<BucketFlush> flushes;
    analysis::CounterLog counters;
    std::vector<StepSeries> counter_curves;                  ///< of counters.series()
    std::vector<std::size_t> counter_samples;                ///< number of each that its curve has
    std::unordered_map<std::uint32_t, BucketFlush> filling;  ///< opened and not flushed yet
    std::unordered_set<std::uint32_t> prefetch_issued;
  };
  /// Restarts the index where its window or time 0 has changed.
  void begin(const store::Store& store, Window window);
  void take_instants(const store::Store& store, std::uint32_t rank, Completeness completeness,
                     RankIndex& index) const;
  static void take_counters(RankIndex& index);
  void take_waits(const store::Store& store, std::uint32_t rank, RankIndex& index) const;
  void take_gathers(const store::Store& store, std::uint32_t rank, RankIndex& index) const;
  /// Calls `take` for the spans of a depth that ended by `until_ns` and were not added before.
  template <typename Take>
  void take_ended(const store::Store& store, store::LaneId lane, std::uint8_t depth, std::int64_t until_ns,
                  Seen& seen, Take take) const;
  [[nodiscard]] static const Fetch* find_fetch(const RankIndex& index, const store::Span& span);
  std::map<std::uint32_t, RankIndex> ranks_;
  Window window_;
  bool begun_ = false;
  std::int64_t origin_ns_ = 0;
  std::uint64_t revision_ = 0;  ///< of the store, when reading began
  Completeness completeness_ = Completeness::growing;
  /// Where advance() goes on: a rank, and what of it is added next. nullopt: all has been added.
  enum class Part : std::uint8_t { instants, waits, gathers };
  struct Next {
    std::uint32_t rank = 0;
    Part part = Part::instants;
  };
  std::optional<Next> next_;
};

}  // namespace shardscope::gui
