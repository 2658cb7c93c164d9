// State of a rank's gradients at a time, for every stage: not written, accumulated, in a bucket, being
// reduced, reduced.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "app/store/store.h"
#include "app/store/vocabulary.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

enum class GradientStatus : std::uint8_t {
  none,         ///< not written in this step yet
  accumulated,  ///< its module's backward is over; not given to a bucket or a reduction yet
  in_bucket,    ///< in a bucket that is filling
  flushed,      ///< its bucket was flushed and waits for its reduction
  reducing,
  reduced,  ///< at its owner, and freed elsewhere; below stage 2: at every rank
};
/// In the vocabulary of the run's framework.
[[nodiscard]] const char* word(const store::Vocabulary& words, GradientStatus status) noexcept;

struct GradientState {
  GradientStatus status = GradientStatus::none;
  std::uint32_t bucket = ev::kNoId;
  std::int64_t since_ns = 0;
};
/// By parameter id, derived from the events of the step at `at_ns`; a gradient accumulated over micro-steps
/// has its latest state.
[[nodiscard]] std::vector<GradientState> gradient_states(const store::Store& store, std::uint32_t rank,
                                                         std::int64_t at_ns);

/// gradient_states() cached for the current time: the map reads every cell of every rank in each frame.
class GradientStatesAt {
 public:
  /// Valid until the next call with another time or store revision.
  [[nodiscard]] const std::vector<GradientState>& of(const store::Store& store, std::uint32_t rank,
                                                     std::int64_t at_ns);

 private:
  struct Key {
    const store::Store* store = nullptr;
    std::uint64_t revision = 0;
    std::int64_t at_ns = 0;
    bool operator==(const Key&) const = default;
  };
  std::optional<Key> key_;
  std::map<std::uint32_t, std::vector<GradientState>> by_rank_;
};

/// One flush of a bucket.
struct BucketFlush {
  std::int64_t at_ns = 0, opened_ns = 0;  ///< opened_ns 0: unknown
  std::uint32_t bucket = ev::kNoId, buffer = ev::kNoId, trigger_param = ev::kNoId;
  std::uint32_t params = 0;
  std::int64_t elems = 0;
  plan::FlushReason reason{};
};
/// The bucket, buffer and opening time of a bucket_open event.
[[nodiscard]] BucketFlush opened_bucket(const ev::Event& event);
/// A bucket_flush event combined with its opening, if known.
[[nodiscard]] BucketFlush flush_of(const ev::Event& event, const BucketFlush& opened);
/// Flushes of a rank in [begin, end), oldest first.
[[nodiscard]] std::vector<BucketFlush> bucket_flushes(const store::Store& store, std::uint32_t rank,
                                                      std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace shardscope::gui
