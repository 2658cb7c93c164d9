// Where gradients are written and how they become this rank's owned, averaged gradients. The plan
// (plan::BucketPlanner) decides what is reduced together and when; subclasses know the memory and the
// collective of their stage.
//
// [Note: gradients in flight]
// A bucket is reduced on the reduce stream, which first waits for the kernels that wrote it. At most two
// buckets are outstanding, as in DeepSpeed: before a third is issued the compute stream waits for the oldest,
// whose memory is then free for later kernels. Without overlap_comm it waits at once. That is the only
// difference between the two.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/event_pool.h"
#include "runtime/model/executor.h"
#include "runtime/plan/bucket.h"
#include "runtime/plan/ownership.h"

namespace shardscope::engine {

/// Place of a micro-step within its accumulation window.
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
  void ready(plan::ParamId param);
  /// Flushes the last bucket. At the boundary the owned gradients are complete for work queued on the
  /// compute stream after drain().
  void end_backward();
  /// The compute stream waits for every reduction; their memory is freed.
  void drain();
  /// Averaged over ranks and, through the loss scale, over micro-steps; laid out as plan::Ownership says,
  /// zero where there is padding.
  [[nodiscard]] virtual kernels::ConstPtr owned() const = 0;

 protected:
  Gradients(const Context& context, EventPool& events, const plan::Ownership& ownership);

  /// True when the reduction of this micro-step is due: always (stages 2, 3) or at the boundary (0, 1).
  [[nodiscard]] virtual bool reduces_now() const noexcept = 0;
  /// The first backward of an accumulation window begins: earlier sums no longer count.
  virtual void begin_window() = 0;
  /// Called once per parameter and backward, when its gradient is complete.
  virtual void joined(plan::ParamId) {}
  /// Queues the collectives of one bucket on the reduce stream; `params` ascend. Buffers that must live
  /// until they are done are added to `held` (buffers of the compute stream).
  virtual void reduce(const std::vector<plan::ParamId>& params, comm::CollectiveLabel label,
                      std::vector<device::Buffer>& held) = 0;
  /// Parameters that had no gradient in this backward; called at its end, before the last flush.
  virtual void settle_unused(const std::vector<plan::ParamId>& params) = 0;

  /// What the sum over ranks is multiplied by: 1/world, less what prescale() has done already.
  [[nodiscard]] float mean_factor() const noexcept { return scaling_.after; }
  /// prescale_gradients and gradient_predivide_factor: queued on the reduce stream before the collective.
  void prescale(kernels::Ptr gradient, std::int64_t elems);
  [[nodiscard]] const Window& window() const noexcept { return window_; }
  /// Puts a gradient into the open bucket, flushing as the plan says.
  void add_to_bucket(plan::ParamId param);

  const Context& context_;
  EventPool& events_;
  const plan::Ownership& ownership_;

 private:
  struct Outstanding {
    std::unique_ptr<device::Event> done;
    std::vector<device::Buffer> held;
    std::uint32_t bucket = 0;
    std::int64_t bytes = 0;
  };
  static constexpr std::size_t kMaxOutstanding = 2;  ///< zero-reference C6
  struct Scaling {
    float before = 1, after = 1;
  };
  [[nodiscard]] static Scaling make_scaling(const plan::ZeroConfig& zero, std::uint32_t world) noexcept;

  /// Stages 0 and 1 without overlap_comm reduce at the end of the window, in parameter order (S15).
  [[nodiscard]] bool waits_for_end() const noexcept;
  void flush(const plan::Flush& flush);
  void retire_oldest();

  const Scaling scaling_;
  plan::BucketPlanner planner_;
  Window window_;
  std::vector<bool> ready_;  ///< by ParamId, in this backward
  std::int64_t open_elems_ = 0;
  std::deque<Outstanding> outstanding_;
};

/// Stages 0 and 1: gradients stay whole; reduced in place at the end of the accumulation window, by
/// all-reduce (0) or slice by slice to the owners (1).
[[nodiscard]] std::unique_ptr<Gradients> make_resident_gradients(const Context& context, EventPool& events,
                                                                 const plan::Ownership& ownership);
/// Stages 2 and 3: whole gradients live from the kernel that writes them to the end of their reduction;
/// only owned elements stay. Reduced in every micro-step.
[[nodiscard]] std::unique_ptr<Gradients> make_sharded_gradients(const Context& context, EventPool& events,
                                                                const plan::Ownership& ownership);

}  // namespace shardscope::engine
