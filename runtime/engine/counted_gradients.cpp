#include "runtime/engine/counted_gradients.h"

#include "instrumentation/emitter.h"
#include "runtime/execution/events.h"
#include "runtime/plan/checked_gradients.h"

namespace shardscope::engine {
using execution::advance;
using execution::Context;
using execution::emit_host;

CountedGradients::CountedGradients(const Context& context, const Gradients& gradients,
                                   const plan::Ownership& ownership)
    : context_(context), gradients_(gradients), ownership_(ownership), norm_(context.device) {}

void CountedGradients::queue() { norm_.queue(parts()); }

optim::GradientNorm::Local CountedGradients::read() {
  optim::GradientNorm::Local local = norm_.read();
  if (!counts()) local.sum_of_squares = 0;
  return local;
}

/// The part of the owned range that this rank squares and checks: all of it, or in stage 0, where every rank
/// owns everything, an equal part.
plan::Range CountedGradients::range() const {
  if (ownership_.stage() > 0) return {0, ownership_.owned_elems()};
  return plan::partition_param(ownership_.owned_elems(), context_.world()).real_range(context_.rank());
}

// Stage 0: every rank has all gradients. Each squares a part, so that the sum over ranks has each element
// once.
optim::GradientParts CountedGradients::parts() const {
  const optim::GradientParts owned = gradients_.owned();
  if (ownership_.stage() > 0) return owned;
  const plan::Range counted = range();
  return {advance(owned.device, counted.begin), counted.size(), {}, 0};
}

/// MiCS: each shard is on several ranks, but must be counted once.
bool CountedGradients::counts() const {
  return ownership_.stage() == 0 || context_.rank() < ownership_.shard_world();
}

// A replica of the shard is skipped: its elements are the same.
void CountedGradients::name_not_finite(std::uint32_t step) {
  if (!counts() || !ev::enabled(ev::detail_of(ev::EventKind::gradient_not_finite))) return;
  const optim::GradientParts gradients = parts();
  const plan::Range counted = range();
  plan::NotFiniteGradients found;
  for (const plan::CheckedGradient& gradient :
       plan::checked_gradients(ownership_, context_.rank(), counted, gradients_.backward_order())) {
    const kernels::NotFiniteCount count = norm_.count_not_finite(
        gradients, {gradient.owned.begin - counted.begin, gradient.owned.end - counted.begin});
    found.add(gradient, static_cast<std::int64_t>(count.infinite), static_cast<std::int64_t>(count.nan));
  }
  if (!found.first()) return;
  emit_host<ev::EventKind::gradient_not_finite>({.infinite = found.first()->infinite > 0,
                                                 .nan = found.first()->nan > 0,
                                                 .step = step,
                                                 .param = plan::raw(found.first()->param),
                                                 .position = found.first()->position,
                                                 .elems = found.first()->infinite + found.first()->nan,
                                                 .other_params = found.other_params()});
}

}  // namespace shardscope::engine
