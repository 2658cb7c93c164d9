#include "runtime/plan/bucket.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace shardscope::plan {

// Sizes come from the configuration: errors name its key.
BucketPlanner::BucketPlanner(Config config) : config_(config) {
  if (config_.bucket_elems < 1) {
    throw std::invalid_argument("reduce_bucket_size is " + std::to_string(config_.bucket_elems) +
                                "; it must be at least 1 element");
  }
  if (config_.buffers != 1 && config_.buffers != 2) {
    throw std::invalid_argument("bucket buffers is " + std::to_string(config_.buffers) +
                                "; it must be 1 or 2");
  }
}

BucketId BucketPlanner::open_bucket() const noexcept { return next_; }

std::uint32_t BucketPlanner::open_buffer() const noexcept { return buffer_index_; }

/// Closes the open bucket. Bucket ids never repeat, so that events of one bucket can be joined over a whole
/// run.
Flush BucketPlanner::take(FlushReason reason, ParamId trigger) {
  Flush flush;
  flush.bucket = next_;
  flush.reason = reason;
  flush.trigger = trigger;
  flush.params = std::exchange(params_, {});
  flush.elems = std::exchange(elems_, 0);
  flush.buffer_index = buffer_index_;
  next_ = BucketId{raw(next_) + 1};
  return flush;
}

/// Invariant between calls: elems_ <= bucket_elems. A gradient that does not fit closes the bucket before it
/// joins the next (S8); one larger than a bucket is a bucket of its own.
std::vector<Flush> BucketPlanner::add(ParamId param, std::int64_t elems) {
  std::vector<Flush> flushes;
  if (after_extra_large_ || elems_ + elems > config_.bucket_elems) {
    // An empty bucket is flushed where its first gradient is larger than a bucket. There is nothing to
    // reduce, but DeepSpeed changes the buffer then.
    const bool empty_flush = params_.empty() && !after_extra_large_;
    if (!params_.empty() || (empty_flush && config_.report_empty)) {
      flushes.push_back(take(FlushReason::full, param));
    }
    // The buffers alternate even when the bucket was empty (DeepSpeed flips the index after every triggered
    // flush). An extra-large gradient, reduced at once here, stays in DeepSpeed's bucket until the next
    // gradient arrives, hence the delayed change.
    if (config_.buffers == 2) buffer_index_ ^= 1U;
    after_extra_large_ = false;
  }
  params_.push_back(param);
  elems_ += elems;
  if (elems > config_.bucket_elems) {
    flushes.push_back(take(FlushReason::extra_large, kNone<ParamId>));
    after_extra_large_ = true;
  }
  return flushes;
}

std::optional<Flush> BucketPlanner::finish(FlushReason reason) {
  std::optional<Flush> flush;
  if (!params_.empty()) flush = take(reason, kNone<ParamId>);
  // Each backward begins in buffer 0; bucket numbers continue.
  buffer_index_ = 0;
  after_extra_large_ = false;
  return flush;
}

}  // namespace shardscope::plan
