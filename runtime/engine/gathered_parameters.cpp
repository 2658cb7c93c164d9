#include "runtime/engine/gathered_parameters.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/engine/weights.h"
#include "runtime/execution/events.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/scheduler_config.h"

namespace shardscope::engine {
using execution::Context;
using execution::emit_host;

using plan::ParamId;

GatheredParameters::GatheredParameters(const Context& context, const plan::Ownership& ownership,
                                       HeldStates& state)
    : context_(context),
      ownership_(ownership),
      state_(state),
      gathered_(context.model.params.size(), false),
      resident_(context.model.params.size(), true) {
  // Below stage 3 every parameter is whole on every rank: its status does not change, and emit_status() emits
  // nothing.
  if (ownership.stage() < 3) return;
  const plan::FetchScheduler scheduler(context.model, context.world(),
                                       plan::make_scheduler_config(context.config.zero));
  for (const plan::ParamPlan& param : context.model.params) {
    resident_[plan::raw(param.id)] = scheduler.persistent(param.id);
  }
}

void GatheredParameters::check(std::span<const ParamId> params, std::optional<std::uint32_t> modifier) const {
  // Every rank throws alike: the arguments are the same on all ranks.
  if (modifier && *modifier >= context_.world()) {
    throw std::invalid_argument("gathered parameters: modifier rank " + std::to_string(*modifier) +
                                " is not in a world of " + std::to_string(context_.world()));
  }
  // A copy, to detect a parameter named twice in one call, and to change nothing if one is rejected.
  std::vector<bool> here(gathered_);
  for (const ParamId id : params) {
    if (plan::raw(id) >= here.size()) {
      throw std::invalid_argument(
          "gathered parameters: there is no parameter " + std::to_string(plan::raw(id)) + "; the model has " +
          std::to_string(here.size()) + ", described before the run: none can be added to it");
    }
    if (here[plan::raw(id)]) {
      throw std::logic_error("gathered parameters: " + context_.model.params[plan::raw(id)].name +
                             " is gathered already; a nested gathering may not name it again");
    }
    here[plan::raw(id)] = true;
  }
}

bool GatheredParameters::with(std::span<const ParamId> params, std::optional<std::uint32_t> modifier,
                              const Engine::UseGathered& use) {
  check(params, modifier);
  // One per parameter, [elems] fp32 on the host. Freed when this returns; `whole` has views of it.
  std::vector<device::Buffer> memory;
  std::vector<Engine::Gathered> whole;
  // Reserved, so that nothing can throw between a gather and its entry here.
  memory.reserve(params.size());
  whole.reserve(params.size());
  // Only those gathered so far: a later one may have failed.
  const auto give_all_back = [&] {
    for (const Engine::Gathered& param : whole) give_back(param.id);
  };
  try {
    for (const ParamId id : params) {
      Whole made = make_whole(id);
      memory.push_back(std::move(made.memory));
      whole.push_back(made.values);
    }
    use(whole);
    // After `use`, and only if it did not throw: partial changes are not sent.
    if (modifier) {
      // In the order of `params`, the same on every rank.
      for (const Engine::Gathered& param : whole) take_changes(param, *modifier);
    }
  } catch (...) {
    give_all_back();
    throw;
  }
  give_all_back();
  // The same on every rank, since publish() is collective.
  return modifier.has_value() && !params.empty();
}

// The broadcast overwrites the values of the other ranks with the modifier's.
void GatheredParameters::take_changes(const Engine::Gathered& param, std::uint32_t modifier) {
  context_.control_comm.broadcast_host(std::as_writable_bytes(param.values), modifier);
  keep_owned(ownership_, context_.rank(), state_, param.id, param.values);
}

GatheredParameters::Whole GatheredParameters::make_whole(ParamId param) {
  const auto elems = static_cast<std::size_t>(context_.elems_of(param));
  Whole whole;
  // Pinned fp32 on the host, [elems]: master weights, not the device's storage type.
  whole.memory = context_.device.pinned().allocate(elems * sizeof(float),
                                                   {ev::MemoryCategory::param_gathered, plan::raw(param)},
                                                   context_.device.gather());
  whole.values = {param, {static_cast<float*>(whole.memory.data()), elems}};
  // Before the flag is set: a failed gather changes nothing.
  gather_whole(context_, ownership_, state_, param, whole.values.values);
  gathered_[plan::raw(param)] = true;
  emit_status(param, true);
  return whole;
}

void GatheredParameters::give_back(ParamId param) {
  gathered_[plan::raw(param)] = false;
  emit_status(param, false);
}

// A map's nodes do not move: the span stays valid while others are gathered.
std::span<float> GatheredParameters::gather(ParamId param) {
  check({&param, 1}, std::nullopt);
  return by_call_.emplace(param, make_whole(param)).first->second.values.values;
}

bool GatheredParameters::partition(ParamId param, bool updated) {
  const auto found = by_call_.find(param);
  // with() gathers as well, but frees its parameters itself.
  if (found == by_call_.end()) {
    throw std::logic_error("partition: parameter " + std::to_string(plan::raw(param)) +
                           " is not whole by a call of all_gather");
  }
  // Before the memory is freed. Nothing is sent: each rank keeps its part of its own values.
  if (updated) keep_owned(ownership_, context_.rank(), state_, param, found->second.values.values);
  by_call_.erase(found);
  give_back(param);
  return updated;
}

// One element, of any shape.
float GatheredParameters::item(ParamId param) {
  check({&param, 1}, std::nullopt);
  if (context_.elems_of(param) != 1) {
    throw std::invalid_argument("item: " + context_.model.params[plan::raw(param)].name + " has " +
                                std::to_string(context_.elems_of(param)) +
                                " elements; only a parameter of one element is a number");
  }
  // Read before it is partitioned: the span ends there.
  const float value = gather(param).front();
  static_cast<void>(partition(param, false));
  return value;
}

// A step would change the weights while the caller still has a copy of the old ones.
void GatheredParameters::check_partitioned() const {
  if (by_call_.empty()) return;
  throw std::logic_error("step: " + context_.model.params[plan::raw(by_call_.begin()->first)].name +
                         " is whole by a call of all_gather; partition it first");
}

// On the host lane: gathering between steps is finished when the call returns and uses no stream afterwards.
void GatheredParameters::emit_status(ParamId param, bool gathered) const {
  if (resident_[plan::raw(param)]) return;
  const auto status = gathered ? plan::ParamStatus::available : plan::ParamStatus::not_available;
  ev::emit<ev::EventKind::param_status>(ev::StreamId::host, {.status = status,
                                                             .cause = ev::StatusCause::context,
                                                             .param = plan::raw(param),
                                                             .elems = context_.elems_of(param)});
}

}  // namespace shardscope::engine
