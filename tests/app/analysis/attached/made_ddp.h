// A training by DistributedDataParallel on two ranks, made event by event: every time in it is a closed form.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "instrumentation/gate.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::test {

/// Three layers of 1,000 elements on two ranks. The last layer's gradient is a bucket, the other two another
/// one.
class MadeDdp {
 public:
  static constexpr std::int64_t kElems = 1000, kLayer = 50'000, kUpdate = 100'000;  ///< times in ns
  static constexpr std::int64_t reduction(std::int64_t elems) { return 20'000 + 10 * elems; }

  MadeDdp() : run_(2, 0, "DistributedDataParallel (PyTorch 2.15.0)") {
    run_.change_tables([](ev::RunTables& tables) {
      tables.elems = 3 * kElems;
      tables.config_json = R"({"DistributedDataParallel": {"bucket_cap_mb": 25}})";
      tables.modules = {{0, ev::kNoId, "", "Root", {}, true}};
      tables.params.clear();
      for (std::uint32_t i = 0; i < 3; ++i) {
        const std::string name = "layer" + std::to_string(i);
        tables.modules.push_back({i + 1, 0, name, "Linear", {i}, true});
        tables.params.push_back({i, name + ".weight", "f32", {kElems}, kElems, kElems, 0, {i + 1}, false});
      }
    });
    run_.on("cpu");
  }
  /// Gradients are reduced as bf16.
  void compress() { bytes_ = 2; }
  /// Every micro-step reduces; otherwise the last one only.
  void reduce_in_each() { each_ = true; }
  /// The second bucket is reduced before its last gradient is there.
  void reduce_early() { early_ = true; }

  store::Store& build(std::uint32_t micro_steps = 1) {
    for (std::uint32_t step = 0; step < 6; ++step) {
      const std::int64_t begin = now_;
      for (std::uint32_t micro = 0; micro < micro_steps; ++micro)
        micro_step(each_ || micro + 1 == micro_steps);
      gate(ev::GateKind::optimizer, step);
      span(now_, now_ + kUpdate, EventKind::optimizer_begin, StreamId::compute, 0, step);
      now_ += kUpdate;
      span(begin, now_, EventKind::step_begin, StreamId::host, step);
      now_ += 5'000;
    }
    return run_.build();
  }

 private:
  void both(EventKind kind, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint8_t code,
            std::int64_t v0) {
    for (const std::uint32_t rank : {0U, 1U})
      run_.instant(rank, now_, kind, StreamId::host, a, b, c, code, v0);
  }
  void span(std::int64_t begin, std::int64_t end, EventKind kind, StreamId stream, std::uint32_t a,
            std::uint32_t b = ev::kNoId, std::uint8_t code = 0, std::int64_t v0 = 0, std::int64_t v1 = 0) {
    for (const std::uint32_t rank : {0U, 1U}) run_.span(rank, begin, end, kind, stream, a, b, code, v0, v1);
  }
  void gate(ev::GateKind kind, std::uint32_t id) {
    ++now_;
    both(EventKind::gate, gates_++, id, ev::kNoId, static_cast<std::uint8_t>(kind), 0);
  }
  void compute(std::uint32_t module, ev::Pass pass) {
    span(now_, now_ + kLayer, EventKind::module_begin, StreamId::compute, module, ev::kNoId,
         static_cast<std::uint8_t>(pass));
    now_ += kLayer;
  }
  void reduce(const std::vector<std::uint32_t>& params) {
    const auto elems = kElems * static_cast<std::int64_t>(params.size());
    for (const std::uint32_t param : params)
      both(EventKind::bucket_add, bucket_, param, ev::kNoId, 0, kElems);
    both(EventKind::bucket_flush, bucket_, ev::kNoId, static_cast<std::uint32_t>(params.size()), 0, elems);
    const std::int64_t begin = std::max(now_, lane_free_);
    lane_free_ = begin + reduction(elems);
    span(begin, lane_free_, EventKind::collective_begin, StreamId::reduce, sequence_++, bucket_++,
         static_cast<std::uint8_t>(CollectiveOp::all_reduce), elems, bytes_ * elems);
  }
  void micro_step(bool reduces) {
    gate(ev::GateKind::micro_step, steps_++);
    for (std::uint32_t module = 1; module <= 3; ++module) {
      gate(ev::GateKind::pre_forward, module);
      compute(module, ev::Pass::forward);
      gate(ev::GateKind::post_forward, module);
    }
    for (std::uint32_t module = 3; module >= 1; --module) {
      gate(ev::GateKind::pre_backward, module);
      compute(module, ev::Pass::backward);
      if (!reduces) continue;
      if (module == 3) reduce({2});
      if (module == (early_ ? 2U : 1U)) reduce({1, 0});
    }
    if (reduces) now_ = std::max(now_, lane_free_);
  }

  RunBuilder run_;
  std::int64_t now_ = 1000, lane_free_ = 0, bytes_ = 4;
  bool early_ = false, each_ = false;
  std::uint32_t gates_ = 0, bucket_ = 1, sequence_ = 0, steps_ = 0;
};

}  // namespace shardscope::test
