#include "runtime/engine/weights.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/execution/events.h"

namespace shardscope::engine {
using execution::Context;

namespace {

/// 4 MiB of fp32: elements on the host at a time.
constexpr std::int64_t kPieceElems = std::int64_t{1} << 20;

const device::MemoryTag kTemporary{ev::MemoryCategory::temporary, ev::kNoId};

std::size_t fp32_bytes(std::int64_t elems) { return static_cast<std::size_t>(elems) * sizeof(float); }

std::int64_t elems_of(const std::vector<plan::OwnedSlice>& slices) {
  std::int64_t elems = 0;
  for (const plan::OwnedSlice& slice : slices) elems += slice.elems;
  return elems;
}

/// Gathers one parameter to rank 0, or to all. Ranks own different amounts of it, but an all-gather moves
/// equal ones: each round carries at most `round_elems` of every rank, and the largest owner decides the
/// number of rounds.
class Collection {
 public:
  Collection(const Context& context, const plan::Ownership& ownership, HeldStates& state,
             const plan::ParamPlan& param, bool wanted_here)
      : context_(context), state_(state), param_(param), wanted_here_(wanted_here) {
    slices_.reserve(context.world());
    std::int64_t largest = 0;
    for (std::uint32_t rank = 0; rank < context.world(); ++rank) {
      slices_.push_back(ownership.slices(param.id, rank));
      largest = std::max(largest, elems_of(slices_.back()));
    }
    const auto world = static_cast<std::int64_t>(context.world());
    // Otherwise a parameter owned whole by one rank would have rounds of `elems` from each rank, world times
    // its size. So the result of a round has about the size of the parameter, and the largest owner has up to
    // `world` rounds.
    round_elems_ = std::min(largest, (param.elems + world - 1) / world);
    // 0 elements: no rank owns anything; avoids a division by 0.
    rounds_ = round_elems_ == 0 ? 0 : (largest + round_elems_ - 1) / round_elems_;
  }

  void run(std::span<float> whole) {
    device::Stream& stream = context_.device.gather();
    device::Arena& memory = context_.device.memory();
    device::Buffer send = memory.allocate(fp32_bytes(round_elems_), kTemporary, stream);
    device::Buffer all = memory.allocate(fp32_bytes(round_elems_ * context_.world()), kTemporary, stream);
    // [world, round_elems] pinned: first this rank's part to send, then the gathered parts.
    device::Buffer host = context_.device.pinned().allocate(all.bytes(), kTemporary, stream);
    // Every rank makes the same number of rounds, even with nothing left to send: an all-gather needs all
    // ranks.
    for (std::int64_t round = 0; round < rounds_; ++round) {
      stage(round, host);
      // The whole of `send`, even if this rank's last round is short: place() ignores the rest.
      context_.device.copy_async(send.data(), host.data(), send.bytes(), stream);
      const comm::GatherPart part{send.data(), all.data(), round_elems_, plan::raw(param_.id)};
      context_.gather_comm.all_gather({&part, 1}, kernels::DType::f32, stream, {});
      if (wanted_here_) context_.device.copy_async(host.data(), all.data(), all.bytes(), stream);
      // On every rank: `host` is written again in the next round.
      stream.synchronize();
      if (wanted_here_) place(round, static_cast<const float*>(host.data()), whole);
    }
  }

 private:
  /// Calls visit(slice, first element within the slice, first element within the round, elements).
  template <typename Visit>
  // A round is a range of the concatenated slices of `rank`; a slice may span rounds, and a round slices.
  void visit_round(std::uint32_t rank, std::int64_t round, const Visit& visit) const {
    const plan::Range wanted{round * round_elems_, (round + 1) * round_elems_};
    std::int64_t begin = 0;
    for (const plan::OwnedSlice& slice : slices_[rank]) {
      const plan::Range part = plan::intersect(wanted, {begin, begin + slice.elems});
      if (part.size() > 0) visit(slice, part.begin - begin, part.begin - wanted.begin, part.size());
      begin += slice.elems;
    }
  }

