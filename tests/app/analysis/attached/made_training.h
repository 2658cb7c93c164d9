// A DeepSpeed training of three layers on two ranks, made event by event: every time in it is a closed form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "instrumentation/gate.h"
#include "runtime/plan/scheduler.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::test {

/// Nanoseconds. Layers have 1,000 elements each; all ranks do the same at the same time.
class MadeTraining {
 public:
  static constexpr std::int64_t kElems = 1000;
  static constexpr std::int64_t kLayer = 50'000;   ///< what a layer computes, forward and backward alike
  static constexpr std::int64_t kGather = 40'000;  ///< of one layer's parameters
  static constexpr std::int64_t kIssue = 2'000, kUnpack = 3'000;  ///< the host's part of a gather
  static constexpr std::int64_t kBucket = 4'000;                  ///< the host's part of a bucket
  static constexpr std::int64_t kUpdate = 100'000, kNorm = 10'000;
  /// Of a reduction: latency and elements.
  static constexpr std::int64_t reduction(std::int64_t elems) { return 20'000 + 10 * elems; }

  explicit MadeTraining(std::int32_t stage = 3, const std::string& framework = "DeepSpeed 0.19.8",
                        std::int64_t prefetch_elems = 0)
      : run_(2, stage, framework), stage_(stage) {
    run_.change_tables([&](ev::RunTables& tables) {
      tables.elems = 3 * kElems;
      tables.master_bytes = 4;
      tables.config_json =
          R"({"gradient_accumulation_steps": 1, "shardscope": {"compat": "deepspeed"}, "zero_optimization": {"stage": )" +
          std::to_string(stage) +
          R"(, "reduce_bucket_size": 2000, "stage3_param_persistence_threshold": 0, "stage3_prefetch_bucket_size": )" +
          std::to_string(prefetch_elems) + "}}";
      tables.modules = {{0, ev::kNoId, "", "Root", {}, true}};
      tables.params.clear();
      for (std::uint32_t i = 0; i < 3; ++i) {
        tables.modules.push_back({i + 1, 0, "layer" + std::to_string(i), "Linear", {i}, true});
        tables.params.push_back({i,
                                 "layer" + std::to_string(i) + ".weight",
                                 "f32",
                                 {kElems},
                                 kElems,
                                 kElems / 2,
                                 0,
                                 {i + 1},
                                 false});
      }
    });
    run_.on("cpu");
  }

  RunBuilder& run() { return run_; }
  /// In every other step the last gather of a forward takes this much longer, which no line through sizes
  /// fits.
  void delay_last_gather(std::int64_t ns) { delay_ = ns; }

  /// The input of the first layer needs no gradient, as that of an embedding: no hook reports the end of its
  /// backward.
  void without_input_gradient() { first_has_no_end_ = true; }

  store::Store& build(std::uint32_t steps = 6) {
    for (std::uint32_t step = 0; step < steps; ++step) add_step(step);
    return run_.build();
  }

 private:
  void both(EventKind kind, StreamId stream, std::uint32_t a = ev::kNoId, std::uint32_t b = ev::kNoId,
            std::uint8_t code = 0, std::int64_t v0 = 0, std::int64_t v1 = 0) {
    for (const std::uint32_t rank : {0U, 1U})
      run_.instant(rank, now_, kind, stream, a, b, ev::kNoId, code, v0, v1);
  }
  void span(std::int64_t begin, std::int64_t end, EventKind kind, StreamId stream, std::uint32_t a,
            std::uint32_t b = ev::kNoId, std::uint8_t code = 0, std::int64_t v0 = 0, std::int64_t v1 = 0) {
    for (const std::uint32_t rank : {0U, 1U}) run_.span(rank, begin, end, kind, stream, a, b, code, v0, v1);
  }
  /// A nanosecond after what was before it, so that the two are on different sides of it.
  void gate(ev::GateKind kind, std::uint32_t id) {
    ++now_;
    both(EventKind::gate, StreamId::host, gates_++, id, static_cast<std::uint8_t>(kind));
  }

  /// The fetch before a layer: its gather, the wait for it, the decision. Without one where it is there
  /// already.
  void fetch(std::uint32_t module, bool gathers, std::int64_t more_ns) {
    if (gathers) {
      const std::uint32_t gather = gathers_++;
      now_ += kIssue;
      for (const std::uint32_t rank : {0U, 1U})
        run_.instant(rank, now_, EventKind::param_status, StreamId::gather, module - 1, module, gather,
                     ev::status_code(1, ev::StatusCause::fetch), kElems);
      both(EventKind::collective_submitted, StreamId::host, sequence_, gather, kGatherOp, kElems, 4 * kElems);
      span(now_, now_ + kGather + more_ns, EventKind::collective_begin, StreamId::gather, sequence_++, gather,
           kGatherOp, kElems, 4 * kElems);
      span(now_, now_ + kGather + more_ns + kUnpack, EventKind::fetch_wait_begin, StreamId::compute, module,
           gather, 0, 4 * kElems);
      now_ += kGather + more_ns + kUnpack;
    }
    both(EventKind::fetch_decision, StreamId::host, module, ev::kNoId,
         static_cast<std::uint8_t>(plan::PrefetchStop::disabled));
  }
  void reduce(const std::vector<std::uint32_t>& params) {
    const std::int64_t elems = kElems * static_cast<std::int64_t>(params.size());
    const auto op =
        static_cast<std::uint8_t>(stage_ == 3 ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce);
    gate(ev::GateKind::bucket, bucket_);
    both(EventKind::bucket_flush, StreamId::host, bucket_, ev::kNoId, 0, elems);
    now_ += kBucket;
    span(now_, now_ + reduction(elems), EventKind::collective_begin, StreamId::reduce, sequence_++, bucket_,
         op, elems, 4 * elems);
    now_ += reduction(elems);
    ++bucket_;
  }

  void add_step(std::uint32_t step) {
    const std::int64_t begin = now_;
    gate(ev::GateKind::micro_step, step);
    gate(ev::GateKind::pre_forward, 0);
    if (stage_ == 3) fetch_root();
    for (std::uint32_t module = 1; module <= 3; ++module) {
      gate(ev::GateKind::pre_forward, module);
      if (stage_ == 3) fetch(module, true, module == 3 && step % 2 == 0 ? delay_ : 0);
      compute(module, ev::Pass::forward);
      gate(ev::GateKind::post_forward, module);
    }
    gate(ev::GateKind::post_forward, 0);
    gate(ev::GateKind::pre_backward, 0);
    if (stage_ == 3) fetch_root();
    backward();
    gate(ev::GateKind::optimizer, step);
    const auto sum = static_cast<std::uint8_t>(CollectiveOp::all_reduce);
    span(now_, now_ + kNorm, EventKind::collective_begin, StreamId::reduce, sequence_++, ev::kNoId, sum, 1,
         4);
    now_ += kNorm;
    span(now_, now_ + kUpdate, EventKind::optimizer_begin, StreamId::compute, 0, step);
    now_ += kUpdate;
    if (stage_ < 3) {
      span(now_, now_ + 3 * kGather, EventKind::collective_begin, StreamId::gather, sequence_++, ev::kNoId,
           kGatherOp, 3 * kElems, 12 * kElems);
      now_ += 3 * kGather;
    }
    span(begin, now_, EventKind::step_begin, StreamId::host, step);
    now_ += 5'000;
  }
  void fetch_root() {
    both(EventKind::fetch_decision, StreamId::host, 0, ev::kNoId,
         static_cast<std::uint8_t>(plan::PrefetchStop::disabled));
  }
  void compute(std::uint32_t module, ev::Pass pass) {
    span(now_, now_ + kLayer, EventKind::module_begin, StreamId::compute, module, ev::kNoId,
         static_cast<std::uint8_t>(pass));
    now_ += kLayer;
  }
  /// The gradients of two layers fill a bucket: it is reduced when the third is there, and that one at the
  /// end.
  void backward() {
    for (std::uint32_t module = 3; module >= 1; --module) {
      gate(ev::GateKind::pre_backward, module);
      if (stage_ == 3) fetch(module, false, 0);
      compute(module, ev::Pass::backward);
      if (module == 1) {
        reduce({2, 1});
        both(EventKind::bucket_open, StreamId::host, bucket_);
      }
      both(EventKind::bucket_add, StreamId::host, bucket_, module - 1, 0, kElems);
      if (stage_ == 3 && !(module == 1 && first_has_no_end_)) gate(ev::GateKind::post_backward, module);
    }
    if (stage_ == 3) gate(ev::GateKind::post_backward, 0);
    reduce({0});
  }

  RunBuilder run_;
  std::int32_t stage_;
  std::int64_t now_ = 1000, delay_ = 0;
  bool first_has_no_end_ = false;
  std::uint32_t gates_ = 0, gathers_ = 1000, bucket_ = 1, sequence_ = 0;
};

}  // namespace shardscope::test
