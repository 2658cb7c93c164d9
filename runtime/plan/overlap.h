// What `overlap_comm` changes: the one place where this is stated.
//
// [Note: overlap_comm]
// With it, communication overlaps computation. Without it, the same collectives carry the same elements, and
// the compute stream waits:
// - reductions (all stages): for each bucket as soon as it is issued. With it, for the older of two buckets
//   before a third is issued ([Note: gradients in flight] in runtime/engine/gradients.h).
// - when gradients join their buckets (stages 0 and 1): at the end of the last backward of a window, in the
//   order of parameters. With it, in that backward, in the order in which they become complete (S15).
// - prefetches (stage 3): for each as soon as it is issued, so that no kernel overlaps it. With it, at the
//   module that uses it.
// - a bucket's buffer number (S8, S9): always 0; with it and contiguous_gradients 0 and 1 in turn. Without
//   compat.gradient_buffers there is no memory behind the number. With it stages 1 and 2 have as many buffers
//   as numbers, and stage 3 one for both numbers (allocated_bucket_buffers() in gradient_buckets.h): a bucket
//   is then reduced before the next one fills the buffer of the same memory.
// Gathers, prefetches and releases do not depend on it, and results are bitwise equal: in stages 0 and 1 a
// bucket may hold other gradients, but sums are taken in the order of ranks, element by element.
#pragma once

#include <cstdint>

namespace shardscope::plan {

/// The setting, with DeepSpeed's default filled in (ZeroConfig::overlap).
enum class Overlap : std::uint8_t { off, on };

[[nodiscard]] constexpr Overlap overlap_of(bool overlap_comm) noexcept {
  return overlap_comm ? Overlap::on : Overlap::off;
}

/// When the compute stream waits for a collective whose result is not needed yet: a prefetch or a reduction.
enum class WaitFor : std::uint8_t { at_use, at_once };
[[nodiscard]] constexpr WaitFor wait_of(Overlap overlap) noexcept {
  return overlap == Overlap::on ? WaitFor::at_use : WaitFor::at_once;
}

/// Whether gradients join their buckets at the end of backward, in parameter order, not as they arrive (S15).
[[nodiscard]] constexpr bool joins_at_end(std::uint32_t stage, bool overlap_comm) noexcept {
  return stage < 2 && !overlap_comm;
}
/// How many buffer numbers buckets take in turn (S8, S9). Memory: allocated_bucket_buffers().
[[nodiscard]] constexpr std::uint32_t bucket_buffers(bool overlap_comm, bool contiguous_gradients) noexcept {
  return overlap_comm && contiguous_gradients ? 2 : 1;
}

}  // namespace shardscope::plan
