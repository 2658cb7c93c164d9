#include "tests/app/store/synthetic_training.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace shardscope::store {

using ev::CollectiveOp;
using ev::EventKind;
using ev::kNoId;
using ev::MemoryCategory;
using ev::Phase;
using ev::StreamId;

SyntheticTraining::SyntheticTraining(const SyntheticOptions& options, const ev::RunTables& tables)
    : o_(options),
      t_(tables),
      cluster_(options, tables),
      params_(options, tables, cluster_),
      ranks_(cluster_.ranks()) {
  for (std::uint32_t m = 0; m < t_.modules.size(); ++m) {
    if (!has_children(m)) leaves_.push_back(m);
  }
}

std::vector<RankClock>& SyntheticTraining::play() {
  startup();
  for (std::uint32_t step = 0; step < o_.steps; ++step) play_step(step);
  return ranks_;
}

bool SyntheticTraining::has_children(std::uint32_t module) const {
  return std::any_of(t_.modules.begin(), t_.modules.end(),
                     [&](const ev::ModuleInfo& m) { return m.parent == module; });
}

void SyntheticTraining::startup() {
  const auto n = static_cast<std::int64_t>(o_.world);
  const std::int64_t shard = (t_.elems + n - 1) / n;
  for (RankClock& rank : ranks_) {
    const std::int64_t at = rank.host;
    const std::int64_t owned = t_.stage == 0 ? t_.elems : shard;
    rank.memory(at, EventKind::memory_alloc, MemoryCategory::param_shard, kNoId, 2 * owned);
    if (t_.stage < 3)
      rank.memory(at + 500, EventKind::memory_alloc, MemoryCategory::param_gathered, kNoId,
                  2 * (t_.elems - owned));
    rank.memory(at + 1000, EventKind::memory_alloc, MemoryCategory::master_weight, kNoId, 4 * owned);
    rank.memory(at + 2000, EventKind::memory_alloc, MemoryCategory::momentum, kNoId, 4 * owned);
    rank.memory(at + 3000, EventKind::memory_alloc, MemoryCategory::variance, kNoId, 4 * owned);
    rank.memory(at + 4000, EventKind::memory_alloc, MemoryCategory::grad_shard, kNoId,
                t_.stage >= 2 ? 2 * shard : 0);
    rank.memory(at + 5000, EventKind::memory_alloc, MemoryCategory::reduce_bucket, kNoId,
                2 * o_.bucket_elems);
    rank.compute = rank.host = at + 20'000;
  }
  if (partitioned()) params_.gather_persistent(step_);
}

