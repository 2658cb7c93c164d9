// The rules for gradients of stages 0, 1 and 2 put together without a device: called when gradients are ready
// and that backward ended, it says what to reduce (docs/zero.md S8, S10, S15, S16). engine::Gradients
// follows the same rules with memory, streams and events between them.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plan/stage12.h"

namespace shardscope::plan::testing_support {

/// Over one accumulation window after another. Stage 2 reduces in every micro-step as gradients arrive.
/// Stages 0 and 1 reduce in the last one only: as gradients arrive with overlap_comm, else at its end in
/// parameter order.
class GradientReducer {
 public:
  struct Config {
    std::uint32_t stage = 2;
    std::int64_t bucket_elems = 500'000'000;
    bool overlap_comm = false;
    bool contiguous_gradients = true;  ///< two buffers only with both
    ReduceMode mode = ReduceMode::to_owners;
    std::int64_t accumulation_steps = 1;
    bool report_empty = false;  ///< see BucketPlanner::Config
  };
  /// Keeps a reference to `layout`. Throws std::invalid_argument on a stage above 2, which has no flat
  /// layout.
  GradientReducer(const FlatLayout& layout, Config config)
      : layout_(layout),
        config_(config),
        buckets_({.bucket_elems = config.bucket_elems,
                  .buffers = bucket_buffers(config.overlap_comm, config.contiguous_gradients),
                  .report_empty = config.report_empty}) {
    if (config_.stage > 2) throw std::invalid_argument("stage " + std::to_string(config_.stage));
  }

  [[nodiscard]] std::vector<DueFlush> gradient_ready(ParamId param) {
    std::vector<DueFlush> due;
    if (reduces_now(config_.stage, boundary()) && !joins_at_end(config_.stage, config_.overlap_comm)) {
      add(param, due);
    }
    return due;
  }
  [[nodiscard]] std::vector<DueFlush> end_backward() {
    std::vector<DueFlush> due;
    if (reduces_now(config_.stage, boundary())) {
      if (joins_at_end(config_.stage, config_.overlap_comm)) {
        for (std::uint32_t i = 0; i < layout_.order.size(); ++i) add(ParamId{i}, due);
      }
      if (auto last = buckets_.finish(last_flush_reason(config_.stage))) {
        due.push_back(with_collectives(std::move(*last)));
      }
    }
    micro_ = boundary() ? 0 : micro_ + 1;
    return due;
  }
  /// The micro-step that is running, from 0 within its window.
  [[nodiscard]] std::int64_t micro_step() const noexcept { return micro_; }
  [[nodiscard]] bool boundary() const noexcept { return micro_ + 1 == config_.accumulation_steps; }

 private:
  void add(ParamId param, std::vector<DueFlush>& due) {
    for (Flush& flush : buckets_.add(param, layout_.elems_of(param))) {
      due.push_back(with_collectives(std::move(flush)));
    }
  }
  [[nodiscard]] DueFlush with_collectives(Flush flush) const {
    DueFlush due;
    due.collectives = plan_reduce(layout_, flush, config_.mode, config_.bucket_elems);
    due.flush = std::move(flush);
    return due;
  }

  const FlatLayout& layout_;
  Config config_;
  BucketPlanner buckets_;
  std::int64_t micro_ = 0;
};

}  // namespace shardscope::plan::testing_support
