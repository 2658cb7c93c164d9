#include "app/gui/model/run_index.h"

#include <algorithm>
#include <tuple>

#include "app/store/lane.h"
#include "app/store/span_time.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::gui {
namespace {

/// Waits shorter than this are the cost of checking, not of waiting.
constexpr std::int64_t kNoticeableWait = 20'000;

}  // namespace

const char* word(FetchOutcome outcome) noexcept {
  switch (outcome) {
    case FetchOutcome::pending:
      return "in flight";
    case FetchOutcome::on_demand:
      return "on demand";
    case FetchOutcome::early:
      return "early";
    case FetchOutcome::just_in_time:
      return "just in time";
    case FetchOutcome::late:
      return "late";
    case FetchOutcome::mistargeted:
      return "mistargeted";
    case FetchOutcome::unused:
      return "unused";
  }
  return "unknown";
}

std::int64_t Fetch::unused_ns() const noexcept {
  if (ended_ns == store::kOpen || used_ns == store::kOpen) return 0;
  return std::max<std::int64_t>(0, used_ns - ended_ns);
}

namespace {

/// Adds an event of the NCCL plugin to `notes`; false for other events.
bool take_nccl(const ev::Event& event, std::unordered_map<std::uint32_t, NcclNote>& notes) {
  switch (event.kind) {
    case ev::EventKind::nccl_collective: {
      const auto fields = ev::as<ev::EventKind::nccl_collective>(event);
      NcclNote& note = notes[fields.sequence];
      if (note.operations++ == 0) note.first = fields;
      const auto how = [](const auto& one) {
        return std::tuple(one.algorithm, one.protocol, one.channels, one.warps);
      };
      note.alike = note.alike && how(note.first) == how(fields);
      return true;
    }
    case ev::EventKind::nccl_kernel: {
      const auto fields = ev::as<ev::EventKind::nccl_kernel>(event);
      NcclNote& note = notes[fields.sequence];
      note.channels_timed += fields.channels_timed;
      note.channels_used += fields.channels_used;
      note.kernel_ns = std::max(note.kernel_ns, fields.begin_ns_before);
      note.spread_ns = std::max(note.spread_ns, fields.first_end_ns_before);
      return true;
    }
    case ev::EventKind::nccl_proxy: {
      const auto fields = ev::as<ev::EventKind::nccl_proxy>(event);
      NcclNote& note = notes[fields.sequence];
      note.proxies += fields.operations;
      note.proxy_ns = std::max(note.proxy_ns, fields.begin_ns_before);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace

std::optional<std::int64_t> outside_at(std::span<const OutsideMemory> samples, std::int64_t at_ns) {
  const auto next = std::partition_point(samples.begin(), samples.end(),
                                         [&](const OutsideMemory& s) { return s.at_ns <= at_ns; });
  return next == samples.begin() ? std::nullopt : std::optional((next - 1)->bytes);
}

FetchOutcome Fetch::outcome() const noexcept {
  if (reported) {
    switch (*reported) {
      case plan::PrefetchOutcome::early:
        return FetchOutcome::early;
      case plan::PrefetchOutcome::just_in_time:
        return FetchOutcome::just_in_time;
      case plan::PrefetchOutcome::late:
        return FetchOutcome::late;
      case plan::PrefetchOutcome::mistargeted:
        return FetchOutcome::mistargeted;
      case plan::PrefetchOutcome::unused:
        return FetchOutcome::unused;
    }
  }
  if (used_ns == store::kOpen) return ended_ns == store::kOpen ? FetchOutcome::pending : FetchOutcome::unused;
  if (!prefetched) return FetchOutcome::on_demand;
  if (wait_ns > kNoticeableWait) return FetchOutcome::late;
  // Early: it was unused for longer than the gather took, so a later fetch would have cost nothing.
  const std::int64_t took = ended_ns == store::kOpen ? 0 : ended_ns - started_ns;
  return unused_ns() > std::max(took, kNoticeableWait) ? FetchOutcome::early : FetchOutcome::just_in_time;
}

void RunIndex::begin(const store::Store& store, Window window) {
  // Late first events of a rank move time 0, and with it all stored times.
  if (store.origin_ns() != origin_ns_ || window != window_) {
    ranks_.clear();
    next_.reset();
    origin_ns_ = store.origin_ns();
    window_ = window;
  }
  begun_ = true;
}

bool RunIndex::advance(const store::Store& store, Completeness completeness, Window window,
                       std::chrono::nanoseconds time) {
  begin(store, window);
  const auto until = std::chrono::steady_clock::now() + time;
  const std::span<const store::RankRow> ranks = store.ranks();
  if (ranks.empty()) return true;
  if (!next_) {
    next_ = Next{ranks.front().rank, Part::instants};
    revision_ = store.revision();
    completeness_ = completeness;
  }
  auto row = std::ranges::find(ranks, next_->rank, &store::RankRow::rank);
  while (row != ranks.end()) {
    RankIndex& index = ranks_[row->rank];
    switch (next_->part) {
      case Part::instants:
        take_instants(store, row->rank, completeness, index);
        next_->part = Part::waits;
        break;
      case Part::waits:
        take_waits(store, row->rank, index);
        next_->part = Part::gathers;
        break;
      case Part::gathers:
        take_gathers(store, row->rank, index);
        if (++row != ranks.end()) next_ = Next{row->rank, Part::instants};
        break;
    }
    if (row != ranks.end() && std::chrono::steady_clock::now() >= until) return false;
  }
  next_.reset();
  // Ranks that were read before the last events came lack them.
  if (!current(store, completeness)) update(store, completeness, window);
  return true;
}

void RunIndex::update(const store::Store& store, Completeness completeness, Window window) {
  begin(store, window);
  next_.reset();
  revision_ = store.revision();
  completeness_ = completeness;
  for (const store::RankRow& row : store.ranks()) {
    RankIndex& index = ranks_[row.rank];
    take_instants(store, row.rank, completeness, index);
    take_waits(store, row.rank, index);
    take_gathers(store, row.rank, index);
  }
}

void RunIndex::take_instants(const store::Store& store, std::uint32_t rank, Completeness completeness,
                             RankIndex& index) const {
  constexpr std::int64_t kSettling = 20'000'000;
  // Of this rank only: other ranks may have received later events.
  std::int64_t latest = 0;
  for (const store::RankRow& row : store.ranks()) {
    if (row.rank == rank) latest = row.last_ns;
  }
  std::int64_t until = completeness == Completeness::complete ? store.end_ns() : latest - kSettling;
  until = std::min(until, window_.end_ns);
  if (until <= index.instants_until) return;
  const std::int64_t from = index.instants_until == INT64_MIN ? window_.begin_ns : index.instants_until + 1;
  store.for_each_instant(rank, from, until + 1, [&](const ev::Event& event) {
    const auto at_ns = static_cast<std::int64_t>(event.ticks);
    if (event.kind == ev::EventKind::collective_part) {
      const auto part = ev::as<ev::EventKind::collective_part>(event);
      index.parts[part.sequence].push_back(part.param);
      return;
    }
    if (event.kind == ev::EventKind::outside_memory) {
      index.outside.push_back({at_ns, ev::as<ev::EventKind::outside_memory>(event).bytes});
      return;
    }
    if (index.counters.take(store, rank, event)) return;
    if (take_nccl(event, index.nccl)) return;
    if (event.kind == ev::EventKind::bucket_open) {
      const BucketFlush opened = opened_bucket(event);
      index.filling[opened.bucket] = opened;
      return;
    }
    if (event.kind == ev::EventKind::bucket_flush) {
      const auto opened = index.filling.extract(ev::as<ev::EventKind::bucket_flush>(event).bucket);
      index.flushes.push_back(flush_of(event, opened.empty() ? BucketFlush{} : opened.mapped()));
      return;
    }
    if (event.kind == ev::EventKind::prefetch_issued) {
      const std::uint32_t gather = ev::as<ev::EventKind::prefetch_issued>(event).gather;
      index.prefetch_issued.insert(gather);
      const auto fetch = index.by_gather.find(gather);
      if (fetch != index.by_gather.end()) index.fetches[fetch->second].prefetched = true;
      return;
    }
    if (event.kind == ev::EventKind::prefetch_outcome) {
      const auto fields = ev::as<ev::EventKind::prefetch_outcome>(event);
      const auto fetch = index.by_gather.find(fields.gather);
      if (fetch != index.by_gather.end() && fields.outcome <= plan::PrefetchOutcome::unused) {
        index.fetches[fetch->second].reported = fields.outcome;
      }
      return;
    }
    if (event.kind != ev::EventKind::param_status) return;
    const auto change = ev::as<ev::EventKind::param_status>(event);
    if (change.gather == ev::kNoId) return;
    const auto known = index.by_gather.find(change.gather);
    if (change.status.status() == plan::ParamStatus::in_flight) {
      if (known == index.by_gather.end()) {
        Fetch fetch;
        fetch.gather = change.gather;
        fetch.module = change.module;
        fetch.prefetched =
            change.cause == ev::StatusCause::prefetch || index.prefetch_issued.contains(change.gather);
        fetch.started_ns = at_ns;
        index.by_gather.emplace(change.gather, index.fetches.size());
        index.fetches.push_back(std::move(fetch));
      }
      Fetch& fetch = index.fetches[index.by_gather[change.gather]];
      fetch.params.push_back(change.param);
      fetch.elems += change.elems;
    } else if (change.status.status() == plan::ParamStatus::available && known != index.by_gather.end()) {
      Fetch& fetch = index.fetches[known->second];
      fetch.used_ns = std::min(fetch.used_ns, at_ns);
    }
  });
  index.instants_until = std::max(index.instants_until, until);
  take_counters(index);
}

template <typename Take>
void RunIndex::take_ended(const store::Store& store, store::LaneId lane, std::uint8_t depth,
                          std::int64_t until_ns, Seen& seen, Take take) const {
  // Spans of one depth do not overlap, so only the last can be open; it is added after its end, once its data
  // is complete.
  constexpr std::int64_t kLate = 1'000'000'000;  // events of this lane may arrive with this delay
  const std::int64_t from = std::max(seen.from_ns, window_.begin_ns);
  if (until_ns < from) return;
  seen.from_ns = std::max(seen.from_ns, until_ns - kLate);
  bool waiting = false;
  store.for_each_span(lane, depth, from, until_ns + 1, [&](const store::Span& span) {
    if (waiting || (seen.last_begin_ns != INT64_MIN && span.begin_ns <= seen.last_begin_ns)) return;
    waiting = span.end_ns > until_ns;
    if (waiting) {
      seen.from_ns = std::min(seen.from_ns, span.begin_ns);
      return;
    }
    seen.last_begin_ns = span.begin_ns;
    take(span);
  });
}

void RunIndex::take_waits(const store::Store& store, std::uint32_t rank, RankIndex& index) const {
  const store::LaneId lane{rank, ev::StreamId::compute};
  const std::uint8_t depths = store.depth_count(lane);
  index.compute_seen.resize(depths);
  const std::size_t before = index.waits.size();
  for (std::uint8_t depth = 0; depth < depths; ++depth) {
    take_ended(
        store, lane, depth, index.instants_until, index.compute_seen[depth], [&](const store::Span& span) {
          if (!store::is_wait(span.kind)) return;
          index.waits.push_back(span);
          if (span.kind != ev::EventKind::fetch_wait_begin) return;
          const auto known = index.by_gather.find(ev::as<ev::EventKind::fetch_wait_begin>(span).gather);
          if (known == index.by_gather.end()) return;
          Fetch& fetch = index.fetches[known->second];
          fetch.wait_ns += store::time_of(store, rank, span).running_ns;
          fetch.used_ns = std::min(fetch.used_ns, span.end_ns);
        });
  }
  if (index.waits.size() == before) return;
  const auto by_begin = [](const store::Span& x, const store::Span& y) { return x.begin_ns < y.begin_ns; };
  const auto middle = index.waits.begin() + static_cast<std::ptrdiff_t>(before);
  std::sort(middle, index.waits.end(), by_begin);
  std::inplace_merge(index.waits.begin(), middle, index.waits.end(), by_begin);
}

void RunIndex::take_gathers(const store::Store& store, std::uint32_t rank, RankIndex& index) const {
  const store::LaneId lane{rank, ev::StreamId::gather};
  const std::uint8_t depths = store.depth_count(lane);
  index.gather_seen.resize(depths);
  // Gathers may be nested in a phase span: search every depth.
  for (std::uint8_t depth = 0; depth < depths; ++depth) {
    take_ended(
        store, lane, depth, index.instants_until, index.gather_seen[depth], [&](const store::Span& span) {
          if (span.kind != ev::EventKind::collective_begin) return;
          if (const Fetch* fetch = find_fetch(index, span)) {
            index.fetches[static_cast<std::size_t>(fetch - index.fetches.data())].ended_ns = span.end_ns;
          }
        });
  }
}

std::span<const Fetch> RunIndex::fetches(std::uint32_t rank) const {
  const auto index = ranks_.find(rank);
  return index == ranks_.end() ? std::span<const Fetch>{} : std::span<const Fetch>(index->second.fetches);
}

const Fetch* RunIndex::fetch_of(std::uint32_t rank, const store::Span& span) const {
  const auto index = ranks_.find(rank);
  return index == ranks_.end() ? nullptr : find_fetch(index->second, span);
}

const Fetch* RunIndex::find_fetch(const RankIndex& index, const store::Span& span) {
  // The group of a gather is its id in the plan; sources that number groups differently are matched by time.
  constexpr std::int64_t kSlack = 50'000;
  const auto named = index.by_gather.find(ev::as<ev::EventKind::collective_begin>(span).group);
  if (named != index.by_gather.end()) {
    const Fetch& fetch = index.fetches[named->second];
    if (fetch.started_ns >= span.begin_ns - kSlack && fetch.started_ns <= span.end_ns) return &fetch;
  }
  const auto found =
      std::partition_point(index.fetches.begin(), index.fetches.end(),
                           [&](const Fetch& fetch) { return fetch.started_ns < span.begin_ns - 1000; });
  return found != index.fetches.end() && found->started_ns <= span.end_ns ? &*found : nullptr;
}

const Fetch* RunIndex::fetch_by_id(std::uint32_t rank, std::uint32_t gather) const {
  const auto index = ranks_.find(rank);
  if (index == ranks_.end()) return nullptr;
  const auto found = index->second.by_gather.find(gather);
  return found == index->second.by_gather.end() ? nullptr : &index->second.fetches[found->second];
}

std::span<const store::Span> RunIndex::waits(std::uint32_t rank) const {
  const auto index = ranks_.find(rank);
  return index == ranks_.end() ? std::span<const store::Span>{}
                               : std::span<const store::Span>(index->second.waits);
}

std::pair<std::size_t, std::size_t> RunIndex::overlapping(std::span<const store::Span> spans,
                                                          std::int64_t begin_ns, std::int64_t end_ns) {
  const auto first = std::partition_point(spans.begin(), spans.end(),
                                          [&](const store::Span& span) { return span.end_ns <= begin_ns; });
  const auto last = std::partition_point(first, spans.end(),
                                         [&](const store::Span& span) { return span.begin_ns < end_ns; });
  return {static_cast<std::size_t>(first - spans.begin()), static_cast<std::size_t>(last - spans.begin())};
}

std::span<const std::uint32_t> RunIndex::parts(std::uint32_t rank, std::uint32_t sequence) const {
  const auto index = ranks_.find(rank);
  if (index == ranks_.end()) return {};
  const auto found = index->second.parts.find(sequence);
  return found == index->second.parts.end() ? std::span<const std::uint32_t>{}
                                            : std::span<const std::uint32_t>(found->second);
}

const NcclNote* RunIndex::nccl(std::uint32_t rank, std::uint32_t sequence) const {
  const auto index = ranks_.find(rank);
  if (index == ranks_.end() || sequence == ev::kNoId) return nullptr;
  const auto found = index->second.nccl.find(sequence);
  return found == index->second.nccl.end() ? nullptr : &found->second;
}

std::span<const OutsideMemory> RunIndex::outside(std::uint32_t rank) const {
  const auto index = ranks_.find(rank);
  return index == ranks_.end() ? std::span<const OutsideMemory>{}
                               : std::span<const OutsideMemory>(index->second.outside);
}

void RunIndex::take_counters(RankIndex& index) {
  const std::span<const analysis::CounterSeries> series = index.counters.series();
  index.counter_curves.resize(series.size());
  index.counter_samples.resize(series.size());
  for (std::size_t i = 0; i < series.size(); ++i) {
    StepSeries& curve = index.counter_curves[i];
    for (std::size_t& next = index.counter_samples[i]; next < series[i].samples.size(); ++next) {
      const analysis::CounterSample& sample = series[i].samples[next];
      curve.add(sample.at_ns, sample.value);
      if (sample.until_ns != analysis::CounterSample::kUntilNext) curve.add_unknown(sample.until_ns);
    }
  }
}

std::span<const analysis::CounterSeries> RunIndex::counters(std::uint32_t rank) const {
  const auto index = ranks_.find(rank);
  return index == ranks_.end() ? std::span<const analysis::CounterSeries>{} : index->second.counters.series();
}

const StepSeries* RunIndex::counter_curve(std::uint32_t rank, const std::string& name) const {
  const std::span<const analysis::CounterSeries> series = counters(rank);
  const auto found = std::ranges::find(series, name, &analysis::CounterSeries::name);
  if (found == series.end()) return nullptr;
  return &ranks_.at(rank).counter_curves[static_cast<std::size_t>(found - series.begin())];
}

std::span<const BucketFlush> RunIndex::flushes(std::uint32_t rank) const {
  const auto index = ranks_.find(rank);
  return index == ranks_.end() ? std::span<const BucketFlush>{}
                               : std::span<const BucketFlush>(index->second.flushes);
}

}  // namespace shardscope::gui
