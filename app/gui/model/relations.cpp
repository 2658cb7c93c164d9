#include "app/gui/model/relations.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "app/gui/model/run_index.h"
#include "app/gui/model/step_of.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {
namespace {

using ev::EventKind;

bool reduces_gradients(ev::CollectiveOp op) {
  return op == ev::CollectiveOp::reduce_scatter || op == ev::CollectiveOp::all_reduce ||
         op == ev::CollectiveOp::reduce;
}

/// Time range of a step, in which its ids are searched.
struct StepWindow {
  std::int64_t begin_ns = 0, end_ns = 0;
};

class RelationFinder {
 public:
  RelationFinder(const store::Store& store, const RunIndex& index, std::uint32_t rank)
      : store_(store), index_(index), rank_(rank) {}

  void about(store::LaneId lane, const store::Span& span);
  Relations out;

 private:
  [[nodiscard]] store::LaneId compute() const { return {rank_, ev::StreamId::compute}; }
  void add(Relation relation);
  /// `about`: the span that contains the id.
  void gather(std::uint32_t id, const store::Span& about);
  /// Only a part of a long run is indexed: relations outside of it are unknown.
  void needs_index(std::int64_t begin_ns, std::int64_t end_ns) {
    if (!index_.covers(begin_ns, until(end_ns))) out.all = false;
  }
  void gathers_of_module(const store::Span& span);
  void look_into(std::int64_t at_ns);
  void buckets_of_module(const store::Span& span);
  void bucket(std::uint32_t id);
  void reductions_of(const store::Span& optimizer, store::LaneId lane);
  [[nodiscard]] std::optional<StepWindow> step_at(std::int64_t at_ns) const;
  /// Limits the end of an open span to the end of the data.
  [[nodiscard]] std::int64_t until(std::int64_t end_ns) const { return std::min(end_ns, store_.end_ns()); }
  template <typename Take>
  void spans(store::LaneId lane, const StepWindow& window, const Take& take);
  [[nodiscard]] std::optional<store::Span> run_of(std::uint32_t module, std::int64_t from_ns);

