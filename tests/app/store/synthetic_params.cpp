#include "tests/app/store/synthetic_params.h"

#include <algorithm>

namespace shardscope::store {

using ev::CollectiveOp;
using ev::EventKind;
using ev::kNoId;
using ev::MemoryCategory;
using ev::Phase;
using ev::StatusCause;
using ev::StreamId;

SyntheticParams::SyntheticParams(const SyntheticOptions& options, const ev::RunTables& tables,
                                 SyntheticCluster& cluster)
    : o_(options), t_(tables), cluster_(cluster), ranks_(cluster.ranks()) {
  status_.assign(t_.params.size(), plan::ParamStatus::not_available);
  gather_of_.resize(t_.params.size());
}

void SyntheticParams::begin_iteration(std::uint32_t iteration) {
  iteration_ = iteration;
  trace_step_ = 0;
}

void SyntheticParams::gather_persistent(std::uint32_t step) {
  std::vector<std::uint32_t> params;
  for (const ev::ParamInfo& p : t_.params) {
    if (p.persistent) params.push_back(p.id);
  }
  if (params.empty()) return;
  for (RankClock& rank : ranks_) rank.gather = std::max(rank.gather, rank.compute);
  for (RankClock& rank : ranks_)
    rank.emit(rank.gather, EventKind::phase_begin, StreamId::gather, u8(Phase::gather), step, 0);
  gather(params, kNoId, StatusCause::persistent);
  for (RankClock& rank : ranks_)
    rank.emit(rank.gather, EventKind::phase_end, StreamId::gather, u8(Phase::gather), step, 0);
  make_available(params, kNoId, StatusCause::persistent);
}

std::uint32_t SyntheticParams::gather(const std::vector<std::uint32_t>& params, std::uint32_t module,
                                      ev::StatusCause cause) {
  const std::uint32_t id = gathers_++;
  std::int64_t elems = 0;
  for (const std::uint32_t p : params) elems += t_.params[p].elems;
  for (RankClock& rank : ranks_) {
    rank.host = std::max(rank.host, rank.compute);
    for (const std::uint32_t p : params) {
      rank.memory(rank.host, EventKind::memory_alloc, MemoryCategory::param_gathered, p,
                  2 * t_.params[p].elems);
      rank.emit(std::max(rank.gather, rank.host + 1400), EventKind::param_status, StreamId::gather,
                ev::status_code(u8(plan::ParamStatus::in_flight), cause), p, module, id, t_.params[p].elems,
                available_);
    }
    if (cause == StatusCause::prefetch) {
      rank.emit(rank.host, EventKind::prefetch_issued, StreamId::host, 0, id, module,
                static_cast<std::uint32_t>(params.size()), elems);
    }
  }
  GatherTimes times{.id = id, .prefetched = cause == StatusCause::prefetch, .end = {}};
  times.end =
      cluster_.collective(StreamId::gather, CollectiveOp::all_gather, params, elems, &RankClock::gather, id);
  for (const std::uint32_t p : params) {
    status_[p] = plan::ParamStatus::in_flight;
    gather_of_[p] = times;
  }
  return id;
}

void SyntheticParams::make_available(const std::vector<std::uint32_t>& params, std::uint32_t module,
                                     ev::StatusCause cause) {
  for (const std::uint32_t p : params) {
    if (!t_.params[p].persistent) available_ += t_.params[p].elems;
    status_[p] = plan::ParamStatus::available;
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].compute = std::max(ranks_[r].compute, gather_of_[p].end[r]);
      ranks_[r].emit(ranks_[r].compute, EventKind::param_status, StreamId::compute,
                     ev::status_code(u8(plan::ParamStatus::available),
                                     gather_of_[p].prefetched ? StatusCause::prefetch : cause),
                     p, module, gather_of_[p].id, t_.params[p].elems, available_);
    }
  }
}

void SyntheticParams::release(std::uint32_t param, std::uint32_t module, ev::StatusCause cause) {
  if (!t_.params[param].persistent) available_ -= t_.params[param].elems;
  status_[param] = plan::ParamStatus::not_available;
  for (RankClock& rank : ranks_) {
    rank.emit(rank.compute, EventKind::param_status, StreamId::compute,
              ev::status_code(u8(plan::ParamStatus::not_available), cause), param, module,
              gather_of_[param].id, t_.params[param].elems, available_);
    rank.memory(rank.compute, EventKind::memory_free, MemoryCategory::param_gathered, param,
                2 * t_.params[param].elems);
  }
}

