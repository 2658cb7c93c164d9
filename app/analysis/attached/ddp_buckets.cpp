#include "app/analysis/attached/ddp_buckets.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "app/analysis/attached/rank_reader.h"
#include "instrumentation/event_fields.h"

namespace shardscope::analysis::attached {
namespace {

/// Sizes of buckets, as indices of the order of gradients: each bucket's end.
std::vector<std::size_t> bucket_ends(const RecordedCosts& costs, const BucketSettings& settings,
                                     std::int64_t elem_bytes) {
  if (!settings.cap_bytes) return costs.bucket_ends;
  std::vector<std::size_t> ends;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < costs.gradient_order.size(); ++i) {
    bytes += costs.model.params[plan::raw(costs.gradient_order[i])].elems * elem_bytes;
    if (bytes < *settings.cap_bytes && i + 1 < costs.gradient_order.size()) continue;
    ends.push_back(i + 1);
    bytes = 0;
  }
  return ends;
}

/// The piece in which each parameter's gradient is ready: the backward of the module that has it, the last
/// one where several do.
std::map<plan::ParamId, std::size_t> ready_pieces(const RecordedCosts& costs) {
  std::map<plan::ParamId, std::size_t> out;
  for (std::size_t i = 0; i < costs.pieces.size(); ++i) {
    const Piece& piece = costs.pieces[i];
    if (piece.gate != ev::GateKind::pre_backward || piece.module >= costs.model.modules.size()) continue;
    for (const plan::ParamId param : costs.model.modules[piece.module].params) out[param] = i;
  }
  return out;
}

}  // namespace

std::vector<std::vector<std::vector<ReducedBucket>>> reduced_buckets(const store::Store& store,
                                                                     const RankStep& step) {
  const std::vector<store::Store::GateRow> gates = piece_gates(store, step);
  const std::vector<ev::Event> instants = store.instants(step.rank, step.begin_ns, step.end_ns);
  std::vector<std::vector<std::vector<ReducedBucket>>> out;
  auto at = instants.begin();
  for (std::size_t i = 0; i + 1 < gates.size(); ++i) {
    if (gates[i].kind == ev::GateKind::micro_step) out.emplace_back();
    std::vector<ReducedBucket>& piece = out.back().emplace_back();
    for (; at != instants.end() && static_cast<std::int64_t>(at->ticks) < gates[i + 1].at_ns; ++at) {
      if (at->kind != ev::EventKind::bucket_flush) continue;
      const auto flush = ev::as<ev::EventKind::bucket_flush>(*at);
      piece.push_back({flush.elems, flush.params});
    }
  }
  return out;
}

void set_bucket_order(RecordedCosts& costs) {
  for (const Piece& piece : costs.pieces)
    costs.gradient_order.insert(costs.gradient_order.end(), piece.gradients.begin(), piece.gradients.end());
  std::size_t end = 0;
  for (const auto& piece : costs.reduced.back())
    for (const ReducedBucket& bucket : piece) costs.bucket_ends.push_back(end += bucket.params);
}

bool reduces_as_recorded(const RecordedCosts& costs, const StepActions& actions) {
  for (std::size_t micro = 0; micro < costs.reduced.size(); ++micro) {
    for (std::size_t i = 0; i < costs.pieces.size(); ++i) {
      std::vector<std::int64_t> elems;
      for (const ReducedBucket& bucket : costs.reduced[micro][i]) elems.push_back(bucket.elems);
      if (elems != actions.micro_steps[micro][i].flushed_elems) return false;
    }
  }
  return true;
}

StepActions planned_bucket_actions(const RecordedCosts& costs, const BucketSettings& settings,
                                   std::int64_t micro_steps, std::int64_t elem_bytes) {
  if (settings.reduce_last_only && micro_steps <= 1)
    throw std::invalid_argument(
        "DistributedDataParallel.reduce_in_last_micro_step_only: it does nothing with one micro-step; give "
        "gradient_accumulation_steps too");
  const std::size_t count = checked_micro_steps(costs, micro_steps);
  StepActions out;
  out.micro_steps.assign(count, std::vector<PieceActions>(costs.pieces.size()));
  const std::map<plan::ParamId, std::size_t> ready = ready_pieces(costs);
  const std::vector<std::size_t> ends = bucket_ends(costs, settings, elem_bytes);
  // no_sync(): micro-steps before the last reduce nothing.
  const bool recorded =
      costs.reduced.size() < 2 ||
      std::ranges::any_of(costs.reduced.front(), [](const auto& piece) { return !piece.empty(); });
  const bool each = settings.reduce_last_only ? !*settings.reduce_last_only : recorded;
  for (std::size_t micro = 0; micro < count; ++micro) {
    if (!each && micro + 1 < count) continue;
    std::size_t begin = 0, at = 0;  // a bucket also waits for those before it
    for (const std::size_t end : ends) {
      std::int64_t elems = 0;
      for (; begin < end; ++begin) {
        const plan::ParamId param = costs.gradient_order[begin];
        elems += costs.model.params[plan::raw(param)].elems;
        if (const auto known = ready.find(param); known != ready.end()) at = std::max(at, known->second);
      }
      out.micro_steps[micro][at].flushed_elems.push_back(elems);
      ++out.flushes;
    }
  }
  return out;
}

}  // namespace shardscope::analysis::attached
