// Where backward writes gradients and how they are reduced to this rank's owned, averaged gradients. The plan
// (plan::BucketPlanner, plan::plan_reduce) decides what is reduced together, when and in which collectives;
// subclasses manage the memory of their stage.
//
// [Note: collectives of a bucket]
// By default a bucket is one grouped collective: each slice is reduced to its owner as in a reduce per owner,
// with the same elements, but one launch and one rendezvous replace several, and gradients are in the order
// of parameter groups and parameters, so that adjacent ones are sent together. DeepSpeed issues a reduce per
// owner, or all-reduces over slices, in the order in which gradients arrived, each cut after
// reduce_bucket_size elements. The compatibility switch multi_rank_bucket_allreduce issues a bucket that way,
// collective by collective. Sums are taken in the order of ranks either way, so gradients are bitwise equal.
//
// [Note: gradients in flight]
// A bucket is reduced on the reduce stream, which first waits for the kernels that wrote it. At most two
// buckets are outstanding: before a third is issued the compute stream waits for the oldest, whose memory is
// then free for later kernels; the host continues. For the case without overlap_comm see [Note: overlap_comm]
// in runtime/plan/overlap.h. In DeepSpeed's stage 3 (C6) the host waits instead, and only when three are
// outstanding: one more bucket in memory. compat.max_param_reduce_events does the same.
//
// [Note: gradients as DeepSpeed holds them]
// By default a bucket is a list: a gradient is reduced where backward wrote it and occupies memory until
// then. Under compat.gradient_buffers a bucket is a buffer of reduce_bucket_size elements (two used
// alternately with overlap_comm in stages 1 and 2; none with contiguous_gradients false). A gradient that
// joins is copied to the buffer and its own memory is freed; one that is larger than a bucket stays in place.
// Buffers exist from the first gradient that may join to the end of the backward, in stage 3 for good. A
// buffer must be reduced before it is filled again: before another bucket is issued the compute stream waits
// for the previous one. In stage 1 gradients are then separate, not one flat buffer: each is freed by its
// reduction, and the owned ones have separate memory as in stages 2 and 3. At the step the optimizer makes
// fp32 copies of the owned gradients, sub-group by sub-group, and in stages 1 and 2 the originals are freed
// (release_owned). Results are bitwise equal.
//
// [Note: three types of a gradient]
// Backward writes the storage type. Ranks exchange communication_data_type: if it differs, a gradient is cast
// on the reduce stream, into memory that is kept until the collective has finished, and prescaled there.
// Micro-steps are summed in grad_accum_dtype, the type of owned(). With three equal types nothing is copied.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/execution/context.h"
#include "runtime/execution/event_pool.h"
#include "runtime/model/executor.h"
#include "runtime/offload/host_gradients.h"
#include "runtime/optim/gradient_parts.h"
#include "runtime/plan/bucket.h"
#include "runtime/plan/gradient_buckets.h"
#include "runtime/plan/in_flight_limit.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/stage12.h"

namespace shardscope::engine {

/// Position of a micro-step within its accumulation window.
struct Window {
  std::int64_t index = 0;  ///< from 0
  std::int64_t count = 1;
  [[nodiscard]] bool boundary() const noexcept { return index + 1 == count; }
};

class Gradients {
 public:
  virtual ~Gradients() = default;
  Gradients(const Gradients&) = delete;
  Gradients& operator=(const Gradients&) = delete;

  /// Before the backward of a micro-step.
  void begin_backward(Window window);
  /// model::Hooks::grad and grad_ready.
  [[nodiscard]] virtual model::GradTarget target(plan::ParamId param) = 0;
  /// The backward of the parameter's last use is queued: its gradient is complete, but perhaps not yet
  /// ready().
  void completed(plan::ParamId param);
  /// From here on the gradient may be reduced. Counts as completed() too (a zero gradient of a leaf module).
  void ready(plan::ParamId param);
  /// Flushes the last bucket. At the boundary the owned gradients are complete for compute-stream work queued
  /// after drain().
  void end_backward();
  /// The compute stream waits for all reductions; their memory is freed.
  void drain();
  /// After the last drain() of a step: queues the copies that make the owned gradients contiguous, on the
  /// compute stream.
  virtual void join_owned() {}
  /// The optimizer has queued its copies of the owned gradients: see [Note: gradients as DeepSpeed holds
  /// them].
  virtual void release_owned() {}
  /// The optimizer step is queued: frees memory that only it needed.
  virtual void end_step(std::uint32_t /*step*/) {}
  /// Parameters with a gradient in this accumulation window, in the order in which backward completed them.
  [[nodiscard]] const std::vector<plan::ParamId>& backward_order() const noexcept { return backward_order_; }
  /// Averaged over ranks and, through the loss scale, over micro-steps; laid out as in plan::Ownership,
  /// padding zero. Complete once join_owned() was called.
  [[nodiscard]] virtual optim::GradientParts owned() const = 0;

 protected:
  Gradients(const execution::Context& context, execution::EventPool& events,
            const plan::Ownership& ownership);

