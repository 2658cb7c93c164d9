#include "app/analysis/attached/group_reader.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "app/analysis/communication.h"
#include "instrumentation/event_fields.h"
#include "instrumentation/gate.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::analysis::attached {
namespace {

using ev::EventKind;
using ev::GateKind;
using ev::StreamId;
using GateRow = store::Store::GateRow;

bool in_flight(const ev::Event& event) {
  if (event.kind != EventKind::param_status) return false;
  const auto change = ev::as<EventKind::param_status>(event);
  return change.status.status() == plan::ParamStatus::in_flight && change.gather != ev::kNoId &&
         change.module != ev::kNoId;
}

/// Of a group: more than any model has. Sums over a step stay within 64 bits.
constexpr std::int64_t kMostGroupElems = std::int64_t{1} << 42;

/// Reads the pieces of a step in order.
class GroupReader {
 public:
  explicit GroupReader(const store::Store& store) : store_(store) {}

  GroupDecisions read(const std::vector<ev::Event>& instants, const GateRow& gate, std::int64_t until_ns) {
    if (gate.kind == GateKind::micro_step) backward_ = false;
    if (gate.kind == GateKind::pre_backward) backward_ = true;
    GroupDecisions out;
    auto at =
        std::ranges::lower_bound(instants, static_cast<std::uint64_t>(gate.at_ns), {}, &ev::Event::ticks);
    for (; at != instants.end() && static_cast<std::int64_t>(at->ticks) < until_ns; ++at) {
      if (in_flight(*at)) {
        gathered(ev::as<EventKind::param_status>(*at), out);
      } else if (at->kind == EventKind::collective_submitted) {
        issued(ev::as<EventKind::collective_submitted>(*at));
      } else if (at->kind == EventKind::bucket_add) {
        added_ = ev::as<EventKind::bucket_add>(*at).param;
      } else if (at->kind == EventKind::bucket_flush) {
        reduced(ev::as<EventKind::bucket_flush>(*at).elems, out);
      }
    }
    if (gate.kind == GateKind::pre_forward)
      note_prefetched(gate.id, out.prefetched, &ParamGroup::prefetched_in_forward);
    if (gate.kind == GateKind::pre_backward)
      note_prefetched(gate.id, out.prefetched, &ParamGroup::prefetched_in_backward);
    return out;
  }
  GroupsOfStep result(std::vector<std::vector<GroupDecisions>> decisions) && {
    if (!missing_.empty()) return {std::move(missing_), {}, {}};
    if (groups_.empty()) return {"no group of parameters was gathered in a step", {}, {}};
    for (const ParamGroup& group : groups_) {
      if (group.elems <= 0 || group.elems > kMostGroupElems || group.trained_elems > kMostGroupElems)
        return {"a gather of a group has no valid number of elements", {}, {}};
    }
    return {{}, std::move(groups_), std::move(decisions)};
  }

 private:
  using Status = decltype(ev::as<EventKind::param_status>(ev::Event{}));

  void gathered(const Status& change, GroupDecisions& out) {
    const auto& modules = store_.tables().modules;
    const auto [known, added] = of_module_.try_emplace(change.module, groups_.size());
    if (added) {
      ParamGroup group;
      group.module = change.module;
      group.root = change.module < modules.size() && modules[change.module].parent == ev::kNoId;
      groups_.push_back(std::move(group));
      defining_[change.gather] = known->second;
    }
    ParamGroup& group = groups_[known->second];
    if (gathers_.insert(change.gather).second) {
      (change.cause == ev::StatusCause::prefetch ? out.prefetched : out.fetched).push_back(known->second);
      if (backward_) group.resharded = true;
    }
    if (defining_.contains(change.gather)) {
      of_param_[change.param] = known->second;
    } else if (!of_param_.contains(change.param) || of_param_[change.param] != known->second) {
      missing_ = "one module gathers several groups of parameters, and which is which was not recorded";
    }
  }
  void issued(const decltype(ev::as<EventKind::collective_submitted>(ev::Event{}))& collective) {
    if (collective.op != ev::CollectiveOp::all_gather) return;
    const auto group = defining_.find(collective.group);
    if (group != defining_.end()) groups_[group->second].elems = collective.elems;
  }
  void reduced(std::int64_t elems, GroupDecisions& out) {
    if (elems <= 0) return;
    const auto group = of_param_.find(added_);
    if (group == of_param_.end()) {
      missing_ = "gradients were reduced of parameters that no group of the step gathers";
      return;
    }
    groups_[group->second].trained_elems = elems;
    out.reduced.push_back(group->second);
  }
  void note_prefetched(std::uint32_t module, const std::vector<std::size_t>& prefetched,
                       std::vector<std::size_t> ParamGroup::*in_pass) {
    const auto group = of_module_.find(module);
    if (group == of_module_.end()) return;
    std::vector<std::size_t>& with = groups_[group->second].*in_pass;
    for (const std::size_t one : prefetched)
      if (std::ranges::find(with, one) == with.end()) with.push_back(one);
  }