void SyntheticTraining::compute(RankClock& rank, std::uint32_t module, double factor) {
  std::int64_t elems = 0;
  for (const std::uint32_t p : t_.modules[module].params) elems += t_.params[p].elems;
  const double flops = 2.0 * static_cast<double>(elems) * static_cast<double>(o_.context) * factor;
  rank.compute +=
      cluster_.jitter(static_cast<std::int64_t>((8'000 + flops / o_.compute_gflops) * rank.slowness));
}

void SyntheticTraining::open_path(std::uint32_t leaf, ev::Pass pass) {
  std::vector<std::uint32_t> path;
  for (std::uint32_t m = t_.modules[leaf].parent; m != kNoId; m = t_.modules[m].parent) {
    if (t_.modules[m].hooks) path.push_back(m);
  }
  std::reverse(path.begin(), path.end());
  std::size_t common = 0;
  while (common < path.size() && common < open_.size() && path[common] == open_[common]) ++common;
  close_to(common, pass);
  for (std::size_t i = common; i < path.size(); ++i) {
    for (RankClock& rank : ranks_)
      rank.emit(rank.compute, EventKind::module_begin, StreamId::compute, u8(pass), path[i], micro_);
    open_.push_back(path[i]);
  }
}

void SyntheticTraining::close_to(std::size_t depth, ev::Pass pass) {
  for (; open_.size() > depth; open_.pop_back()) {
    for (RankClock& rank : ranks_)
      rank.emit(rank.compute, EventKind::module_end, StreamId::compute, u8(pass), open_.back(), micro_);
  }
}

void SyntheticTraining::walk(ev::Pass pass) {
  std::vector<std::uint32_t> order = leaves_;
  const bool backward = pass == ev::Pass::backward;
  if (backward) std::reverse(order.begin(), order.end());
  const Phase phase = backward ? Phase::backward : Phase::forward;
  for (RankClock& rank : ranks_)
    rank.emit(rank.compute, EventKind::phase_begin, StreamId::compute, u8(phase), step_, micro_);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t module = order[i];
    open_path(module, pass);
    cluster_.gate(backward ? ev::GateKind::pre_backward : ev::GateKind::pre_forward, module);
    if (partitioned()) params_.fetch(order, i);
    const std::int64_t activation = 4 * o_.context * o_.width;
    for (RankClock& rank : ranks_) {
      rank.emit(rank.compute, EventKind::module_begin, StreamId::compute, u8(pass), module, micro_);
      if (!backward) {
        rank.memory(rank.compute, EventKind::memory_alloc, MemoryCategory::activation, module, activation);
        rank.activations += activation;
      }
      compute(rank, module, backward ? 2 : 1);
      rank.emit(rank.compute, EventKind::module_end, StreamId::compute, u8(pass), module, micro_);
      if (backward) {
        rank.memory(rank.compute, EventKind::memory_free, MemoryCategory::activation, module, activation);
        rank.activations -= activation;
      }
    }
    if (backward) gradients(module);
    if (partitioned()) params_.release_unused(order, i);
    cluster_.gate(backward ? ev::GateKind::post_backward : ev::GateKind::post_forward, module);
  }
  close_to(0, pass);
  if (backward) flush(plan::FlushReason::epilogue, kNoId);
  for (RankClock& rank : ranks_)
    rank.emit(rank.compute, EventKind::phase_end, StreamId::compute, u8(phase), step_, micro_);
}

void SyntheticTraining::gradients(std::uint32_t module) {
  const auto& params = t_.modules[module].params;
  for (auto at = params.rbegin(); at != params.rend(); ++at) {
    const ev::ParamInfo& param = t_.params[*at];
    if (param.modules.front() != module) continue;  // a tied weight's gradient is complete at its owner
    if (bucket_elems_ + param.elems > o_.bucket_elems && bucket_elems_ > 0)
      flush(plan::FlushReason::full, param.id);
    if (bucket_params_.empty()) {
      for (RankClock& rank : ranks_)
        rank.emit(rank.compute, EventKind::bucket_open, StreamId::host, 0, bucket_, kNoId, bucket_ % 2);
    }
    bucket_elems_ += param.elems;
    bucket_params_.push_back(param.id);
    for (RankClock& rank : ranks_) {
      rank.memory(rank.compute, EventKind::memory_alloc, MemoryCategory::grad_full, param.id,
                  2 * param.elems);
      rank.emit(rank.compute, EventKind::bucket_add, StreamId::host, 0, bucket_, param.id, kNoId, param.elems,
                bucket_elems_);
    }
  }
}

void SyntheticTraining::flush(plan::FlushReason reason, std::uint32_t trigger) {
  if (bucket_params_.empty()) return;
  cluster_.gate(ev::GateKind::bucket, bucket_);
  const bool epilogue = reason == plan::FlushReason::epilogue;
  for (RankClock& rank : ranks_) {
    rank.emit(rank.compute, EventKind::bucket_flush, StreamId::host, u8(reason), bucket_, trigger,
              static_cast<std::uint32_t>(bucket_params_.size()), bucket_elems_);
  }
  const CollectiveOp op = t_.stage == 0 ? CollectiveOp::all_reduce : CollectiveOp::reduce_scatter;
  const std::vector<std::int64_t> ends =
      cluster_.collective(StreamId::reduce, op, bucket_params_, bucket_elems_, &RankClock::reduce, bucket_);
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    RankClock& rank = ranks_[r];
    if (epilogue) {
      rank.emit(rank.compute, EventKind::reduce_wait_begin, StreamId::compute, 0, bucket_, kNoId, kNoId,
                2 * bucket_elems_);
      rank.compute = std::max(rank.compute + 200, ends[r]);
      rank.emit(rank.compute, EventKind::reduce_wait_end, StreamId::compute, 0, bucket_, kNoId, kNoId,
                2 * bucket_elems_);
    }
    for (const std::uint32_t p : bucket_params_) {
      rank.memory(ends[r], EventKind::memory_free, MemoryCategory::grad_full, p, 2 * t_.params[p].elems);
    }
  }
  bucket_params_.clear();
  bucket_elems_ = 0;
  ++bucket_;
}

void SyntheticTraining::optimizer() {
  if (partitioned()) params_.release_all();
  cluster_.gate(ev::GateKind::optimizer, step_);
  for (RankClock& rank : ranks_) {
    rank.emit(rank.compute, EventKind::phase_begin, StreamId::compute, u8(Phase::optimizer), step_, micro_);
    rank.emit(rank.compute, EventKind::optimizer_begin, StreamId::compute, 0, 0, step_, kNoId,
              t_.elems / o_.world);
    rank.compute += cluster_.jitter(
        static_cast<std::int64_t>(static_cast<double>(t_.elems / o_.world) * 1.2 * rank.slowness));
    rank.emit(rank.compute, EventKind::optimizer_end, StreamId::compute, 0, 0, step_, kNoId,
              t_.elems / o_.world);
    rank.emit(rank.compute, EventKind::phase_end, StreamId::compute, u8(Phase::optimizer), step_, micro_);
  }
  if (partitioned()) {
    params_.gather_persistent(step_);
  } else if (t_.stage > 0) {
    for (RankClock& rank : ranks_) {
      rank.gather = std::max(rank.gather, rank.compute);
      rank.emit(rank.gather, EventKind::phase_begin, StreamId::gather, u8(Phase::gather), step_, micro_);
    }
    const auto ends =
        cluster_.collective(StreamId::gather, CollectiveOp::all_gather, {}, t_.elems, &RankClock::gather);
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].emit(ends[r], EventKind::phase_end, StreamId::gather, u8(Phase::gather), step_, micro_);
      ranks_[r].compute = std::max(ranks_[r].compute, ends[r]);
    }
  }
}

