// Where buckets of gradients were flushed, as marks on a row of the timeline: which flushes a mark stands
// for, and what it says of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "app/gui/model/gradient_states.h"
#include "app/gui/model/session.h"
#include "app/gui/model/time_axis.h"

namespace shardscope::gui {

/// Why, as a mark can show it: a bucket that was full, or what was left over when something ended.
enum class FlushShape : std::uint8_t { full, rest };
[[nodiscard]] FlushShape shape_of(const BucketFlush& flush) noexcept;

struct FlushMark {
  float x = 0;
  FlushShape shape = FlushShape::full;   ///< of the first
  std::span<const BucketFlush> flushes;  ///< that lie closer together than marks can
};
/// Of the flushes that `scale` shows, from left to right and at least `apart` points from one another.
[[nodiscard]] std::vector<FlushMark> flush_marks(std::span<const BucketFlush> flushes, const TimeScale& scale,
                                                 float apart);
/// "Bucket 3 was flushed: why. 12 gradients, 1.2M elements, 34 % of reduce_bucket_size, filled for 2 ms"; of
/// several how many, and of each reason how many.
[[nodiscard]] std::string text_of(const Session& run, const FlushMark& mark);

}  // namespace shardscope::gui
