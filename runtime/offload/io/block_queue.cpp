#include "runtime/offload/io/block_queue.h"

#include <algorithm>
#include <cerrno>

namespace shardscope::offload {

BlockQueue::BlockQueue(IoDirection direction, std::span<const IoPart> parts, std::size_t block_bytes,
                       std::uint32_t depth)
    : direction_(direction), parts_(parts), block_bytes_(block_bytes), asked_(depth) {
  // Descending, so that ids are taken from the back as 0, 1, ... An id is in free_ids_ or in flight, never
  // both: `asked_[id]` belongs to one request until its completion.
  for (std::uint32_t id = depth; id-- > 0;) free_ids_.push_back(id);
}

/// Remainders of short transfers go first; there are at most `depth` of them.
std::optional<IoPart> BlockQueue::cut() {
  if (!again_.empty()) {
    const IoPart rest = again_.back();
    again_.pop_back();
    return rest;
  }
  while (part_ < parts_.size() && cut_bytes_ == parts_[part_].bytes) {
    ++part_;
    cut_bytes_ = 0;
  }
  if (part_ == parts_.size()) return std::nullopt;
  const IoPart& part = parts_[part_];
  // Blocks of one part are contiguous and do not overlap; the last one of a part may be shorter.
  const IoPart block{part.offset + static_cast<std::int64_t>(cut_bytes_), part.data + cut_bytes_,
                     std::min(block_bytes_, part.bytes - cut_bytes_)};
  cut_bytes_ += block.bytes;
  return block;
}

/// After a failure the queue only drains: the caller's memory must not be in use when run_transfer() throws.
std::optional<IoRequest> BlockQueue::next() {
  if (failure_ || free_ids_.empty()) return std::nullopt;
  const std::optional<IoPart> part = cut();
  if (!part) return std::nullopt;
  const std::uint32_t id = free_ids_.back();
  free_ids_.pop_back();
  asked_[id] = *part;
  ++in_flight_;
  return IoRequest{direction_, *part, id};
}

void BlockQueue::answer(IoResult result) {
  const IoPart part = asked_[result.id];
  free_ids_.push_back(result.id);
  --in_flight_;
  // Nothing was transferred: the whole request is repeated with another id.
  if (result.result == -EINTR || result.result == -EAGAIN) {
    again_.push_back(part);
  } else if (result.result <= 0) {
    // Zero bytes without an error: a read reached the end of the file, a write had no space.
    const int error = result.result < 0                  ? static_cast<int>(-result.result)
                      : direction_ == IoDirection::write ? ENOSPC
                                                         : 0;
    if (!failure_) failure_ = Failure{error, part};
  } else if (const auto moved = static_cast<std::size_t>(result.result); moved < part.bytes) {
    // Direct I/O needs aligned offsets: after a transfer that ends inside a block the remainder may fail with
    // EINVAL, which is reported like any failure.
    again_.push_back({part.offset + result.result, part.data + moved, part.bytes - moved});
  }
}

/// Checks the remaining parts: empty ones may follow the last block and need no request.
bool BlockQueue::done() const noexcept {
  if (in_flight_ > 0) return false;
  if (failure_) return true;
  if (!again_.empty()) return false;
  for (std::size_t i = part_; i < parts_.size(); ++i) {
    if (parts_[i].bytes > (i == part_ ? cut_bytes_ : 0)) return false;
  }
  return true;
}

}  // namespace shardscope::offload
