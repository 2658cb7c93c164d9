#include "runtime/engine/prefetch_watch.h"

#include <array>
#include <utility>

#include "runtime/execution/events.h"
#include "runtime/plan/prefetch_outcome.h"

namespace shardscope::engine {
using execution::emit_on;

namespace {

// Called when the compute stream has reached the last of the four points, with their timestamps in
// nanoseconds.
void judge(ev::Event& event, std::span<const std::int64_t> reached_ns) {
  // begin, end, need, resume: the order of `points` in used().
  const plan::PrefetchVerdict verdict =
      plan::judge_prefetch({reached_ns[0], reached_ns[1], reached_ns[2], reached_ns[3]});
  // Completes the event, which was created before the timestamps were known.
  auto fields = ev::as<ev::EventKind::prefetch_outcome>(event);
  fields.outcome = verdict.outcome;
  fields.slack_ns = verdict.slack_ns;
  fields.gather_ns = verdict.gather_ns;
  ev::fields::write(event, fields);
}

}  // namespace

PrefetchWatch::Watched* PrefetchWatch::find(plan::GatherId gather) {
  const auto found = watched_.find(plan::raw(gather));
  return found == watched_.end() ? nullptr : &found->second;
}

// From a pool: events returned by earlier gathers are reused.
void PrefetchWatch::record(Point& point, device::Stream& stream) {
  point = events_.take();
  stream.record(*point);
}

// Some were never recorded: an unused prefetch has no `need` and no `resume`.
void PrefetchWatch::return_points(Watched& watched) {
  for (Point* point : {&watched.begin, &watched.end, &watched.need, &watched.resume}) {
    if (*point) events_.give_back(std::move(*point));
  }
}

// Checked once per gather: if the detail level is raised later, gathers in flight stay unwatched.
void PrefetchWatch::began(plan::GatherId gather, std::size_t params) {
  if (!ev::enabled(ev::detail_of(ev::EventKind::prefetch_outcome))) return;
  Watched& watched = watched_[plan::raw(gather)];
  watched.params = static_cast<std::uint32_t>(params);
  record(watched.begin, device_.gather());
}

void PrefetchWatch::ended(plan::GatherId gather) {
  if (Watched* watched = find(gather)) record(watched->end, device_.gather());
}

void PrefetchWatch::needed(plan::GatherId gather) {
  if (Watched* watched = find(gather)) record(watched->need, device_.compute());
}

void PrefetchWatch::resumed(plan::GatherId gather) {
  if (Watched* watched = find(gather)) record(watched->resume, device_.compute());
}

void PrefetchWatch::used(plan::GatherId gather, plan::ModuleId module) {
  Watched* watched = find(gather);
  // One outcome per prefetch: for later uses it is available anyway.
  if (watched == nullptr || watched->reported) return;
  watched->reported = true;
  // The detail level may have been lowered since began().
  if (ev::enabled(ev::detail_of(ev::EventKind::prefetch_outcome))) {
    const std::array<device::Event*, 4> points = {watched->begin.get(), watched->end.get(),
                                                  watched->need.get(), watched->resume.get()};
    device::Stream& compute = device_.compute();
    const ev::Event event = ev::make<ev::EventKind::prefetch_outcome>(
        compute.id(), {.gather = plan::raw(gather), .module = plan::raw(module), .params = watched->params});
    compute.emit_timed(event, points, judge);
  }
  return_points(*watched);
}

void PrefetchWatch::freed(plan::GatherId gather, Freed how, bool last) {
  Watched* watched = find(gather);
  if (watched == nullptr) return;
  // One parameter is enough: the whole gather followed the same trace.
  watched->invalidated |= how == Freed::invalidated;
  // While one of its parameters is held, it may still be used.
  if (!last) return;
  if (!watched->reported) {
    emit_on<ev::EventKind::prefetch_outcome>(device_.compute(),
                                             {.outcome = plan::outcome_of_unused(watched->invalidated),
                                              .gather = plan::raw(gather),
                                              .params = watched->params});
    return_points(*watched);
  }
  watched_.erase(plan::raw(gather));
}

}  // namespace shardscope::engine