  void stage(std::int64_t round, device::Buffer& host) {
    auto* to = static_cast<float*>(host.data());
    visit_round(context_.rank(), round,
                [&](const plan::OwnedSlice& slice, std::int64_t first, std::int64_t at, std::int64_t elems) {
                  const std::int64_t begin = slice.owned_offset + first;
                  state_.read(base::StateKind::master, slice.param, {begin, begin + elems}, to + at);
                });
  }

  // In the gathered rounds rank r's elements begin at r * round_elems_.
  void place(std::int64_t round, const float* all, std::span<float> whole) const {
    for (std::uint32_t rank = 0; rank < context_.world(); ++rank) {
      const float* from = all + round_elems_ * rank;
      visit_round(
          rank, round,
          [&](const plan::OwnedSlice& slice, std::int64_t first, std::int64_t at, std::int64_t elems) {
            std::memcpy(whole.data() + slice.param_offset + first, from + at, fp32_bytes(elems));
          });
    }
  }

  const Context& context_;
  HeldStates& state_;
  const plan::ParamPlan& param_;
  const bool wanted_here_;
  std::vector<std::vector<plan::OwnedSlice>> slices_;  ///< by rank
  std::int64_t round_elems_ = 0;
  std::int64_t rounds_ = 0;
};

}  // namespace

void fill_owned(const Context& context, const plan::Ownership& ownership, HeldStates& state,
                std::span<const base::StateKind> kinds, const Engine::FillState& fill) {
  device::Stream& stream = context.device.compute();
  std::int64_t piece_elems = 1;
  // No piece is longer than the largest parameter: small models need no 4 MiB.
  for (const plan::ParamPlan& param : context.model.params) piece_elems = std::max(piece_elems, param.elems);
  piece_elems = std::min(piece_elems, kPieceElems);
  device::Buffer host = context.device.pinned().allocate(fp32_bytes(piece_elems), kTemporary, stream);
  auto* piece = static_cast<float*>(host.data());
  for (const plan::ParamPlan& param : context.model.params) {
    for (const plan::OwnedSlice& slice : ownership.slices(param.id, context.rank())) {
      for (std::int64_t at = 0; at < slice.elems; at += piece_elems) {
        const std::int64_t elems = std::min(piece_elems, slice.elems - at);
        // The caller counts elements of the parameter, the states elements of the owned range.
        const std::int64_t first = slice.param_offset + at;
        const std::int64_t begin = slice.owned_offset + at;
        for (const base::StateKind kind : kinds) {
          // Frozen parameters have weights only.
          if (!param.trainable && kind != base::StateKind::master) continue;
          fill(kind, param.id, {first, first + elems}, piece);
          // Returns when `piece` may be filled again.
          state.write(kind, param.id, {begin, begin + elems}, piece);
        }
      }
    }
  }
}

void broadcast_owned(const Context& context, const plan::Ownership& ownership, HeldStates& state,
                     std::uint32_t root, const Engine::FillParam& fill) {
  for (const plan::ParamPlan& param : context.model.params) {
    // One whole parameter on the host at a time, on every rank: never more of the model.
    const device::Buffer host = context.device.pinned().allocate(
        fp32_bytes(param.elems), {ev::MemoryCategory::temporary, plan::raw(param.id)},
        context.device.compute());
    const std::span whole(static_cast<float*>(host.data()), static_cast<std::size_t>(param.elems));
    // The other ranks' memory is written by the broadcast.
    if (context.rank() == root) fill(param.id, {0, param.elems}, whole.data());
    context.control_comm.broadcast_host(std::as_writable_bytes(whole), root);
    keep_owned(ownership, context.rank(), state, param.id, whole);
  }
}

void keep_owned(const plan::Ownership& ownership, std::uint32_t rank, HeldStates& state, plan::ParamId param,
                std::span<const float> whole) {
  for (const plan::OwnedSlice& slice : ownership.slices(param, rank)) {
    // A shard of padding only is not in `whole`.
    if (slice.elems == 0) continue;
    state.write(base::StateKind::master, slice.param, {slice.owned_offset, slice.owned_offset + slice.elems},
                whole.data() + slice.param_offset);
  }
}

void read_states(const Context& context, HeldStates& state, std::span<const plan::SavedSlice> slices,
                 const Engine::TakeStates& take) {
  // Adjacent slices of the owned range are merged to one run, as most are with many small parameters. Frozen
  // ones are stored separately and not merged.
  struct Run {
    plan::ParamId first{};
    plan::Range range;
    bool frozen = false;
  };
  std::vector<Run> runs;
  std::int64_t longest = 0;
  for (const plan::SavedSlice& slice : slices) {
    const bool frozen = !context.model.params[plan::raw(slice.param)].trainable;
    if (runs.empty() || frozen || runs.back().range.end != slice.owned_offset) {
      runs.push_back({slice.param, {slice.owned_offset, slice.owned_offset}, frozen});
    }
    // Also for a new run, which is empty so far.
    runs.back().range.end += slice.elems;
    longest = std::max(longest, runs.back().range.size());
  }
  if (runs.empty()) return;
  const std::int64_t piece_elems = std::min(longest, kPieceElems);
  device::Buffer host =
      context.device.pinned().allocate(fp32_bytes(piece_elems), kTemporary, context.device.compute());
  auto* piece = static_cast<float*>(host.data());
  // Kind by kind: a file has one tensor per kind, so it is written sequentially.
  for (const base::StateKind kind : state.kinds()) {
    // Offset in the sequence of this kind; frozen slices have weights only.
    std::int64_t at = 0;
    for (const Run& run : runs) {
      if (run.frozen && kind != base::StateKind::master) continue;
      for (std::int64_t begin = run.range.begin; begin < run.range.end; begin += piece_elems) {
        const std::int64_t elems = std::min(piece_elems, run.range.end - begin);
        state.read(kind, run.first, {begin, begin + elems}, piece);
        take(kind, at, {piece, static_cast<std::size_t>(elems)});
        at += elems;
      }
    }
  }
}

void gather_whole(const Context& context, const plan::Ownership& ownership, HeldStates& state,
                  plan::ParamId param, std::span<float> whole) {
  // The host reads states that the device may still be writing.
  context.device.synchronize();
  if (ownership.whole_everywhere(param)) {
    const plan::OwnedSlice slice = ownership.slices(param, 0).front();
    state.read(base::StateKind::master, param, {slice.owned_offset, slice.owned_offset + slice.elems},
               whole.data());
    return;
  }
  Collection(context, ownership, state, context.model.params[plan::raw(param)], true).run(whole);
}

void collect_weights(const Context& context, const plan::Ownership& ownership, HeldStates& state,
                     const Engine::TakeParam& take) {
  context.device.synchronize();
  std::vector<float> whole;
  for (const plan::ParamPlan& param : context.model.params) {
    // Grows to the size of the largest parameter; the other ranks need no memory for it.
    if (context.rank() == 0) whole.resize(static_cast<std::size_t>(param.elems));
    if (ownership.whole_everywhere(param.id)) {
      // Not collective for such a parameter: rank 0 has it.
      if (context.rank() != 0) continue;
      const plan::OwnedSlice slice = ownership.slices(param.id, 0).front();
      state.read(base::StateKind::master, param.id, {slice.owned_offset, slice.owned_offset + param.elems},
                 whole.data());
    } else {
      Collection(context, ownership, state, param, context.rank() == 0).run(whole);
    }
    if (context.rank() == 0) take(param.id, whole);
  }
}

}  // namespace shardscope::engine
