#include "runtime/engine/gathered_parameters.h"

#include <stdexcept>
#include <string>

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
  if (ownership.stage() < 3) return;
  const plan::FetchScheduler scheduler(context.model, context.world(),
                                       plan::make_scheduler_config(context.config.zero));
  for (const plan::ParamPlan& param : context.model.params) {
    resident_[plan::raw(param.id)] = scheduler.persistent(param.id);
  }
}

void GatheredParameters::check(std::span<const ParamId> params, std::optional<std::uint32_t> modifier) const {
  if (modifier && *modifier >= context_.world()) {
    throw std::invalid_argument("gathered parameters: modifier rank " + std::to_string(*modifier) +
                                " is not in a world of " + std::to_string(context_.world()));
  }
  std::vector<bool> here(gathered_);
  for (const ParamId id : params) {
    if (plan::raw(id) >= here.size()) {
      throw std::invalid_argument("gathered parameters: there is no parameter " +
                                  std::to_string(plan::raw(id)) + "; the model has " +
                                  std::to_string(here.size()));
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
  device::Stream& stream = context_.device.gather();
  std::vector<device::Buffer> memory;
  std::vector<Engine::Gathered> whole;
  for (const ParamId id : params) {
    const auto elems = static_cast<std::size_t>(context_.elems_of(id));
    memory.push_back(context_.device.pinned().allocate(
        elems * sizeof(float), {ev::MemoryCategory::param_gathered, plan::raw(id)}, stream));
    whole.push_back({id, {static_cast<float*>(memory.back().data()), elems}});
    gather_whole(context_, ownership_, state_, id, whole.back().values);
    gathered_[plan::raw(id)] = true;
    emit_status(id, true);
  }
  const auto give_back = [&] {
    for (const ParamId id : params) {
      gathered_[plan::raw(id)] = false;
      emit_status(id, false);
    }
  };
  try {
    use(whole);
    if (modifier) {
      for (const Engine::Gathered& param : whole) take_changes(param, *modifier);
    }
  } catch (...) {
    give_back();
    throw;
  }
  give_back();
  return modifier.has_value() && !params.empty();
}

void GatheredParameters::take_changes(const Engine::Gathered& param, std::uint32_t modifier) {
  context_.control_comm.broadcast_host(std::as_writable_bytes(param.values), modifier);
  for (const plan::OwnedSlice& slice : ownership_.slices(param.id, context_.rank())) {
    if (slice.elems == 0) continue;
    state_.write(base::StateKind::master, slice.param, {slice.owned_offset, slice.owned_offset + slice.elems},
                 param.values.data() + slice.param_offset);
  }
}

void GatheredParameters::emit_status(ParamId param, bool gathered) const {
  if (resident_[plan::raw(param)]) return;
  const auto status = gathered ? plan::ParamStatus::available : plan::ParamStatus::not_available;
  ev::emit<ev::EventKind::param_status>(ev::StreamId::host, {.status = status,
                                                             .cause = ev::StatusCause::context,
                                                             .param = plan::raw(param),
                                                             .elems = context_.elems_of(param)});
}

}  // namespace shardscope::engine
