#include "app/analysis/attached/rank_reader.h"

#include <algorithm>
#include <set>
#include <utility>

#include "app/analysis/attached/group_reader.h"
#include "app/analysis/communication.h"
#include "app/analysis/framework.h"
#include "app/analysis/recorded_boundaries.h"
#include "app/analysis/spans.h"
#include "app/analysis/statistics.h"
#include "instrumentation/bus_factor.h"
#include "instrumentation/event_fields.h"
#include "instrumentation/gate.h"

namespace shardscope::analysis::attached {
namespace {

using ev::CollectiveOp;
using ev::EventKind;
using ev::GateKind;
using ev::StreamId;
using GateRow = store::Store::GateRow;

struct HostInterval {
  std::int64_t begin_ns = 0, end_ns = 0;
};

/// Replaces the intervals by their union: disjoint and in order.
void unite(std::vector<HostInterval>& intervals) {
  std::ranges::sort(intervals, {}, &HostInterval::begin_ns);
  std::vector<HostInterval> out;
  for (const HostInterval& one : intervals) {
    if (out.empty() || one.begin_ns > out.back().end_ns)
      out.push_back(one);
    else
      out.back().end_ns = std::max(out.back().end_ns, one.end_ns);
  }
  intervals = std::move(out);
}

/// The part of [begin, end) that the united intervals cover.
double covered_ns(const std::vector<HostInterval>& united, std::int64_t begin_ns, std::int64_t end_ns) {
  std::int64_t sum = 0;
  for (auto at = std::ranges::lower_bound(united, begin_ns, {}, &HostInterval::end_ns);
       at != united.end() && at->begin_ns < end_ns; ++at)
    sum += std::max<std::int64_t>(std::min(at->end_ns, end_ns) - std::max(at->begin_ns, begin_ns), 0);
  return static_cast<double>(sum);
}

/// The spans and instants of one step on one rank, in order of time for each kind.
class StepEvents {
 public:
  StepEvents(const store::Store& store, const RankStep& step, Samples& samples)
      : store_(store),
        step_(step),
        samples_(samples),
        instants_(store.instants(step.rank, step.begin_ns, step.end_ns)) {
    read_collectives();
    read_waits();
    // A wait on a CPU begins with the hook that needs the group: if gathers have ended by then, the host was
    // held while they were issued.
    if (framework_of(store.tables()) == Framework::fsdp2 && 2 * ended_ > demanded_) {
      for (const auto& [gather, interval] : gathers_) blocked_.push_back(interval);
    }
    wait_for_buckets();
    samples.demanded += demanded_;
    samples.demanded_ended += ended_;
    for (std::vector<HostInterval>* intervals : {&blocked_, &others_, &waits_}) unite(*intervals);
  }

  [[nodiscard]] const std::vector<ev::Event>& instants() const noexcept { return instants_; }
  /// Time in which the host waited for communication.
  [[nodiscard]] double blocked_ns(std::int64_t begin_ns, std::int64_t end_ns) const {
    return covered_ns(blocked_, begin_ns, end_ns);
  }
  /// The part of blocked_ns() due to collectives that are neither a gather nor a bucket.
  [[nodiscard]] double others_ns(std::int64_t begin_ns, std::int64_t end_ns) const {
    return covered_ns(others_, begin_ns, end_ns);
  }
  [[nodiscard]] double waits_ns(std::int64_t begin_ns, std::int64_t end_ns) const {
    return covered_ns(waits_, begin_ns, end_ns);
  }
  [[nodiscard]] const store::Span* reduction_of(std::uint32_t bucket) const {
    const auto found = reductions_.find(bucket);
    return found == reductions_.end() ? nullptr : &found->second;
  }
  /// The end of the optimizer's last update; the end of the step if none was recorded.
  [[nodiscard]] std::int64_t updated_ns(std::int64_t from_ns) const {
    std::int64_t last = 0;
    for_each_span(store_, {step_.rank, StreamId::compute}, from_ns, step_.end_ns,
                  [&](const store::Span& span) {
                    if (span.kind == EventKind::optimizer_begin && span.end_ns != store::kOpen)
                      last = std::max(last, span.end_ns);
                  });
    return last > from_ns ? std::min(last, step_.end_ns) : step_.end_ns;
  }
  /// Ends of the spans of each module, in order.
  [[nodiscard]] std::map<std::uint32_t, std::vector<std::int64_t>> module_ends() const {
    std::map<std::uint32_t, std::vector<std::int64_t>> ends;
    for_each_span(store_, {step_.rank, StreamId::compute}, step_.begin_ns, step_.end_ns,
                  [&](const store::Span& span) {
                    if (span.kind == EventKind::module_begin && span.end_ns != store::kOpen)
                      ends[ev::as<EventKind::module_begin>(span).module].push_back(span.end_ns);
                  });
    for (auto& [module, of_module] : ends) std::ranges::sort(of_module);
    return ends;
  }

