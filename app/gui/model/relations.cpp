#include "app/gui/model/relations.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>

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

/// The step's own part of the run: what its ids are looked for in.
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
  void gather(std::uint32_t id);
  void gathers_of_module(const store::Span& span);
  void look_into(const StepWindow& window);
  void buckets_of_module(const store::Span& span);
  void bucket(std::uint32_t id);
  void reductions_of(const store::Span& optimizer, store::LaneId lane);
  [[nodiscard]] std::optional<StepWindow> step_at(std::int64_t at_ns) const;
  [[nodiscard]] std::vector<std::uint32_t> params_of(std::uint32_t sequence) const;
  template <typename Take>
  void spans(store::LaneId lane, const StepWindow& window, const Take& take);
  [[nodiscard]] std::optional<store::Span> run_of(std::uint32_t module, std::int64_t from_ns);

  const store::Store& store_;
  const RunIndex& index_;
  std::uint32_t rank_;
  // Of the step that is looked into.
  struct Bucket {
    std::vector<std::uint32_t> params;
    std::int64_t flushed_ns = 0;
  };
  std::map<std::uint32_t, Bucket> buckets_;
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
    out.read = false;
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

/// The module's first run that is not over at a time: the compute stream runs them one after another.
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

/// Gather -> the first wait for it -> the module that it is for.
void RelationFinder::gather(std::uint32_t id) {
  const Fetch* const fetch = index_.fetch_by_id(rank_, id);
  if (id == ev::kNoId || fetch == nullptr) return;
  const store::LaneId lane{rank_, ev::StreamId::gather};
  const std::int64_t end = fetch->ended_ns == store::kOpen ? store_.end_ns() + 1 : fetch->ended_ns;
  std::optional<store::Span> operation;
  spans(lane, {fetch->started_ns - 1, end + 1}, [&](const store::Span& span) {
    if (span.kind != EventKind::collective_begin || operation) return;
    if (ev::as<EventKind::collective_begin>(span).group == id) operation = span;
  });
  if (!operation) return;
  const RelationEnd from{lane, *operation, std::min(operation->end_ns, store_.end_ns())};
  const auto waits = index_.waits(rank_);
  // Computation may have stood still before the operation began.
  const auto step = step_at(fetch->started_ns);
  const std::int64_t since = step ? step->begin_ns : fetch->started_ns;
  for (auto wait = std::ranges::lower_bound(waits, since, {}, &store::Span::begin_ns);
       wait != waits.end() && wait->begin_ns <= std::max(fetch->used_ns, fetch->started_ns); ++wait) {
    if (wait->kind != EventKind::fetch_wait_begin) continue;
    if (ev::as<EventKind::fetch_wait_begin>(*wait).gather != id) continue;
    add({RelationKind::gather_to_wait, from, {compute(), *wait, wait->end_ns}, id});
    break;
  }
  if (fetch->module == ev::kNoId || fetch->used_ns == store::kOpen) return;
  if (const auto user = run_of(fetch->module, fetch->used_ns))
    add({RelationKind::gather_to_module,
         from,
         {compute(), *user, std::clamp(fetch->used_ns, user->begin_ns, user->end_ns)},
         id});
}

void RelationFinder::gathers_of_module(const store::Span& span) {
  const auto step = step_at(span.begin_ns);
  if (!step) return;
  const std::uint32_t module = ev::as<EventKind::module_begin>(span).module;
  for (const Fetch& fetch : index_.fetches(rank_)) {
    if (fetch.started_ns >= span.end_ns) break;
    if (fetch.module != module || fetch.used_ns < step->begin_ns || fetch.used_ns > span.end_ns) continue;
    RelationFinder one(store_, index_, rank_);
    one.gather(fetch.gather);
    out.read &= one.out.read;
    const bool uses = std::ranges::any_of(one.out.list, [&](const Relation& relation) {
      return relation.kind == RelationKind::gather_to_module && relation.to.span.begin_ns == span.begin_ns &&
             relation.to.span.depth == span.depth;
    });
    if (!uses) continue;
    for (Relation& relation : one.out.list) add(std::move(relation));
  }
}

void RelationFinder::look_into(const StepWindow& window) {
  buckets_.clear();
  store_.for_each_instant(rank_, window.begin_ns, window.end_ns, [&](const ev::Event& event) {
    if (event.kind == EventKind::bucket_add) {
      const auto fields = ev::as<EventKind::bucket_add>(event);
      buckets_[fields.bucket].params.push_back(fields.param);
    } else if (event.kind == EventKind::bucket_flush) {
      buckets_[ev::as<EventKind::bucket_flush>(event).bucket].flushed_ns =
          static_cast<std::int64_t>(event.ticks);
    }
  });
}

