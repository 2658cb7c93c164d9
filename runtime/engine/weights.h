// Weights and optimizer states into and out of the owned ranges, without a whole model in anyone's memory.
#pragma once

#include <span>

#include "runtime/engine/engine.h"
#include "runtime/engine/held_states.h"
#include "runtime/execution/context.h"
#include "runtime/plan/ownership.h"

namespace shardscope::engine {

/// Asks `fill` for the elements this rank owns, a bounded piece at a time, and copies them to the states of
/// `kinds`; for those of frozen parameters that it holds, to their weights. Waits for the copies.
void fill_owned(const execution::Context& context, const plan::Ownership& ownership, HeldStates& state,
                std::span<const base::StateKind> kinds, const Engine::FillState& fill);

/// Collective: rank `root` asks `fill` for one whole parameter after the other and broadcasts it; every rank
/// copies the elements that it owns or holds to their weights.
void broadcast_owned(const execution::Context& context, const plan::Ownership& ownership, HeldStates& state,
                     std::uint32_t root, const Engine::FillParam& fill);

/// The elements of a whole parameter that `rank` owns or holds, to their weights.
void keep_owned(const plan::Ownership& ownership, std::uint32_t rank, HeldStates& state, plan::ParamId param,
                std::span<const float> whole);

/// Hands the states of `slices` to `take`, a bounded piece at a time: kind by kind, the slices in a row.
/// Frozen ones follow the others and have weights only.
void read_states(const execution::Context& context, HeldStates& state,
                 std::span<const plan::SavedSlice> slices, const Engine::TakeStates& take);

/// Collective: one parameter comes together from the master weights of all ranks, in fp32, in `whole` on
/// every rank.
void gather_whole(const execution::Context& context, const plan::Ownership& ownership, HeldStates& state,
                  plan::ParamId param, std::span<float> whole);

/// Collective: parameter after parameter comes together from the master weights of all ranks; rank 0 gets
/// each as fp32 through `take`.
void collect_weights(const execution::Context& context, const plan::Ownership& ownership, HeldStates& state,
                     const Engine::TakeParam& take);

}  // namespace shardscope::engine