void SyntheticTraining::scalar(EventKind kind, double value, std::uint32_t b) {
  for (RankClock& rank : ranks_) {
    rank.emit(rank.compute, kind, StreamId::host, 0, step_, b, kNoId, std::bit_cast<std::int64_t>(value));
  }
}

void SyntheticTraining::play_step(std::uint32_t step) {
  step_ = step;
  cluster_.gate(ev::GateKind::step, step);
  const std::int64_t tokens = o_.context * o_.micro_steps;
  for (RankClock& rank : ranks_) {
    rank.host = std::max({rank.host, rank.compute, rank.gather});
    rank.compute = rank.host;
    rank.emit(rank.host, EventKind::step_begin, StreamId::host, 0, step);
  }
  for (micro_ = 0; micro_ < o_.micro_steps; ++micro_) {
    for (RankClock& rank : ranks_) {
      rank.emit(std::max(rank.host, rank.compute), EventKind::micro_step_begin, StreamId::host, 0, micro_,
                step);
      if (partitioned()) {
        rank.emit(rank.host, EventKind::trace_mode, StreamId::host,
                  u8(iteration_ == 0 ? plan::TraceMode::record : plan::TraceMode::complete), micro_, step);
      }
    }
    params_.begin_iteration(iteration_);
    walk(ev::Pass::forward);
    for (RankClock& rank : ranks_) {
      const double loss =
          6.2 * std::exp(-0.02 * step) + std::uniform_real_distribution<>(-0.02, 0.02)(cluster_.random());
      rank.emit(rank.compute, EventKind::loss, StreamId::host, 0, step, micro_, kNoId,
                std::bit_cast<std::int64_t>(loss));
    }
    walk(ev::Pass::backward);
    ++iteration_;
    for (RankClock& rank : ranks_) {
      rank.host = std::max(rank.host, rank.compute);
      rank.emit(rank.host, EventKind::micro_step_end, StreamId::host, 0, micro_, step);
    }
  }
  micro_ = 0;
  scalar(EventKind::grad_norm, 1.5 / (1 + 0.1 * step));
  scalar(EventKind::learning_rate, 3e-4);
  scalar(EventKind::loss_scale, 1, 2);
  optimizer();
  for (RankClock& rank : ranks_) {
    rank.host = std::max({rank.host, rank.compute, rank.gather});
    rank.emit(rank.host, EventKind::tokens, StreamId::host, 0, step, kNoId, kNoId, tokens);
    rank.emit(rank.host, EventKind::step_end, StreamId::host, 0, step, kNoId, kNoId, tokens * o_.world);
  }
}

}  // namespace shardscope::store
