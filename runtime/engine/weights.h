// Reads and writes weights and optimizer states of the owned ranges; no process holds the whole model.
#pragma once

#include <span>

#include "runtime/engine/engine.h"
#include "runtime/engine/held_states.h"
#include "runtime/execution/context.h"
#include "runtime/plan/ownership.h"

namespace shardscope::engine {

/// Calls `fill` for the elements this rank owns, a bounded piece at a time, and copies them to the states of
/// `kinds`; for the frozen elements that it stores, to their weights. Waits for the copies.
void fill_owned(const execution::Context& context, const plan::Ownership& ownership, HeldStates& state,
                std::span<const base::StateKind> kinds, const Engine::FillState& fill);

/// Collective: rank `root` calls `fill` for one whole parameter at a time and broadcasts it; every rank
/// copies the elements that it owns or stores to its weights.
void broadcast_owned(const execution::Context& context, const plan::Ownership& ownership, HeldStates& state,
                     std::uint32_t root, const Engine::FillParam& fill);

/// Copies the elements of a whole parameter that `rank` owns or stores to its weights.
void keep_owned(const plan::Ownership& ownership, std::uint32_t rank, HeldStates& state, plan::ParamId param,
                std::span<const float> whole);

/// Passes the states of `slices` to `take`, a bounded piece at a time: kind by kind, the slices concatenated.
/// Frozen ones follow the others and have weights only.
void read_states(const execution::Context& context, HeldStates& state,
                 std::span<const plan::SavedSlice> slices, const Engine::TakeStates& take);

/// Collective: gathers one parameter in fp32 from the master weights of all ranks into `whole` on every rank.
void gather_whole(const execution::Context& context, const plan::Ownership& ownership, HeldStates& state,
                  plan::ParamId param, std::span<float> whole);

/// Collective: gathers one parameter after the other from the master weights of all ranks; rank 0 passes each
/// as fp32 to `take`.
void collect_weights(const execution::Context& context, const plan::Ownership& ownership, HeldStates& state,
                     const Engine::TakeParam& take);

}  // namespace shardscope::engine