 private:
  void read_collectives() {
    // Gathers issued by a fetch or prefetch: the others are of persistent parameters, after the step.
    std::map<std::uint32_t, ev::StatusCause> fetched;
    std::map<std::uint32_t, std::int64_t> flushed;  // elements
    for (const ev::Event& event : instants_) {
      if (event.kind == EventKind::bucket_flush) {
        const auto flush = ev::as<EventKind::bucket_flush>(event);
        flushed[flush.bucket] = flush.elems;
      }
      if (event.kind != EventKind::param_status) continue;
      const auto change = ev::as<EventKind::param_status>(event);
      if (change.module != ev::kNoId && change.gather != ev::kNoId)
        fetched.try_emplace(change.gather, change.cause);
    }
    for_each_collective(
        store_, step_.rank, step_.begin_ns, step_.end_ns, [&](StreamId stream, const store::Span& span) {
          const auto fields = ev::as<EventKind::collective_begin>(span);
          const bool gather = fields.op == CollectiveOp::all_gather && fetched.contains(fields.group);
          const bool bucket = !gather && stream != StreamId::gather && flushed.contains(fields.group);
          const std::uint32_t ranks = ranks_of(store_, step_.rank, span);
          const HostInterval interval{span.begin_ns, span.end_ns};
          if (gather) {
            gathers_[fields.group] = interval;
            if (fetched.at(fields.group) == ev::StatusCause::fetch) on_demand_.insert(fields.group);
          } else if (bucket && beside_) {
            buckets_.push_back(interval);
          } else {
            blocked_.push_back(interval);
            if (!bucket) others_.push_back(interval);
          }
          if (bucket && beside_) {
            // Hooks that compress gradients transfer fewer bytes.
            samples_.reduced_bytes += static_cast<double>(fields.bytes);
            samples_.reduced_elems += static_cast<double>(flushed.at(fields.group));
          }
          if (bucket) reductions_.emplace(fields.group, span);
          if (!gather && !bucket) return;
          const Transfer seen{static_cast<double>(fields.bytes) * ev::bus_factor(fields.op, ranks),
                              hops_of(ranks), static_cast<double>(span.end_ns - moves_from(span))};
          if (seen.bytes <= 0) return;
          const auto [at, inserted] =
              samples_.collectives.emplace(instance_of(store_, step_.rank, stream, span), Seen{seen, gather});
          if (!inserted) at->second.transfer.ns = std::min(at->second.transfer.ns, seen.ns);
        });
  }

  /// DistributedDataParallel's buckets are reduced beside the backward, and the host waits for them at its
  /// end: from the launch of a micro-step's last bucket on.
  void wait_for_buckets() {
    const std::vector<GateRow> gates = beside_ ? piece_gates(store_, step_) : std::vector<GateRow>{};
    for (std::size_t i = 0; i < gates.size(); ++i) {
      if (gates[i].kind != GateKind::micro_step) continue;
      const auto next = std::find_if(
          gates.begin() + static_cast<std::ptrdiff_t>(i) + 1, gates.end(), [](const GateRow& gate) {
            return gate.kind == GateKind::micro_step || gate.kind == GateKind::optimizer;
          });
      HostInterval wait;
      for (const HostInterval& bucket : buckets_) {
        if (bucket.begin_ns < gates[i].at_ns || bucket.begin_ns >= next->at_ns) continue;
        wait.begin_ns = std::max(wait.begin_ns, bucket.begin_ns);
        wait.end_ns = std::max(wait.end_ns, bucket.end_ns);
      }
      if (wait.end_ns > wait.begin_ns) blocked_.push_back(wait);
    }
  }

  /// A wait lasts until the gather has ended; the rest of the span unpacks the gathered parameters.
  void read_waits() {
    const double bytes = store_.tables().param_bytes;
    for_each_span(
        store_, {step_.rank, StreamId::compute}, step_.begin_ns, step_.end_ns, [&](const store::Span& span) {
          if (span.kind != EventKind::fetch_wait_begin || span.end_ns == store::kOpen) return;
          const auto wait = ev::as<EventKind::fetch_wait_begin>(span);
          waits_.push_back({span.begin_ns, span.end_ns});
          const auto gather = gathers_.find(wait.gather);
          const std::int64_t until = gather == gathers_.end()
                                         ? span.begin_ns
                                         : std::clamp(gather->second.end_ns, span.begin_ns, span.end_ns);
          if (on_demand_.contains(wait.gather)) {
            ++demanded_;
            if (until == span.begin_ns) ++ended_;
          }
          if (until > span.begin_ns) blocked_.push_back({span.begin_ns, until});
          samples_.unpacked.push_back(
              {static_cast<double>(wait.bytes) / bytes, 1, static_cast<double>(span.end_ns - until)});
        });
  }