  const store::Store& store_;
  const RunIndex& index_;
  std::uint32_t rank_;
  // Contents of one step, collected in a single pass over its lanes for all its buckets.
  struct Bucket {
    std::vector<std::uint32_t> params;
    std::int64_t flushed_ns = 0;
    std::vector<RelationEnd> reductions, waits;
  };
  std::map<std::uint32_t, Bucket> buckets_;
  std::map<std::uint32_t, std::vector<RelationEnd>> backwards_;  ///< by module, by begin
  std::vector<RelationEnd> optimizers_;
};

void RelationFinder::add(Relation relation) {
  if (out.list.size() < kMostRelations)
    out.list.push_back(std::move(relation));
  else
    out.cut = true;
}

template <typename Take>
void RelationFinder::spans(store::LaneId lane, const StepWindow& window, const Take& take) {
  if (!store_.ready(lane, window.begin_ns, window.end_ns)) {
    (store_.becomes_ready(lane, window.begin_ns, window.end_ns) ? out.read : out.all) = false;
    return;
  }
  for (std::uint8_t depth = 0; depth < store_.depth_count(lane); ++depth)
    store_.for_each_span(lane, depth, window.begin_ns, window.end_ns, take);
}

std::optional<StepWindow> RelationFinder::step_at(std::int64_t at_ns) const {
  const auto steps = store_.steps();
  const auto at = step_of(steps, at_ns);
  if (!at) return std::nullopt;
  const std::int64_t end = *at + 1 < steps.size() ? steps[*at + 1].begin_ns : store_.end_ns() + 1;
  return StepWindow{steps[*at].begin_ns, end};
}

/// The module's first span that ends after `from_ns`: the compute stream runs modules one after another.
std::optional<store::Span> RelationFinder::run_of(std::uint32_t module, std::int64_t from_ns) {
  std::optional<store::Span> best;
  const auto step = step_at(from_ns);
  if (!step) return best;
  spans(compute(), {from_ns, step->end_ns}, [&](const store::Span& span) {
    if (span.kind != EventKind::module_begin || span.end_ns <= from_ns) return;
    if (ev::as<EventKind::module_begin>(span).module != module) return;
    if (!best || span.begin_ns < best->begin_ns) best = span;
  });
  return best;
}

/// Gather -> the first wait for it -> the module that uses it.
void RelationFinder::gather(std::uint32_t id, const store::Span& about) {
  const Fetch* const fetch = index_.fetch_by_id(rank_, id);
  if (id == ev::kNoId) return;
  if (fetch == nullptr) return needs_index(about.begin_ns, about.end_ns);
  const store::LaneId lane{rank_, ev::StreamId::gather};
  const std::int64_t end = fetch->ended_ns == store::kOpen ? store_.end_ns() + 1 : fetch->ended_ns;
  std::optional<store::Span> operation;
  spans(lane, {fetch->started_ns - 1, end + 1}, [&](const store::Span& span) {
    if (span.kind != EventKind::collective_begin || operation) return;
    if (ev::as<EventKind::collective_begin>(span).group == id) operation = span;
  });
  if (!operation) return;
  const RelationEnd from{lane, *operation, until(operation->end_ns)};
  const auto waits = index_.waits(rank_);
  // Computation may have begun to wait before the operation began.
  const auto step = step_at(fetch->started_ns);
  const std::int64_t since = step ? step->begin_ns : fetch->started_ns;
  needs_index(since, std::max(fetch->used_ns, fetch->started_ns));
  for (auto wait = std::ranges::lower_bound(waits, since, {}, &store::Span::begin_ns);
       wait != waits.end() && wait->begin_ns <= std::max(fetch->used_ns, fetch->started_ns); ++wait) {
    if (wait->kind != EventKind::fetch_wait_begin) continue;
    if (ev::as<EventKind::fetch_wait_begin>(*wait).gather != id) continue;
    add({RelationKind::gather_to_wait, from, {compute(), *wait, until(wait->end_ns)}, id});
    break;
  }
  if (fetch->module == ev::kNoId || fetch->used_ns == store::kOpen) return;
  if (const auto user = run_of(fetch->module, fetch->used_ns))
    add({RelationKind::gather_to_module,
         from,
         {compute(), *user,
          std::clamp(fetch->used_ns, user->begin_ns, std::max(user->begin_ns, until(user->end_ns)))},
         id});
}

void RelationFinder::gathers_of_module(const store::Span& span) {
  const auto step = step_at(span.begin_ns);
  if (!step) return;
  const std::uint32_t module = ev::as<EventKind::module_begin>(span).module;
  needs_index(step->begin_ns, span.end_ns);
  // The earliest prefetch is in the previous step.
  const auto before = step_at(step->begin_ns - 1);
  const auto fetches = index_.fetches(rank_);
  for (auto at = std::ranges::lower_bound(fetches, before ? before->begin_ns : store::Store::kBegin, {},
                                          &Fetch::started_ns);
       at != fetches.end() && at->started_ns < span.end_ns; ++at) {
    const Fetch& fetch = *at;
    if (fetch.module != module || fetch.used_ns < step->begin_ns || fetch.used_ns > span.end_ns) continue;
    RelationFinder one(store_, index_, rank_);
    one.gather(fetch.gather, span);
    out.read &= one.out.read;
    out.all &= one.out.all;
    const bool uses = std::ranges::any_of(one.out.list, [&](const Relation& relation) {
      return relation.kind == RelationKind::gather_to_module && relation.to.span.begin_ns == span.begin_ns &&
             relation.to.span.depth == span.depth;
    });
    if (!uses) continue;
    for (Relation& relation : one.out.list) add(std::move(relation));
  }
}

void RelationFinder::look_into(std::int64_t at_ns) {
  const auto step = step_at(at_ns);
  if (!step) return;
  if (!store_.instants_ready(rank_, step->begin_ns, step->end_ns)) {
    (store_.instants_become_ready(rank_, step->begin_ns, step->end_ns) ? out.read : out.all) = false;
    return;
  }
  store_.for_each_instant(rank_, step->begin_ns, step->end_ns, [&](const ev::Event& event) {
    if (event.kind == EventKind::bucket_add) {
      const auto fields = ev::as<EventKind::bucket_add>(event);
      buckets_[fields.bucket].params.push_back(fields.param);
    } else if (event.kind == EventKind::bucket_flush) {
      buckets_[ev::as<EventKind::bucket_flush>(event).bucket].flushed_ns =
          static_cast<std::int64_t>(event.ticks);
    }
  });
  const store::LaneId reduce{rank_, ev::StreamId::reduce}, worker{rank_, ev::StreamId::worker};
  const auto bucket_of = [&](std::uint32_t id) -> Bucket* {
    const auto found = buckets_.find(id);
    return found == buckets_.end() ? nullptr : &found->second;
  };
  spans(reduce, *step, [&](const store::Span& span) {
    if (span.kind != EventKind::collective_begin || span.begin_ns < step->begin_ns) return;
    const auto fields = ev::as<EventKind::collective_begin>(span);
    if (!reduces_gradients(fields.op)) return;
    if (Bucket* const of = bucket_of(fields.group))
      of->reductions.push_back({reduce, span, until(span.end_ns)});
  });
  const auto steps = store_.steps();
  const std::uint32_t number = steps[*step_of(steps, at_ns)].step;
  const auto of_compute = [&](store::LaneId on) {
    return [&, on](const store::Span& span) {
      if (span.kind == EventKind::module_begin) {
        const auto fields = ev::as<EventKind::module_begin>(span);
        if (fields.pass == ev::Pass::backward) backwards_[fields.module].push_back({on, span, 0});
      } else if (span.kind == EventKind::reduce_wait_begin) {
        if (Bucket* const of = bucket_of(ev::as<EventKind::reduce_wait_begin>(span).bucket))
          of->waits.push_back({on, span, until(span.end_ns)});
      } else if (span.kind == EventKind::optimizer_begin) {
        if (ev::as<EventKind::optimizer_begin>(span).step == number)
          optimizers_.push_back({on, span, span.begin_ns});
      }
    };
  };
  spans(compute(), *step, of_compute(compute()));
  if (store_.depth_count(worker) > 0) spans(worker, *step, of_compute(worker));
  const auto begin = [](const RelationEnd& end) { return end.span.begin_ns; };
  for (auto& [module, runs] : backwards_) std::ranges::stable_sort(runs, {}, begin);
  for (auto& [id, bucket] : buckets_) std::ranges::stable_sort(bucket.reductions, {}, begin);
}

/// Modules -> the bucket's reduction -> the wait for it, and the optimizer of the step.
void RelationFinder::bucket(std::uint32_t id) {
  const auto found = buckets_.find(id);
  if (found == buckets_.end() || found->second.flushed_ns == 0 || found->second.reductions.empty()) return;
  const Bucket& of = found->second;
  std::set<std::uint32_t> wanted;
  for (const std::uint32_t param : of.params) {
    if (!store_.has_tables() || param >= store_.tables().params.size()) continue;
    const auto& users = store_.tables().params[param].modules;
    wanted.insert(users.begin(), users.end());
  }
  for (const std::uint32_t module : wanted) {
    const auto runs = backwards_.find(module);
    if (runs == backwards_.end()) continue;
    // The last backward of the module before the flush has filled the bucket.
    const auto after = std::ranges::upper_bound(runs->second, of.flushed_ns, {},
                                                [](const RelationEnd& end) { return end.span.begin_ns; });
    if (after == runs->second.begin()) continue;
    RelationEnd from = *std::prev(after), to = of.reductions.front();
    from.at_ns = std::min(from.span.end_ns, of.flushed_ns);
    to.at_ns = to.span.begin_ns;
    add({RelationKind::module_to_reduce, from, to, id});
  }
  for (const RelationEnd& wait : of.waits)
    add({RelationKind::reduce_to_wait, of.reductions.back(), wait, id});
  // Sub-groups of a step run one after another: the first one waits for the gradients.
  if (!optimizers_.empty())
    add({RelationKind::reduce_to_optimizer, of.reductions.back(),
         *std::ranges::min_element(optimizers_, {}, &RelationEnd::at_ns), id});
}

void RelationFinder::buckets_of_module(const store::Span& span) {
  if (!store_.has_tables()) return;
  const std::uint32_t module = ev::as<EventKind::module_begin>(span).module;
  look_into(span.begin_ns);
  const auto& params = store_.tables().params;
  for (const auto& [id, one] : buckets_) {
    const bool holds = std::ranges::any_of(one.params, [&](std::uint32_t param) {
      return param < params.size() &&
             std::ranges::find(params[param].modules, module) != params[param].modules.end();
    });
    if (!holds) continue;
    Relations before = std::exchange(out, {});
    bucket(id);
    const Relations found_here = std::exchange(out, std::move(before));
    const auto is_it = [&](const Relation& relation) {
      return relation.from.span.begin_ns == span.begin_ns && relation.from.span.depth == span.depth;
    };
    const bool from_it = std::ranges::any_of(found_here.list, [&](const Relation& relation) {
      return relation.kind == RelationKind::module_to_reduce && is_it(relation);
    });
    if (!from_it) continue;
    for (const Relation& relation : found_here.list) {
      if (relation.kind != RelationKind::module_to_reduce || is_it(relation)) add(relation);
    }
  }
}

void RelationFinder::reductions_of(const store::Span& optimizer, store::LaneId lane) {
  look_into(optimizer.begin_ns);
  if (optimizers_.empty()) return;
  const RelationEnd& first = *std::ranges::min_element(optimizers_, {}, &RelationEnd::at_ns);
  if (first.lane != lane || first.span.begin_ns != optimizer.begin_ns) return;
  for (const auto& [id, one] : buckets_) {
    if (one.flushed_ns == 0 || one.reductions.empty()) continue;
    add({RelationKind::reduce_to_optimizer, one.reductions.back(), first, id});
  }
}

void RelationFinder::about(store::LaneId lane, const store::Span& span) {
  switch (span.kind) {
    case EventKind::collective_begin: {
      const auto fields = ev::as<EventKind::collective_begin>(span);
      if (fields.group == ev::kNoId) return;
      if (lane.stream == ev::StreamId::gather) {
        gather(fields.group, span);
      } else if (lane.stream == ev::StreamId::reduce && reduces_gradients(fields.op)) {
        look_into(span.begin_ns);
        bucket(fields.group);
      }
      // Drop relations whose id does not refer to this operation.
      std::erase_if(out.list, [&](const Relation& relation) {
        const auto is_it = [&](const RelationEnd& end) {
          return end.lane == lane && end.span.begin_ns == span.begin_ns;
        };
        return !is_it(relation.from) && !is_it(relation.to);
      });
      return;
    }
    case EventKind::fetch_wait_begin:
      gather(ev::as<EventKind::fetch_wait_begin>(span).gather, span);
      return;
    case EventKind::reduce_wait_begin:
      look_into(span.begin_ns);
      bucket(ev::as<EventKind::reduce_wait_begin>(span).bucket);
      return;
    case EventKind::module_begin:
      gathers_of_module(span);
      if (ev::as<EventKind::module_begin>(span).pass == ev::Pass::backward) buckets_of_module(span);
      return;
    case EventKind::optimizer_begin:
      reductions_of(span, lane);
      return;
    default:
      return;
  }
}

}  // namespace