/// Modules -> the bucket's reduction -> the wait for it, and the optimizer of the step.
void RelationFinder::bucket(std::uint32_t id) {
  const auto found = buckets_.find(id);
  if (found == buckets_.end() || found->second.flushed_ns == 0) return;
  const auto step = step_at(found->second.flushed_ns);
  if (!step) return;
  const store::LaneId lane{rank_, ev::StreamId::reduce};
  std::vector<RelationEnd> reductions;
  spans(lane, *step, [&](const store::Span& span) {
    if (span.kind != EventKind::collective_begin || span.begin_ns < step->begin_ns) return;
    const auto fields = ev::as<EventKind::collective_begin>(span);
    if (reduces_gradients(fields.op) && fields.group == id)
      reductions.push_back({lane, span, std::min(span.end_ns, store_.end_ns())});
  });
  if (reductions.empty()) return;
  // The last backward of each module before the flush: it is what filled the bucket.
  std::map<std::uint32_t, store::Span> modules;
  std::set<std::uint32_t> wanted;
  for (const std::uint32_t param : found->second.params) {
    if (!store_.has_tables() || param >= store_.tables().params.size()) continue;
    const auto& users = store_.tables().params[param].modules;
    wanted.insert(users.begin(), users.end());
  }
  std::vector<RelationEnd> waits, optimizers;
  const auto steps = store_.steps();
  const std::uint32_t number = steps[*step_of(steps, found->second.flushed_ns)].step;
  const auto of_compute = [&](store::LaneId on) {
    return [&, on](const store::Span& span) {
      if (span.kind == EventKind::module_begin) {
        const auto fields = ev::as<EventKind::module_begin>(span);
        if (fields.pass == ev::Pass::backward && wanted.contains(fields.module) &&
            span.begin_ns <= found->second.flushed_ns) {
          const auto [at, made] = modules.try_emplace(fields.module, span);
          if (!made && at->second.begin_ns < span.begin_ns) at->second = span;
        }
      } else if (span.kind == EventKind::reduce_wait_begin) {
        if (ev::as<EventKind::reduce_wait_begin>(span).bucket == id) waits.push_back({on, span, span.end_ns});
      } else if (span.kind == EventKind::optimizer_begin) {
        if (ev::as<EventKind::optimizer_begin>(span).step == number)
          optimizers.push_back({on, span, span.begin_ns});
      }
    };
  };
  spans(compute(), *step, of_compute(compute()));
  const store::LaneId worker{rank_, ev::StreamId::worker};
  if (store_.depth_count(worker) > 0) spans(worker, *step, of_compute(worker));
  for (const auto& [module, span] : modules) {
    RelationEnd to = reductions.front();
    to.at_ns = to.span.begin_ns;
    add({RelationKind::module_to_reduce,
         {compute(), span, std::min(span.end_ns, found->second.flushed_ns)},
         to,
         id});
  }
  for (const RelationEnd& wait : waits) add({RelationKind::reduce_to_wait, reductions.back(), wait, id});
  // Sub-groups of one step follow one another: the first has to wait for the gradients.
  if (!optimizers.empty())
    add({RelationKind::reduce_to_optimizer, reductions.back(),
         *std::ranges::min_element(optimizers, {}, &RelationEnd::at_ns), id});
}

void RelationFinder::buckets_of_module(const store::Span& span) {
  const auto step = step_at(span.begin_ns);
  if (!step || !store_.has_tables()) return;
  const std::uint32_t module = ev::as<EventKind::module_begin>(span).module;
  look_into(*step);
  for (const auto& [id, bucket] : buckets_) {
    const bool holds = std::ranges::any_of(bucket.params, [&](std::uint32_t param) {
      const auto& params = store_.tables().params;
      return param < params.size() &&
             std::ranges::find(params[param].modules, module) != params[param].modules.end();
    });
    if (!holds) continue;
    RelationFinder one(store_, index_, rank_);
    one.buckets_[id] = bucket;
    one.bucket(id);
    out.read &= one.out.read;
    const bool from_it = std::ranges::any_of(one.out.list, [&](const Relation& relation) {
      return relation.kind == RelationKind::module_to_reduce &&
             relation.from.span.begin_ns == span.begin_ns && relation.from.span.depth == span.depth;
    });
    if (!from_it) continue;
    for (Relation& relation : one.out.list) {
      const bool other_module =
          relation.kind == RelationKind::module_to_reduce &&
          (relation.from.span.begin_ns != span.begin_ns || relation.from.span.depth != span.depth);
      if (!other_module) add(std::move(relation));
    }
  }
}

void RelationFinder::reductions_of(const store::Span& optimizer, store::LaneId lane) {
  const auto step = step_at(optimizer.begin_ns);
  if (!step) return;
  look_into(*step);
  for (const auto& [id, bucket] : buckets_) {
    RelationFinder one(store_, index_, rank_);
    one.buckets_[id] = bucket;
    one.bucket(id);
    out.read &= one.out.read;
    for (Relation& relation : one.out.list) {
      if (relation.kind == RelationKind::reduce_to_optimizer && relation.to.lane == lane &&
          relation.to.span.begin_ns == optimizer.begin_ns)
        add(std::move(relation));
    }
  }
}

void RelationFinder::about(store::LaneId lane, const store::Span& span) {
  switch (span.kind) {
    case EventKind::collective_begin: {
      const auto fields = ev::as<EventKind::collective_begin>(span);
      if (fields.group == ev::kNoId) return;
      if (lane.stream == ev::StreamId::gather) {
        gather(fields.group);
      } else if (lane.stream == ev::StreamId::reduce && reduces_gradients(fields.op)) {
        if (const auto step = step_at(span.begin_ns)) look_into(*step);
        bucket(fields.group);
      }
      // A number that names something else than this operation says nothing of it.
      std::erase_if(out.list, [&](const Relation& relation) {
        const auto is_it = [&](const RelationEnd& end) {
          return end.lane == lane && end.span.begin_ns == span.begin_ns;
        };
        return !is_it(relation.from) && !is_it(relation.to);
      });
      return;
    }
    case EventKind::fetch_wait_begin:
      gather(ev::as<EventKind::fetch_wait_begin>(span).gather);
      return;
    case EventKind::reduce_wait_begin:
      if (const auto step = step_at(span.begin_ns)) look_into(*step);
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
  if (key_ != key) {
    relations_ = relations_of(store, index, lane, span);
    key_ = relations_.read ? std::optional(key) : std::nullopt;
  }
  return relations_;
}

}  // namespace shardscope::gui