void SyntheticParams::fetch(const std::vector<std::uint32_t>& order, std::size_t at) {
  const std::uint32_t module = order[at];
  std::vector<std::uint32_t> missing, waiting;
  for (const std::uint32_t p : t_.modules[module].params) {
    if (status_[p] == plan::ParamStatus::not_available) missing.push_back(p);
    if (status_[p] != plan::ParamStatus::available) waiting.push_back(p);
  }
  const std::uint32_t id = missing.empty() ? kNoId : gather(missing, module, StatusCause::fetch);
  if (!waiting.empty()) {
    std::int64_t bytes = 0;
    for (const std::uint32_t p : waiting) bytes += 2 * t_.params[p].elems;
    const GatherTimes& times = gather_of_[waiting.back()];
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].emit(ranks_[r].compute, EventKind::fetch_wait_begin, StreamId::compute, 0, module, times.id,
                     kNoId, bytes);
      for (const std::uint32_t p : waiting) {
        ranks_[r].compute = std::max(ranks_[r].compute + 300, gather_of_[p].end[r]);
      }
      ranks_[r].emit(ranks_[r].compute, EventKind::fetch_wait_end, StreamId::compute, 0, module, times.id,
                     kNoId, bytes);
    }
    make_available(waiting, module, StatusCause::fetch);
  }
  const Prefetched next = prefetch(order, at);
  for (RankClock& rank : ranks_) {
    rank.emit(rank.host + 100, EventKind::fetch_decision, StreamId::host, u8(next.stop), module, id,
              trace_step_, next.elems, available_);
  }
  ++trace_step_;
}

void SyntheticParams::release_unused(const std::vector<std::uint32_t>& order, std::size_t at) {
  const std::uint32_t module = order[at];
  for (const std::uint32_t p : t_.modules[module].params) {
    const bool persistent = t_.params[p].persistent;
    bool soon = false;
    for (std::size_t i = at + 1; i < std::min(order.size(), at + 3); ++i) {
      const auto& params = t_.modules[order[i]].params;
      soon = soon || std::count(params.begin(), params.end(), p) > 0;
    }
    if (persistent || soon) {
      for (RankClock& rank : ranks_) {
        rank.emit(rank.compute, EventKind::release_kept, StreamId::host,
                  u8(persistent ? plan::KeepReason::persistent : plan::KeepReason::reused_soon), module, p,
                  kNoId, t_.params[p].elems);
      }
      continue;
    }
    release(p, module, StatusCause::release);
  }
}

SyntheticParams::Prefetched SyntheticParams::prefetch(const std::vector<std::uint32_t>& order,
                                                      std::size_t at) {
  std::int64_t prefetched = 0;
  plan::PrefetchStop stop = iteration_ == 0 ? plan::PrefetchStop::no_trace : plan::PrefetchStop::end_of_trace;
  if (o_.prefetch_elems == 0) stop = plan::PrefetchStop::disabled;
  if (iteration_ > 0 && o_.prefetch_elems > 0) {
    std::vector<std::uint32_t> next;
    std::uint32_t for_module = kNoId;
    for (std::size_t i = at + 1; i < order.size() && stop != plan::PrefetchStop::bucket_full; ++i) {
      for (const std::uint32_t p : t_.modules[order[i]].params) {
        if (status_[p] != plan::ParamStatus::not_available || std::count(next.begin(), next.end(), p) > 0)
          continue;
        if (prefetched > 0 && prefetched + t_.params[p].elems > o_.prefetch_elems) {
          stop = plan::PrefetchStop::bucket_full;
          break;
        }
        prefetched += t_.params[p].elems;
        next.push_back(p);
        if (for_module == kNoId) for_module = order[i];
      }
      if (i > at + 3) break;
    }
    if (!next.empty()) gather(next, for_module, StatusCause::prefetch);
  }
  return {stop, prefetched};
}

void SyntheticParams::release_all() {
  for (const ev::ParamInfo& p : t_.params) {
    if (status_[p.id] == plan::ParamStatus::available) release(p.id, kNoId, StatusCause::partition);
  }
}

}  // namespace shardscope::store
