// Gradient buckets as a state machine: given a gradient that is ready, it returns which bucket to flush and
// why. Buckets list gradients, they do not own memory: the engine reduces each gradient from where backward
// wrote it, without a copy before or after the collective.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/plan/ids.h"

namespace shardscope::plan {

enum class FlushReason : std::uint8_t {
  full,
  extra_large,
  epilogue,
  boundary,
  group_changed,  ///< watched frameworks: the next gradient is of another group of parameters
  group_complete  ///< likewise: every gradient of the group has arrived
};

struct Flush {
  BucketId bucket{};
  FlushReason reason = FlushReason::full;
  ParamId trigger = kNone<ParamId>;  ///< the gradient that did not fit; kNone at the epilogue
  std::vector<ParamId> params;       ///< in arrival order
  std::int64_t elems = 0;
  std::uint32_t buffer_index = 0;  ///< [Note: overlap_comm] (S8, S9)
};

/// The independent-gradient buckets of a rank, micro-step after micro-step (S8, P15). Bucket numbers increase
/// over the whole run; the buffer index restarts at 0 with each backward.
class BucketPlanner {
 public:
  struct Config {
    std::int64_t bucket_elems = 500'000'000;
    std::uint32_t buffers = 1;  ///< bucket_buffers() in overlap.h
    /// Also return DeepSpeed's flush of an empty bucket (reason full, no parameters): it occurs when the
    /// first gradient does not fit, issues no collective, but changes the buffer.
    bool report_empty = false;
  };
  explicit BucketPlanner(Config config);

  /// The bucket that this gradient will join (for the "gradient added" event) after any flush
  /// returned by add().
  [[nodiscard]] BucketId open_bucket() const noexcept;
  /// Buffer index of that bucket: alternates between 0 and 1 with two buffers, else 0 (S8, S9).
  [[nodiscard]] std::uint32_t open_buffer() const noexcept;
  /// A gradient of `elems` elements is ready. Returns the flushes to issue *before* it joins, and for a
  /// gradient larger than a bucket its own extra-large flush, in order. Empty: it joined the open bucket.
  [[nodiscard]] std::vector<Flush> add(ParamId param, std::int64_t elems);
  /// End of backward: flushes the open bucket. The next add() starts a new backward.
  [[nodiscard]] std::optional<Flush> finish(FlushReason reason = FlushReason::epilogue);

 private:
  Flush take(FlushReason reason, ParamId trigger);

  Config config_;
  BucketId next_{};
  bool after_extra_large_ = false;  ///< the next gradient changes the buffer whatever its size
  std::uint32_t buffer_index_ = 0;
  std::int64_t elems_ = 0;
  std::vector<ParamId> params_;
};

}  // namespace shardscope::plan
