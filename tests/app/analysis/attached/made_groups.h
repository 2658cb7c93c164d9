// An FSDP2 training of two blocks and a root on two ranks, made event by event: every time in it is a closed
// form.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "instrumentation/gate.h"
#include "runtime/plan/scheduler.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::test {

/// Nanoseconds. Groups have 1,000 elements each; all ranks do the same at the same time. The root stays
/// gathered from its forward to its backward, and a backward prefetches the group before it.
class MadeGroups {
 public:
  static constexpr std::int64_t kElems = 1000;
  static constexpr std::int64_t kGathered = 1008;  ///< elements of a gather: with padding
  static constexpr std::int64_t kBlock = 50'000;   ///< what a block computes, forward and backward alike
  static constexpr std::int64_t kGather = 40'000;  ///< of one group
  static constexpr std::int64_t kIssue = 2'000, kUnpack = 3'000;  ///< the host's part of a gather
  static constexpr std::int64_t kBucket = 4'000;                  ///< the host's part of a reduction
  static constexpr std::int64_t kReduce = 30'000;
  static constexpr std::int64_t kUpdate = 100'000;

  /// `blocking`: a gather holds the host until it ends, as gloo's does without unshard_async_op.
  explicit MadeGroups(bool blocking) : blocking_(blocking), run_(2, 3, "FSDP2 (PyTorch 2.15.0)") {
    run_.change_tables([](ev::RunTables& tables) {
      tables.elems = 3 * kElems;
      tables.config_json = R"({"fully_shard": {"groups": 3, "reshard_after_forward": true}})";
      tables.modules = {{0, ev::kNoId, "", "Root", {0}, true},
                        {1, 0, "block0", "Block", {1}, true},
                        {2, 0, "block1", "Block", {2}, true}};
      tables.params.clear();
      for (std::uint32_t i = 0; i < 3; ++i)
        tables.params.push_back(
            {i, "p" + std::to_string(i), "f32", {kElems}, kElems, kElems / 2, 0, {i}, false});
    });
    run_.on("cpu");
  }

  RunBuilder& run() { return run_; }
  /// The backward prefetches nothing: as with a graph in another order than FSDP2's.
  void without_prefetch() { prefetches_ = false; }
  /// The root's backward prefetches both blocks, the first block's none.
  void with_explicit_prefetch() {
    explicit_ = true;
    run_.change_tables([](ev::RunTables& tables) {
      tables.config_json = R"({"fully_shard": {"modules_with_explicit_backward_prefetch": 1}})";
    });
  }

  store::Store& build(std::uint32_t micro_steps = 1) {
    for (std::uint32_t step = 0; step < 6; ++step) add_step(step, micro_steps);
    return run_.build();
  }

 private:
  struct Gather {
    std::uint32_t id = 0;
    std::int64_t end = 0;
  };

  void both(EventKind kind, StreamId stream, std::uint32_t a = ev::kNoId, std::uint32_t b = ev::kNoId,
            std::uint32_t c = ev::kNoId, std::uint8_t code = 0, std::int64_t v0 = 0, std::int64_t v1 = 0) {
    for (const std::uint32_t rank : {0U, 1U}) run_.instant(rank, now_, kind, stream, a, b, c, code, v0, v1);
  }
  void span(std::int64_t begin, std::int64_t end, EventKind kind, StreamId stream, std::uint32_t a,
            std::uint32_t b = ev::kNoId, std::uint8_t code = 0, std::int64_t v0 = 0, std::int64_t v1 = 0) {
    for (const std::uint32_t rank : {0U, 1U}) run_.span(rank, begin, end, kind, stream, a, b, code, v0, v1);
  }
  /// A nanosecond after the events before it, so that the two are on different sides of it.
  void gate(ev::GateKind kind, std::uint32_t id) {
    ++now_;
    both(EventKind::gate, StreamId::host, gates_++, id, ev::kNoId, static_cast<std::uint8_t>(kind));
  }