const char* word(RelationKind kind) noexcept {
  switch (kind) {
    case RelationKind::gather_to_wait:
      return "waited for by";
    case RelationKind::gather_to_module:
      return "used by";
    case RelationKind::module_to_reduce:
      return "gradients reduced by";
    case RelationKind::reduce_to_wait:
      return "waited for by";
    case RelationKind::reduce_to_optimizer:
      return "stepped by";
  }
  return "";
}

bool is_gather(RelationKind kind) noexcept {
  return kind == RelationKind::gather_to_wait || kind == RelationKind::gather_to_module;
}

Relations relations_of(const store::Store& store, const RunIndex& index, store::LaneId lane,
                       const store::Span& span) {
  RelationFinder finder(store, index, lane.rank);
  finder.about(lane, span);
  return std::move(finder.out);
}

const Relations& RelationCache::of(const store::Store& store, const RunIndex& index, store::LaneId lane,
                                   const store::Span& span) {
  const SpanKey key(store, lane, span);
  const std::optional<IndexWindow> indexed = index.extent();
  if (key_ != key || indexed_ != indexed) {
    relations_ = relations_of(store, index, lane, span);
    key_ = relations_.read ? std::optional(key) : std::nullopt;
    indexed_ = indexed;
  }
  return relations_;
}

}  // namespace shardscope::gui