  /// True when the reduction of this micro-step is due: always (stages 2, 3) or at the boundary (0, 1).
  [[nodiscard]] bool reduces_now() const noexcept;
  /// The first backward of an accumulation window begins: earlier sums are discarded.
  virtual void begin_window() = 0;
  /// Called once per parameter and backward, when its gradient is complete.
  virtual void joined(plan::ParamId) {}
  /// Before the first gradient of a backward that reduces can join a bucket.
  virtual void prepare_owned() {}
  /// The gradient joins a bucket that is a buffer: copies it to `place` for reduce().
  virtual void enter_buffer(plan::ParamId, kernels::Ptr /*place*/) {}
  /// Buckets are buffers of elements of type buffer_type().
  [[nodiscard]] bool buffered() const noexcept;
  [[nodiscard]] kernels::DType buffer_type() const noexcept;
  /// Queues the collectives of one bucket on the reduce stream: the listed ones, one by one, or, if none is
  /// listed, one grouped collective with ascending parameters; see [Note: collectives of a bucket]. Buffers
  /// that must be kept until they have finished are added to `held` (buffers of the compute stream).
  using Held = std::vector<device::Buffer>;
  /// Returns the stream on which the last work was queued.
  virtual device::Stream& reduce(const plan::DueFlush& due, comm::CollectiveLabel label, Held& held) = 0;
  /// False for the first layout of stage 1: it reduces the whole window at its end, by its own communications
  /// (reduce_window).
  [[nodiscard]] virtual bool in_buckets() const noexcept { return true; }
  virtual void reduce_window() {}
  /// The last bucket of an accumulation window is issued (not called by the first layout of stage 1).
  virtual void finish_window() {}
  /// Reductions wait for the end of the window: stages 0 and 1 without overlap_comm, then in parameter order
  /// (S15), and gradients not in buckets.
  [[nodiscard]] bool waits_for_end() const noexcept;
  /// Handles the parameters that had no gradient in this backward; called at its end, before the last flush.
  virtual void settle_unused(const std::vector<plan::ParamId>& params) = 0;

  /// Factor of the sum over ranks: 1/world, divided by the factor that prescaling has already applied.
  [[nodiscard]] float mean_factor() const noexcept { return scaling_.after; }
  /// The gradient to send, see [Note: three types of a gradient]: itself, or a copy in `held`; prescaled
  /// (prescale_gradients, gradient_predivide_factor). Queued on the reduce stream.
  [[nodiscard]] kernels::Ptr to_wire(kernels::Ptr gradient, std::int64_t elems, std::uint32_t owner,
                                     Held& held);
  /// Queues one reduction on the reduce stream, after all work queued on the compute stream; `queue` does it
  /// and returns the stream of its last work. See [Note: gradients in flight].
  void issue(std::uint32_t bucket, std::int64_t elems, const std::function<device::Stream&(Held&)>& queue);
  [[nodiscard]] const Window& window() const noexcept { return window_; }
  /// Puts a gradient into the open bucket, flushing buckets as the plan decides.
  void add_to_bucket(plan::ParamId param);

  const execution::Context& context_;
  execution::EventPool& events_;
  const plan::Ownership& ownership_;
  /// Elements of the owned range whose gradients are kept on the device; the others are offloaded.
  const std::int64_t device_elems_;
  std::unique_ptr<offload::HostGradients> host_;  ///< null if nothing is offloaded

 private:
  struct Outstanding {
    std::unique_ptr<device::Event> done;
    Held held;
    std::uint32_t bucket = 0;
    std::int64_t bytes = 0;
  };
  struct Scaling {
    float before = 1, after = 1;
  };
  [[nodiscard]] static Scaling make_scaling(const plan::ZeroConfig& zero, std::uint32_t world) noexcept;
  void prepare_reductions();
  void copy_to_bucket(plan::ParamId param);
  void end_buffers();

  /// ignore_unused_parameters: false. Throws std::runtime_error naming the parameters without a gradient.
  void refuse_unused() const;
  void flush(const plan::Flush& flush);
  [[nodiscard]] plan::DueFlush with_collectives(const plan::Flush& flush) const;
  void retire_oldest();

  const Scaling scaling_;
  plan::BucketPlanner planner_;
  const std::vector<plan::ParamId> by_group_;  ///< trained parameters by parameter group
  Window window_;
  std::vector<bool> ready_;           ///< by ParamId, in this backward
  std::vector<bool> seen_in_window_;  ///< by ParamId, in this accumulation window
  std::vector<plan::ParamId> backward_order_;
  std::int64_t open_elems_ = 0;
  bool prepared_ = false;                         ///< in this backward
  std::array<device::Buffer, 2> bucket_data_;     ///< [reduce_bucket_size] each; of the compute stream
  plan::InFlightLimit<std::uint32_t> in_flight_;  ///< bucket ids, in step with outstanding_
  std::deque<Outstanding> outstanding_;
};

/// Stages 0 and 1: gradients stay whole and are reduced in place at the end of the accumulation window, by
/// all-reduce (0), slice by slice to the owners (1), or in the communications of the first layout (1).
[[nodiscard]] std::unique_ptr<Gradients> make_resident_gradients(const execution::Context& context,
                                                                 execution::EventPool& events,
                                                                 const plan::Ownership& ownership);
/// Stages 2 and 3, and 1 under compat.gradient_buffers: whole gradients exist from the kernel that writes
/// them to the end of their reduction; only owned elements are kept. Reduced in every micro-step.
[[nodiscard]] std::unique_ptr<Gradients> make_sharded_gradients(const execution::Context& context,
                                                                execution::EventPool& events,
                                                                const plan::Ownership& ownership);

}  // namespace shardscope::engine