  const store::Store& store_;
  const RankStep& step_;
  Samples& samples_;
  std::vector<ev::Event> instants_;
  bool beside_ = framework_of(store_.tables()) == Framework::ddp;  ///< reductions run beside the backward
  std::vector<HostInterval> blocked_, others_, waits_, buckets_;
  std::map<std::uint32_t, HostInterval> gathers_;  ///< of fetches and prefetches
  std::set<std::uint32_t> on_demand_;              ///< those that the boundary's module needs
  std::uint64_t demanded_ = 0, ended_ = 0;         ///< waits for these, and those after the gather's end
  std::map<std::uint32_t, store::Span> reductions_;
};

/// The host time of a boundary's fetch without waiting: from its gate to the decision that ends it.
void sample_fetch(const StepEvents& events, const GateRow& gate, std::int64_t until_ns, Samples& samples) {
  std::int64_t decided_ns = 0;
  double gathers = 0, elems = 0, issued = 0, issued_elems = 0;
  const auto first = std::ranges::lower_bound(events.instants(), static_cast<std::uint64_t>(gate.at_ns), {},
                                              &ev::Event::ticks);
  for (auto at = first; at != events.instants().end() && static_cast<std::int64_t>(at->ticks) < until_ns;
       ++at) {
    if (at->kind == EventKind::collective_submitted) {
      const auto submitted = ev::as<EventKind::collective_submitted>(*at);
      if (submitted.op == CollectiveOp::all_gather)
        gathers += 1, elems += static_cast<double>(submitted.elems);
    }
    if (at->kind != EventKind::fetch_decision) continue;
    decided_ns = static_cast<std::int64_t>(at->ticks);
    issued = gathers, issued_elems = elems;
  }
  if (decided_ns == 0) return;
  const double ns = static_cast<double>(decided_ns - gate.at_ns) - events.waits_ns(gate.at_ns, decided_ns);
  if (issued > 0) {
    samples.issues.push_back({issued_elems, issued, ns});
  } else {
    samples.idle_fetches.push_back(ns);
  }
}

/// The host time of a bucket before and after its reduction, up to the opening of the next bucket: only for
/// buckets that are followed by one.
void sample_flushes(const StepEvents& events, Samples& samples) {
  const auto& instants = events.instants();
  const ev::Event* opened = nullptr;  // the next one
  for (auto at = instants.rbegin(); at != instants.rend(); ++at) {
    const ev::Event& event = *at;
    if (event.kind == EventKind::bucket_open) opened = &event;
    if (event.kind != EventKind::bucket_flush) continue;
    const auto flush = ev::as<EventKind::bucket_flush>(event);
    const store::Span* reduction = events.reduction_of(flush.bucket);
    if (reduction == nullptr || opened == nullptr) continue;
    if (static_cast<std::int64_t>(opened->ticks) < reduction->end_ns) continue;
    const auto began = static_cast<std::int64_t>(event.ticks);
    samples.flushes.push_back(
        {static_cast<double>(flush.elems), 1,
         static_cast<double>(reduction->begin_ns - began) +
             static_cast<double>(static_cast<std::int64_t>(opened->ticks) - reduction->end_ns)});
  }
}

/// Whether a gate is a boundary of a piece; gates of buckets are inside pieces.
bool begins_piece(GateKind kind) { return kind == GateKind::micro_step || visit_kind(kind).has_value(); }

/// Adds the gradients that became ready between two gates.
void add_gradients(const StepEvents& events, const GateRow& gate, std::int64_t until_ns, std::size_t params,
                   Piece& piece) {
  auto at = std::ranges::lower_bound(events.instants(), static_cast<std::uint64_t>(gate.at_ns), {},
                                     &ev::Event::ticks);
  for (; at != events.instants().end() && static_cast<std::int64_t>(at->ticks) < until_ns; ++at) {
    if (at->kind != EventKind::bucket_add) continue;
    const std::uint32_t param = ev::as<EventKind::bucket_add>(*at).param;
    if (param < params) piece.gradients.push_back(plan::ParamId{param});
  }
}

UpdateTime update_time(const StepEvents& events, std::int64_t begin_ns, std::int64_t end_ns) {
  const std::int64_t updated_ns = events.updated_ns(begin_ns);
  UpdateTime time;
  time.collectives_ns = events.blocked_ns(begin_ns, updated_ns);
  time.own_ns = static_cast<double>(updated_ns - begin_ns) - time.collectives_ns;
  time.after_collectives_ns = events.blocked_ns(updated_ns, end_ns);
  time.after_ns = static_cast<double>(end_ns - updated_ns) - time.after_collectives_ns;
  return time;
}

}  // namespace

void Samples::add_step(const Samples& step) {
  for (const auto& [instance, seen] : step.collectives)
    (seen.gather ? gathers : reductions).push_back(seen.transfer);
  const auto append = [](auto& all, const auto& more) { all.insert(all.end(), more.begin(), more.end()); };
  append(issues, step.issues);
  append(unpacked, step.unpacked);
  append(flushes, step.flushes);
  append(idle_fetches, step.idle_fetches);
  append(releases, step.releases);
  demanded += step.demanded;
  demanded_ended += step.demanded_ended;
  gathered_bytes += step.gathered_bytes, gathered_elems += step.gathered_elems;
  reduced_bytes += step.reduced_bytes, reduced_elems += step.reduced_elems;
}

std::vector<GateRow> piece_gates(const store::Store& store, const RankStep& step) {
  std::vector<GateRow> bounds;
  for (const GateRow& gate : store.gates(step.rank, step.begin_ns, step.end_ns)) {
    if (begins_piece(gate.kind) || gate.kind == GateKind::optimizer) bounds.push_back(gate);
  }
  if (bounds.size() < 3 || bounds.front().kind != GateKind::micro_step ||
      bounds.back().kind != GateKind::optimizer)
    return {};
  return bounds;
}

std::optional<StepOfRank> read_step(const store::Store& store, const RankStep& step, Samples& samples) {
  const std::vector<GateRow> bounds = piece_gates(store, step);
  if (bounds.empty()) return std::nullopt;
  const StepEvents events(store, step, samples);
  const auto module_ends = events.module_ends();
  StepOfRank out;
  out.first_gate_ns = bounds.front().at_ns;
  out.time.before_ns = static_cast<double>(bounds.front().at_ns - step.begin_ns);
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const GateRow& gate = bounds[i];
    const std::int64_t until_ns = bounds[i + 1].at_ns;
    const auto kind = visit_kind(gate.kind);
    if (!kind) {
      if (gate.kind == GateKind::optimizer) return std::nullopt;  // two updates in one step
      out.micro_steps.emplace_back();
      out.time.micro_steps.emplace_back();
    }
    Piece piece{gate.kind, kind ? gate.id : ev::kNoId, {}, {}};
    add_gradients(events, gate, until_ns, store.tables().params.size(), piece);
    out.micro_steps.back().push_back(std::move(piece));
    MicroStepTime& micro = out.time.micro_steps.back();
    const double blocked = events.blocked_ns(gate.at_ns, until_ns);
    micro.own_ns.push_back(std::max(0.0, static_cast<double>(until_ns - gate.at_ns) - blocked));
    micro.other_ns.push_back(events.others_ns(gate.at_ns, until_ns));
    if (kind == plan::VisitKind::pre_forward || kind == plan::VisitKind::pre_backward)
      sample_fetch(events, gate, until_ns, samples);
    if (kind == plan::VisitKind::post_forward || kind == plan::VisitKind::post_backward) {
      const auto ends = module_ends.find(gate.id);
      if (ends == module_ends.end()) continue;
      const auto after = std::ranges::upper_bound(ends->second, gate.at_ns);
      if (after != ends->second.begin())
        samples.releases.push_back(static_cast<double>(gate.at_ns - *std::prev(after)));
    }
  }
  out.time.update = update_time(events, bounds.back().at_ns, step.end_ns);
  const Framework framework = framework_of(store.tables());
  if (framework == Framework::fsdp2)
    sample_groups(store, step, samples);
  else if (framework != Framework::ddp)  // its host's part of a bucket is not known
    sample_flushes(events, samples);
  for (const ev::Event& event : events.instants()) {
    const auto at_ns = static_cast<std::int64_t>(event.ticks);
    if (event.kind == EventKind::bucket_flush && ev::as<EventKind::bucket_flush>(event).elems > 0)
      ++out.flushes;
    if (event.kind != EventKind::collective_submitted || at_ns >= bounds.back().at_ns) continue;
    const auto submitted = ev::as<EventKind::collective_submitted>(event);
    if (submitted.op != CollectiveOp::all_gather) continue;
    ++out.gathers;
    out.gathered_elems += submitted.elems;
  }
  return out;
}

}  // namespace shardscope::analysis::attached