  const store::Store& store_;
  std::vector<ParamGroup> groups_;
  std::map<std::uint32_t, std::size_t> of_module_, of_param_;
  std::set<std::uint32_t> gathers_;                ///< seen in the step
  std::map<std::uint32_t, std::size_t> defining_;  ///< first gather of each group
  std::uint32_t added_ = ev::kNoId;                ///< parameter added last to a bucket
  std::string missing_;
  bool backward_ = false;
};

}  // namespace

GroupsOfStep groups_of_step(const store::Store& store, const RankStep& step) {
  const std::vector<GateRow> gates = piece_gates(store, step);
  const std::vector<ev::Event> instants = store.instants(step.rank, step.begin_ns, step.end_ns);
  GroupReader reader(store);
  std::vector<std::vector<GroupDecisions>> decisions;
  for (std::size_t i = 0; i + 1 < gates.size(); ++i) {
    if (gates[i].kind == GateKind::micro_step) decisions.emplace_back();
    decisions.back().push_back(reader.read(instants, gates[i], gates[i + 1].at_ns));
  }
  return std::move(reader).result(std::move(decisions));
}

void sample_groups(const store::Store& store, const RankStep& step, Samples& samples) {
  struct Decision {
    std::int64_t at_ns = 0;
    double elems = 0;
  };
  std::map<std::uint32_t, Decision> gathers, buckets;
  for (const ev::Event& event : store.instants(step.rank, step.begin_ns, step.end_ns)) {
    if (in_flight(event)) {
      const auto change = ev::as<EventKind::param_status>(event);
      gathers.try_emplace(change.gather, Decision{static_cast<std::int64_t>(event.ticks), 0});
    } else if (event.kind == EventKind::bucket_flush) {
      const auto flush = ev::as<EventKind::bucket_flush>(event);
      buckets[flush.bucket] = {static_cast<std::int64_t>(event.ticks), static_cast<double>(flush.elems)};
    }
  }
  const std::vector<GateRow> gates = piece_gates(store, step);
  for_each_collective(
      store, step.rank, step.begin_ns, step.end_ns, [&](StreamId stream, const store::Span& span) {
        const auto fields = ev::as<EventKind::collective_begin>(span);
        const auto& decided = stream == StreamId::gather ? gathers : buckets;
        const auto found = decided.find(fields.group);
        if (found == decided.end()) return;
        const auto elems =
            stream == StreamId::gather ? static_cast<double>(fields.elems) : found->second.elems;
        if (elems <= 0) return;
        double ns = static_cast<double>(std::max<std::int64_t>(span.begin_ns - found->second.at_ns, 0));
        (stream == StreamId::gather ? samples.gathered_bytes : samples.reduced_bytes) +=
            static_cast<double>(fields.bytes);
        (stream == StreamId::gather ? samples.gathered_elems : samples.reduced_elems) += elems;
        if (stream == StreamId::gather) {
          samples.issues.push_back({elems, 1, ns});
          return;
        }
        // A reduction holds the host, and the gate after the hook follows.
        const auto next = std::ranges::lower_bound(gates, span.end_ns, {}, &GateRow::at_ns);
        if (next != gates.end()) ns += static_cast<double>(next->at_ns - span.end_ns);
        samples.flushes.push_back({elems, 1, ns});
      });
}

}  // namespace shardscope::analysis::attached
