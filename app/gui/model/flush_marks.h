// Bucket flushes as marks on a row of the timeline: the flushes that a mark stands for, and its
// tooltip.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/gui/model/gradient_states.h"
#include "app/gui/model/session.h"
#include "app/gui/model/time_axis.h"

namespace shardscope::gui {

/// Shape of a mark: the bucket was full, or a partial bucket was flushed at the end of a phase.
enum class FlushShape : std::uint8_t { full, rest };
[[nodiscard]] FlushShape shape_of(const BucketFlush& flush) noexcept;

struct FlushMark {
  float x = 0;
  FlushShape shape = FlushShape::full;   ///< of the first flush
  std::span<const BucketFlush> flushes;  ///< flushes too close together for separate marks
};
/// Marks of the flushes within `scale`, from left to right, at least `apart` points from each other.
[[nodiscard]] std::vector<FlushMark> flush_marks(std::span<const BucketFlush> flushes, const TimeScale& scale,
                                                 float apart);
/// "Bucket 3 was flushed: why. 12 gradients, 1.2M elements, 34 % of reduce_bucket_size, filled for 2 ms"; for
/// several flushes their number, in total and per reason.
[[nodiscard]] std::string text_of(const Session& run, const FlushMark& mark);

/// Figures of a range's flushes: "12 flushes, 3.4 M elements; on average 81 % full, filled for 2.1 ms. 8: the
/// next gradient did not fit; 4: backward had ended". `capacity`: elements of a bucket, if it has a size.
[[nodiscard]] std::string figures_text(const store::Vocabulary& words, std::span<const BucketFlush> flushes,
                                       std::optional<std::int64_t> capacity);

}  // namespace shardscope::gui
