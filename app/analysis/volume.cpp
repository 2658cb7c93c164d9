#include "app/analysis/volume.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "app/analysis/communication.h"
#include "app/analysis/framework.h"
#include "app/analysis/param_groups.h"
#include "app/analysis/spans.h"
#include "app/analysis/zero_settings.h"
#include "instrumentation/gate.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/memory_model.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/shard_layout.h"
#include "runtime/plan/stage12.h"
#include "runtime/plan/trained_layout.h"

namespace shardscope::analysis {
namespace {

double& at(VolumeParts& parts, VolumeCause cause) { return parts[static_cast<std::size_t>(cause)]; }

double elems_of(const plan::ScopeTraffic& traffic) {
  std::int64_t sum = 0;
  for (const plan::Traffic& scope : traffic) sum += scope.elems;
  return static_cast<double>(sum);
}
/// Elements for one parameter; with MiCS the copies sum whole gradients, however they were reduced.
double reduction_of(const plan::ScopeTraffic& traffic) {
  constexpr auto kReplica = static_cast<std::size_t>(plan::TrafficScope::replica);
  return elems_of(traffic) - static_cast<double>(traffic[kReplica].elems);
}

plan::TrafficInput traffic_input(const ev::RunTables& tables, std::int64_t micro_steps) {
  plan::TrafficInput input;
  input.topology = topology_of(tables);
  input.micro_steps = micro_steps;
  input.param_bytes = tables.param_bytes;
  input.gradient_bytes = input.sum_bytes = tables.grad_bytes;
  input.shard_alignment = plan::kShardAlignmentBytes / std::max<std::int64_t>(tables.param_bytes, 1);
  return input;
}

/// Elements outside of buckets and gathers, as counted for a step: all-reduces of one element (2S), FSDP2's
/// all-reduce of a norm per parameter, DeepSpeed's broadcasts of numbers that ranks compare.
double scalars_of(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns) {
  const bool fsdp2 = framework_of(store.tables()) == Framework::fsdp2;
  const bool deepspeed = framework_of(store.tables()) == Framework::deepspeed;
  const auto norms = static_cast<std::int64_t>(store.tables().params.size());
  double elems = 0;
  for_each_collective(store, rank, begin_ns, end_ns, [&](ev::StreamId, const store::Span& span) {
    const auto collective = ev::as<ev::EventKind::collective_begin>(span);
    if (collective.group != ev::kNoId) return;
    const bool one = collective.elems == 1 || (fsdp2 && collective.elems == norms);
    if (collective.op == ev::CollectiveOp::all_reduce && one)
      elems += 2.0 * static_cast<double>(collective.elems);
    if (collective.op == ev::CollectiveOp::broadcast && deepspeed)
      elems += static_cast<double>(collective.elems);
  });
  return elems;
}

/// The host's part of a step.
struct HostStep {
  std::vector<store::Store::GateRow> gates;    ///< empty if not recorded
  std::int64_t until_ns = store::Store::kEnd;  ///< the next step's first gate
};

/// For the step that ended at `end_ns`; the host may begin it before its timestamp on the compute stream.
HostStep host_step(const store::Store& store, std::uint32_t rank, std::uint32_t step, std::int64_t end_ns) {
  const auto is_step = [](const store::Store::GateRow& gate) { return gate.kind == ev::GateKind::step; };
  auto first = store.gate_before(rank, end_ns, is_step);
  while (first && first->id > step) first = store.gate_before(rank, first->at_ns, is_step);
  if (!first || first->id != step) return {};
  const auto next = store.gate_after(rank, first->at_ns - 1, [&](const store::Store::GateRow& gate) {
    return is_step(gate) && gate.number > first->number;
  });
  HostStep host;
  if (next) host.until_ns = next->at_ns;
  host.gates = store.gates(rank, first->at_ns, next ? next->at_ns + 1 : store::Store::kEnd);
  std::erase_if(host.gates, [&](const store::Store::GateRow& gate) {
    return gate.number < first->number || (next && gate.number >= next->number);
  });
  // Modules after the optimizer belong to an evaluation, not to the step.
  const auto optimizer =
      std::find_if(host.gates.rbegin(), host.gates.rend(),
                   [](const store::Store::GateRow& gate) { return gate.kind == ev::GateKind::optimizer; });
  if (optimizer != host.gates.rend()) host.gates.erase(optimizer.base(), host.gates.end());
  return host;
}

}  // namespace

const char* name_of(VolumeCause cause) noexcept {
  switch (cause) {
    case VolumeCause::padding:
      return "padding";
    case VolumeCause::persistent:
      return "persistent parameters";
    case VolumeCause::kept:
      return "kept between uses";
    case VolumeCause::shared:
      return "shared weights";
    case VolumeCause::repeated:
      return "repeated uses";
    case VolumeCause::unused:
      return "gathered in vain";
    case VolumeCause::no_gradient:
      return "no gradient";
    case VolumeCause::all_reduced:
      return "all-reduced gradients";
    case VolumeCause::other_way:
      return "other copies";
    case VolumeCause::skipped:
      return "skipped modules";
    case VolumeCause::no_backward:
      return "no backward";
    case VolumeCause::accumulated:
      return "accumulated gradients";
    case VolumeCause::scalars:
      return "norms and flags";
  }
  return "?";
}

const char* explain(VolumeCause cause) noexcept {
  switch (cause) {
    case VolumeCause::padding:
      return "shards are of equal size, so the last ones are filled up";
    case VolumeCause::persistent:
      return "persistent parameters are gathered once after the step, not for every use";
    case VolumeCause::kept:
      return "reused soon, or already fetched for a later use, so not gathered again";
    case VolumeCause::shared:
      return "tied or external weights are gathered again for another module that uses them";
    case VolumeCause::repeated:
      return "modules used several times in a pass, or recomputed in backward, gather again";
    case VolumeCause::unused:
      return "gathered more often than used: released unused, with an invalidated trace or without";
    case VolumeCause::no_gradient:
      return "parameters that got no gradient in a micro-step are not reduced";
    case VolumeCause::all_reduced:
      return "gradients were all-reduced (2S) where a reduction to the owners (S) would do";
    case VolumeCause::other_way:
      return "gathered from all ranks where the expression counts secondary copies, or the reverse (hpZ)";
    case VolumeCause::skipped:
      return "the forward did not run the modules that use them, so they were not gathered for it";
    case VolumeCause::accumulated:
      return "gradients of several micro-steps were accumulated on the rank and reduced together";
    case VolumeCause::scalars:
      return "no parameters or gradients: all-reduces of gradient norms, flags, a mean loss; broadcasts of "
             "numbers "
             "that ranks compare";
    case VolumeCause::no_backward:
      return "frozen, with nothing trained below them: backward does not reach their modules";
  }
  return "?";
}

VolumeModel::VolumeModel(const ev::RunTables& tables, std::int64_t recorded_micro_steps)
    : tables_(&tables),
      zero_(zero_of(tables)),
      micro_steps_(std::max<std::int64_t>({zero_.gradient_accumulation_steps, recorded_micro_steps, 1})) {
  const std::uint32_t world = copy_size(tables);
  plan::VolumeInput input;
  input.stage = zero_.stage;
  input.world = world;
  input.micro_steps = micro_steps_;
  std::int64_t frozen = 0;
  for (const ev::ParamInfo& param : tables.params) frozen += param.frozen ? param.elems : 0;
  std::vector<std::int64_t> sums{tables.elems - frozen};
  if (frozen > 0) {
    sums.push_back(frozen);
    input.trainable = {true, false};
  }
  const plan::StepVolume plain = plan::step_volume(sums, input);
  expression_ = plain.text;
  expected_ = plain.elems;
  special_ = plan::has_special_traffic(zero_);
  std::vector<plan::TrafficParam> params;
  for (const ev::ParamInfo& param : tables.params)
    params.push_back({param.shape, param.persistent, param.frozen});
  try {
    if (special_) {
      const plan::TrafficInput traffic = traffic_input(tables, micro_steps_);
      expected_ = static_cast<double>(plan::step_traffic(params, zero_, traffic).total().elems);
      expression_ = plan::traffic_text(zero_, traffic.topology, micro_steps_);
      for (const plan::TrafficParam& param : params) {
        const plan::StepTraffic one = plan::step_traffic({param}, zero_, traffic_input(tables, 1));
        gather_cost_.push_back(elems_of(param.persistent ? one.persistent : one.forward));
        reduction_cost_.push_back(reduction_of(one.reduce));
        expected_gathers_.push_back(elems_of(plan::step_traffic({param}, zero_, traffic).gathers()));
      }
    } else if (zero_.stage == 3) {
      // FSDP2 shards rows, not elements: use the recorded shard size if there is one.
      for (const ev::ParamInfo& param : tables.params) {
        const std::int64_t shard =
            param.shard_elems > 0 ? param.shard_elems : plan::partition_param(param.elems, world).shard_elems;
        gather_cost_.push_back(static_cast<double>(shard * world));
      }
    } else if (zero_.stage > 0) {
      std::vector<std::int64_t> elems;
      std::vector<bool> trainable;
      for (const ev::ParamInfo& param : tables.params) {
        elems.push_back(param.elems);
        trainable.push_back(!param.frozen);
      }
      const plan::FlatLayout flat =
          plan::trained_layout({elems, trainable, groups_of_params(tables)}, world, zero_);
      // The first ZeRO-1 also reduce-scatters the padded buffer.
      flat_padding_ = static_cast<double>((plan::uses_legacy_layout(zero_) ? 2 : 1) *
                                          (flat.flat_elems - (tables.elems - frozen)));
    }
  } catch (const std::invalid_argument&) {
    special_ = false;  // impossible sizes
    gather_cost_.clear();
  }
}

const VolumeModel& KeptVolumeModel::of(const ev::RunTables& tables, std::int64_t recorded_micro_steps) {
  const Key key{&tables,
                tables.rank,
                tables.modules.size(),
                tables.params.size(),
                tables.slices.size(),
                tables.groups.size(),
                tables.config_json.size(),
                recorded_micro_steps};
  if (!model_ || key != key_) model_.emplace(tables, recorded_micro_steps);
  key_ = key;
  return *model_;
}

VolumeModel::Counts VolumeModel::count(const store::Store& store, std::uint32_t rank, std::uint32_t step,
                                       std::int64_t begin_ns, std::int64_t end_ns) const {
  const std::size_t params = tables_->params.size();
  Counts counts;
  counts.gathers.assign(params, 0);
  counts.reduced.assign(params, 0);
  counts.forwards.assign(params, 0);
  counts.backwards.assign(params, 0);
  counts.external.assign(params, false);
  counts.gathered.assign(params, 0);
  for (const ev::ParamInfo& param : tables_->params) counts.shared.push_back(param.modules.size() > 1);
  const bool grouped = framework_of(*tables_) == Framework::fsdp2;
  counts.group.assign(params, ev::kNoId);
  const HostStep host = host_step(store, rank, step, end_ns);
  const std::vector<store::Store::GateRow>& gates = host.gates;
  // Buckets are filled by the host in host time; the step's times are the device's, and less exact.
  const std::int64_t filled_from_ns = gates.empty() ? begin_ns : gates.front().at_ns;
  const std::int64_t filled_until_ns = gates.empty() ? end_ns : host.until_ns;
  for (const ev::Event& event :
       store.instants(rank, std::min(begin_ns, filled_from_ns), std::max(end_ns, filled_until_ns))) {
    const auto at_ns = static_cast<std::int64_t>(event.ticks);
    if (event.kind == ev::EventKind::bucket_add && at_ns >= filled_from_ns && at_ns < filled_until_ns) {
      const auto added = ev::as<ev::EventKind::bucket_add>(event);
      if (added.param < params) counts.reduced[added.param] += added.elems;
    }
    if (at_ns < begin_ns || at_ns >= end_ns || event.kind != ev::EventKind::param_status) continue;
    const auto change = ev::as<ev::EventKind::param_status>(event);
    constexpr auto kInFlight = static_cast<plan::ParamStatus>(1);
    if (change.param >= params || change.cause == ev::StatusCause::context ||
        change.status.status() != kInFlight)
      continue;
    counts.known = true;
    ++counts.gathers[change.param];
    if (grouped) counts.group[change.param] = change.module;
    if (change.cause == ev::StatusCause::external)
      counts.shared[change.param] = counts.external[change.param] = true;
  }
  if (special_) {
    const std::int64_t from_ns = gates.empty() ? begin_ns : std::min(begin_ns, gates.front().at_ns);
    count_gathered(store, rank, from_ns, begin_ns, end_ns, counts);
  }
  for (const store::Store::GateRow& gate : gates) {
    const bool fetches = gate.kind == ev::GateKind::pre_forward || gate.kind == ev::GateKind::pre_backward;
    if (!fetches || gate.id >= tables_->modules.size()) continue;
    counts.gates = true;
    // FSDP2 gates and gathers by group; the group's module may own none of its parameters.
    for (std::size_t param = 0; grouped && param < params; ++param) {
      if (counts.group[param] == gate.id)
        ++(gate.kind == ev::GateKind::pre_forward ? counts.forwards : counts.backwards)[param];
    }
    for (const std::uint32_t param : tables_->modules[gate.id].params) {
      if (grouped || param >= params) continue;
      ++(gate.kind == ev::GateKind::pre_forward ? counts.forwards : counts.backwards)[param];
    }
  }
  counts.known = counts.known || counts.any_reduced();
  return counts;
}

/// Counts how a parameter was gathered, from the collectives of the gather lane in the step, which the host
/// may have submitted before the step's timestamp on that lane.
void VolumeModel::count_gathered(const store::Store& store, std::uint32_t rank,
                                 std::int64_t submitted_from_ns, std::int64_t begin_ns, std::int64_t end_ns,
                                 Counts& counts) const {
  std::set<std::uint32_t> sequences;
  for_each_collective(store, rank, begin_ns, end_ns, [&](ev::StreamId stream, const store::Span& span) {
    if (stream == ev::StreamId::gather)
      sequences.insert(ev::as<ev::EventKind::collective_begin>(span).sequence);
  });
  for (const ev::Event& event : store.instants(rank, submitted_from_ns, end_ns)) {
    if (event.kind != ev::EventKind::collective_part) continue;
    const auto part = ev::as<ev::EventKind::collective_part>(event);
    if (part.param >= counts.gathered.size() || !sequences.contains(part.sequence)) continue;
    const bool twice = part.op == ev::CollectiveOp::all_reduce;
    counts.gathered[part.param] += static_cast<double>(part.elems) * (twice ? 2 : 1);
  }
}

void VolumeModel::add_gathers(const Counts& counts, VolumeParts& parts) const {
  for (std::size_t i = 0; i < gather_cost_.size(); ++i) {
    const auto elems = static_cast<double>(tables_->params[i].elems);
    const auto gathers = static_cast<double>(counts.gathers[i]);
    const bool persistent = tables_->params[i].persistent;
    const auto expected = static_cast<double>(2 * micro_steps_);
    // If the formula excludes padding and scales, they are separate from the other causes.
    if (!special_) at(parts, VolumeCause::padding) += gathers * (gather_cost_[i] - elems);
    const double off = special_ ? counts.gathered[i] - expected_gathers_[i] : (gathers - expected) * elems;
    if (persistent) {
      at(parts, VolumeCause::persistent) += off;
    } else if (gathers == expected) {
      at(parts, VolumeCause::other_way) += off;
    } else if (gathers < expected) {
      add_missing(counts, i, expected - gathers, off, parts);
    } else if (counts.shared[i]) {
      at(parts, VolumeCause::shared) += off;
    } else {
      const double uses = static_cast<double>(counts.forwards[i] + counts.backwards[i]);
      const double used = std::clamp(uses, expected, gathers);
      const double repeated = off * ((used - expected) / (gathers - expected));
      at(parts, VolumeCause::repeated) += repeated;
      at(parts, VolumeCause::unused) += off - repeated;
    }
  }
}

/// Attributes `missing` gathers of `param` (`off` elements): first to passes that did not use it, then to
/// passes that found it still gathered.
void VolumeModel::add_missing(const Counts& counts, std::size_t param, double missing, double off,
                              VolumeParts& parts) const {
  double left = missing;
  const auto take = [&](VolumeCause cause, double passes) {
    const double taken = std::clamp(passes, 0.0, left);
    at(parts, cause) += off * (taken / missing);
    left -= taken;
  };
  if (counts.gates && !counts.external[param]) {
    const auto forwards = std::min(counts.forwards[param], micro_steps_);
    take(VolumeCause::skipped, static_cast<double>(2 * (micro_steps_ - forwards)));
    take(VolumeCause::no_backward, static_cast<double>(forwards - counts.backwards[param]));
  }
  take(VolumeCause::kept, left);
}

/// Elements per gradient element, as the formula counts them.
double VolumeModel::reduction_cost(std::size_t param) const noexcept {
  if (zero_.stage == 0) return 2;
  const auto elems = static_cast<double>(tables_->params[param].elems);
  return special_ && elems > 0 ? reduction_cost_[param] / elems : 1;
}

/// Number of reductions in a step. In FSDP the script chooses the micro-steps: the number for the parameter
/// reduced most often. Otherwise it follows from the stage.
double VolumeModel::reductions(const Counts& counts) const noexcept {
  const auto expected = static_cast<double>(zero_.stage >= 2 ? micro_steps_ : 1);
  const Framework framework = framework_of(*tables_);
  if ((framework != Framework::fsdp1 && framework != Framework::fsdp2) || !counts.any_reduced())
    return expected;
  double most = 1;
  for (std::size_t i = 0; i < tables_->params.size(); ++i) {
    const auto elems = static_cast<double>(tables_->params[i].elems);
    if (elems > 0) most = std::max(most, std::round(static_cast<double>(counts.reduced[i]) / elems));
  }
  return std::min(most, expected);
}

std::optional<VolumeParts> VolumeModel::parts(const store::Store& store, std::uint32_t rank,
                                              std::uint32_t step, std::int64_t begin_ns,
                                              std::int64_t end_ns) const {
  VolumeParts parts{};
  const Counts counts = count(store, rank, step, begin_ns, end_ns);
  if (!counts.known && !plan::uses_legacy_layout(zero_)) return std::nullopt;
  const bool buckets = counts.any_reduced();
  const bool ddp = framework_of(*tables_) == Framework::ddp;
  const double expected = static_cast<double>(zero_.stage >= 2 ? micro_steps_ : 1);
  const double made = reductions(counts);
  // The first layout of stage 1 has only one mode.
  const bool all_reduces =
      plan::reduce_mode(zero_) != plan::ReduceMode::to_owners && !plan::uses_legacy_layout(zero_);
  if (zero_.stage == 3) add_gathers(counts, parts);
  at(parts, VolumeCause::padding) += flat_padding_;
  at(parts, VolumeCause::scalars) += scalars_of(store, rank, begin_ns, end_ns);
  for (std::size_t i = 0; i < tables_->params.size() && buckets; ++i) {
    if (tables_->params[i].frozen) continue;  // the formula has no gradient for it
    const auto elems = static_cast<double>(tables_->params[i].elems);
    const auto reduced = static_cast<double>(counts.reduced[i]);
    const double off = reduced - made * elems;
    at(parts, VolumeCause::accumulated) += (made - expected) * elems * reduction_cost(i);
    // Without no_sync() DDP reduces in every micro-step: that is no missing gradient, and stays unexplained.
    if (!ddp || off < 0) at(parts, VolumeCause::no_gradient) += off * reduction_cost(i);
    if (zero_.stage == 3) {
      if (special_ || gather_cost_.empty()) continue;
      if (zero_.reduce_scatter) {
        at(parts, VolumeCause::padding) += elems > 0 ? reduced / elems * (gather_cost_[i] - elems) : 0;
      } else {
        at(parts, VolumeCause::all_reduced) += reduced;
      }
    } else if (zero_.stage > 0 && all_reduces) {
      at(parts, VolumeCause::all_reduced) += reduced;
    }
  }
  return parts;
}

}  // namespace shardscope::analysis