  void issue(std::uint32_t group, ev::StatusCause cause) {
    Gather& gather = held_[group];
    gather.id = next_++;
    both(EventKind::param_status, StreamId::gather, group, group, gather.id,
         ev::status_code(static_cast<std::uint8_t>(plan::ParamStatus::in_flight), cause), kElems);
    now_ += kIssue;
    const auto op = static_cast<std::uint8_t>(CollectiveOp::all_gather);
    both(EventKind::collective_submitted, StreamId::host, sequence_, gather.id, 1, op, kGathered,
         4 * kGathered);
    const std::int64_t begin = std::max(now_, lane_free_);
    gather.end = lane_free_ = begin + kGather;
    span(begin, gather.end, EventKind::collective_begin, StreamId::gather, sequence_++, gather.id, op,
         kGathered, 4 * kGathered);
    if (blocking_) now_ = gather.end;
  }
  void wait(std::uint32_t group) {
    const Gather& gather = held_[group];
    // A wait begins after its gather was issued.
    const std::int64_t begin = now_ + 1, end = std::max(begin, gather.end) + kUnpack;
    span(begin, end, EventKind::fetch_wait_begin, StreamId::compute, group, gather.id, 0, 4 * kElems);
    now_ = end;
  }
  void fetch(std::uint32_t group) {
    if (held_[group].id == 0) issue(group, ev::StatusCause::fetch);
    wait(group);
  }
  void compute(std::uint32_t group, ev::Pass pass) {
    span(now_, now_ + kBlock, EventKind::module_begin, StreamId::compute, group, ev::kNoId,
         static_cast<std::uint8_t>(pass));
    now_ += kBlock;
  }
  void release(std::uint32_t group) { held_[group] = {}; }
  void reduce(std::uint32_t group) {
    both(EventKind::bucket_add, StreamId::host, bucket_, group, ev::kNoId, 0, kElems, kElems);
    gate(ev::GateKind::bucket, bucket_);
    both(EventKind::bucket_flush, StreamId::host, bucket_, ev::kNoId, 1, 0, kElems);
    now_ += kBucket;
    span(now_, now_ + kReduce, EventKind::collective_begin, StreamId::reduce, sequence_++, bucket_,
         static_cast<std::uint8_t>(CollectiveOp::reduce_scatter), kElems, 4 * kElems);
    now_ += kReduce;
    lane_free_ = std::max(lane_free_, now_);
    ++bucket_;
  }

  void micro_step(std::uint32_t number) {
    gate(ev::GateKind::micro_step, number);
    gate(ev::GateKind::pre_forward, 0);
    fetch(0);
    for (const std::uint32_t block : {1U, 2U}) {
      gate(ev::GateKind::pre_forward, block);
      fetch(block);
      compute(block, ev::Pass::forward);
      release(block);
      gate(ev::GateKind::post_forward, block);
    }
    gate(ev::GateKind::post_forward, 0);
    gate(ev::GateKind::pre_backward, 0);
    if (prefetches_) issue(2, ev::StatusCause::prefetch);
    if (explicit_) issue(1, ev::StatusCause::prefetch);
    for (const std::uint32_t block : {2U, 1U}) {
      gate(ev::GateKind::pre_backward, block);
      fetch(block);
      if (prefetches_ && !explicit_ && block == 2) issue(1, ev::StatusCause::prefetch);
      compute(block, ev::Pass::backward);
      release(block);
      reduce(block);
      gate(ev::GateKind::post_backward, block);
    }
    release(0);
    reduce(0);
    gate(ev::GateKind::post_backward, 0);
  }
  void add_step(std::uint32_t step, std::uint32_t micro_steps) {
    const std::int64_t begin = now_;
    for (std::uint32_t micro = 0; micro < micro_steps; ++micro) micro_step(step * micro_steps + micro);
    gate(ev::GateKind::optimizer, step);
    span(now_, now_ + kUpdate, EventKind::optimizer_begin, StreamId::compute, 0, step);
    now_ += kUpdate;
    span(begin, now_, EventKind::step_begin, StreamId::host, step);
    now_ += 5'000;
  }

  bool blocking_, prefetches_ = true, explicit_ = false;
  RunBuilder run_;
  std::int64_t now_ = 1000, lane_free_ = 0;
  Gather held_[3];
  std::uint32_t gates_ = 0, next_ = 1000, bucket_ = 1, sequence_ = 0;
};

}  // namespace shardscope::test
