#include "app/gui/model/details.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "app/analysis/communication.h"
#include "app/analysis/coordinator.h"
#include "app/analysis/gpu_activity.h"
#include "app/analysis/quantity_text.h"
#include "app/gui/model/arrivals.h"
#include "app/gui/model/clock_bound.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_text.h"
#include "app/store/gather_contents.h"
#include "app/store/losses.h"
#include "app/store/names.h"
#include "app/store/rank_end.h"
#include "instrumentation/bus_factor.h"
#include "instrumentation/param_status.h"

namespace shardscope::gui {
namespace {

constexpr std::size_t kHistoryRows = 64;
constexpr std::size_t kHistoryParts = 4;

void add(Details& out, std::string label, const Quantity& value, std::string formula = {}) {
  out.fields.push_back({std::move(label), value.number, value.unit, std::move(formula)});
}
void add(Details& out, std::string label, std::string value, std::string formula = {}) {
  out.fields.push_back({std::move(label), std::move(value), {}, std::move(formula)});
}

Quantity parts_per_million(const std::optional<store::ClockDrift>& drift) {
  return drift ? Quantity{analysis::ppm_text(*drift), "ppm"} : Quantity{kMissing, {}};
}

std::string spelled(std::int64_t ns) { return duration(ns).text(); }

/// As far as it is known of a span that has not ended.
std::int64_t end_of(const AppState& app, std::uint32_t rank, const store::Span& span) {
  return store::time_of(app.store(), rank, span).until_ns;
}

void add_time(const store::SpanTime& time, const char* formula, Details& out) {
  add(out, time.ended ? "duration" : "so far", duration(time.running_ns), formula);
  if (time.paused_ns > 0) add(out, "paused", duration(time.paused_ns), "held by the user; in no duration");
}

void add_span_times(const AppState& app, std::uint32_t rank, const store::Span& span, Details& out) {
  const store::SpanTime time = store::time_of(app.store(), rank, span);
  add_time(time, time.paused_ns > 0 ? "end - begin, pauses cut out" : "", out);
  if (!time.ended) add(out, "not ended", store::why_open(app.store(), rank));
  add(out, "begin", timestamp(span.begin_ns, 1000));
}

std::uint32_t group_ranks(const AppState& app, std::uint32_t rank, const store::Span& span) {
  return analysis::ranks_of(app.store(), rank, span);
}

/// NCCL's own words for how it moved the bytes, where its plugin was loaded.
void describe_nccl(const AppState& app, std::uint32_t rank, std::uint32_t sequence, Details& out) {
  const NcclNote* note = app.run->index().nccl(rank, sequence);
  if (note == nullptr) {
    // On the CPU there is nothing to miss.
    const store::Store& data = app.store();
    const bool nccl = data.instant_count(rank, ev::EventKind::nccl_collective) > 0 ||
                      (data.has_tables() && data.tables().device.find("NCCL") != std::string::npos);
    if (nccl) {
      out.fields.push_back(
          {"NCCL", kMissing, "",
           "algorithm, protocol and channels: NCCL's profiler plugin was not loaded, or did not "
           "follow this one"});
    }
    return;
  }
  const auto algorithm = static_cast<ev::NcclAlgorithm>(note->code & 0xFFU);
  const auto protocol = static_cast<ev::NcclProtocol>(note->code >> 8U & 0xFFU);
  const std::string others = note->alike ? "" : " and others";
  const auto known = [](const char* name) { return std::string(name) == "unknown" ? kMissing : name; };
  if (note->operations > 1) add(out, "NCCL operations", std::to_string(note->operations));
  if (note->operations > 0) {
    add(out, "algorithm", known(store::name_of(algorithm)) + others);
    add(out, "protocol", known(store::name_of(protocol)) + others);
    add(out, "channels", std::to_string(note->code >> 16U & 0xFFU) + others);
  }
  if (note->channels_timed > 0) {
    add(out, "NCCL kernel", duration(note->kernel_ns),
        "first channel's begin to last channel's end on the GPU's clock; " +
            std::to_string(note->channels_timed) + " of " + std::to_string(note->channels_used) +
            " channels timed");
    add(out, "channel spread", duration(note->spread_ns), "last channel's end - first channel's end");
  }
  if (note->proxies > 0) {
    add(out, "network", duration(note->proxy_ns),
        std::to_string(note->proxies) + " operations of NCCL's proxy, begin of the first to end of the last");
  }
}

void describe_collective(const AppState& app, store::LaneId lane, const store::Span& span, Details& out) {
  const auto op = static_cast<ev::CollectiveOp>(span.code);
  const std::int64_t length = end_of(app, lane.rank, span) - span.begin_ns;
  add(out, "elements", grouped(span.v0));
  add(out, "bytes", bytes(span.v1), "S: full size over its ranks (metrics 2.3)");
  if (span.c != ev::kNoId && ev::scope_of(span.c) != ev::CollectiveScope::world) {
    const ev::GroupInfo* group = analysis::group_of(app.store(), lane.rank, span);
    add(out, "among",
        std::to_string(group_ranks(app, lane.rank, span)) + " ranks, " +
            (group != nullptr ? group->name : store::name_of(ev::scope_of(span.c))));
  }
  if (ev::end_is_bound(span.c))
    add(out, "end", "an upper bound", "the operation had ended by then; bandwidth is at least what is shown");
  if (span.mark_ns > 0 && span.mark_ns >= span.begin_ns) {
    add(out, "waited for ranks", duration(span.mark_ns - span.begin_ns), "until every rank had arrived");
    add(out, "transfer", duration(end_of(app, lane.rank, span) - span.mark_ns),
        "from the last arrival to the end");
  }
  const std::vector<Arrival> came = arrivals(app.store(), lane, span);
  if (const Arrival* last = last_to_arrive(came)) {
    add(out, "last to arrive", "rank " + std::to_string(last->rank));
    add(out, "after the first", duration(last->late_ns), "begin on the last rank - begin on the first");
  }
  if (length > 0 && span.v1 > 0 && span.end_ns != store::kOpen) {
    const double algorithm = static_cast<double>(span.v1) / static_cast<double>(length);
    const double factor = ev::bus_factor(op, group_ranks(app, lane.rank, span));
    if (span.mark_ns > span.begin_ns && span.mark_ns < span.end_ns) {
      const double alone = static_cast<double>(span.v1) / static_cast<double>(span.end_ns - span.mark_ns);
      add(out, "algbw, transfer", bandwidth(alone), "S / time from the last arrival to the end");
      add(out, "busbw, transfer", bandwidth(alone * factor), "that x the operation's factor for this group");
    }
    add(out, "algbw, waiting", bandwidth(algorithm), "S / duration, waiting for the last rank included");
    add(out, "busbw, waiting", bandwidth(algorithm * factor), "that x the operation's factor for this group");
  }
  describe_nccl(app, lane.rank, span.a, out);
  if (lane.stream != ev::StreamId::gather) return;
  const Fetch* fetch = app.run->index().fetch_of(lane.rank, span);
  if (fetch == nullptr) return;
  if (const std::string contents = store::contents_text(app.store(), fetch->params); !contents.empty())
    add(out, "holds", contents, "the modules whose parameters it gathers");
  add(out, "outcome", word(fetch->outcome()));
  add(out, "parameters", std::to_string(fetch->params.size()));
  if (fetch->wait_ns > 0) add(out, "compute waited", duration(fetch->wait_ns));
  if (fetch->outcome() == FetchOutcome::early) {
    add(out, "lay unused", duration(fetch->unused_ns()), "first use - end of the gather");
  }
  out.reason = reason_of(app.store(), *fetch);
}

void describe_module(const AppState& app, std::uint32_t module, Details& out) {
  const store::Store& data = app.store();
  if (!data.has_tables() || module >= data.tables().modules.size()) return;
  const ev::ModuleInfo& info = data.tables().modules[module];
  out.subtitle = info.type;
  std::int64_t elems = 0;
  for (const std::uint32_t param : info.params) {
    if (param < data.tables().params.size()) elems += data.tables().params[param].elems;
  }
  add(out, "own parameters", std::to_string(info.params.size()));
  if (elems > 0) add(out, "elements", grouped(elems));
}

/// The latest runs of a module on one rank before `at_ns`, newest first.
void module_history(const AppState& app, std::uint32_t rank, std::uint32_t module, Details& out) {
  const store::LaneId lane{rank, ev::StreamId::compute};
  const store::Store& data = app.store();
  const std::vector<std::int64_t> cuts = data.cuts(lane);
  for (std::uint8_t depth = 0; depth < data.depth_count(lane); ++depth) {
    // A module sits at one depth; looking back over a few parts keeps this cheap in a long run.
    std::int64_t to = app.now_ns() + 1;
    for (std::size_t part = 0; part < kHistoryParts && out.history.size() < kHistoryRows; ++part) {
      const auto cut = std::ranges::lower_bound(cuts, to);
      const std::int64_t from = cut == cuts.begin() ? store::Store::kBegin : *(cut - 1);
      const std::vector<store::Span> spans = data.spans(lane, depth, from, to);
      for (auto span = spans.rbegin(); span != spans.rend() && out.history.size() < kHistoryRows; ++span) {
        if (span->kind != ev::EventKind::module_begin || span->a != module || span->begin_ns < from) continue;
        out.history.push_back({span->begin_ns, word(static_cast<ev::Pass>(span->code)),
                               length_text(store::time_of(data, rank, *span))});
      }
      if (from == store::Store::kBegin) break;
      to = from;
    }
    if (!out.history.empty()) break;
  }
  out.history_title = "Runs of this module";
}

/// A kernel, copy or memset: for whom, how long after its launch, and why its stream stood still before it.
void describe_gpu_work(const AppState& app, store::LaneId lane, const store::Span& span, Details& out) {
  const store::Store& data = app.store();
  const ev::GpuWork work = ev::work_of(span.code);
  if (const std::string owner = gpu_owner(data, span.code, span.b); !owner.empty()) add(out, "for", owner);
  if (work == ev::GpuWork::kernel) {
    add(out, "threads", grouped(span.v1));
  } else {
    add(out, "bytes", bytes(span.v1));
    const std::int64_t length = end_of(app, lane.rank, span) - span.begin_ns;
    if (length > 0 && span.v1 > 0)
      add(out, "rate", bandwidth(static_cast<double>(span.v1) / static_cast<double>(length)),
          "bytes / duration");
  }
  if (span.c != ev::kNoId) add(out, "CUDA stream", std::to_string(span.c));
  if (span.v0 == ev::kNoDelay) {
    add(out, "launch to start", "launch not recorded");
  } else {
    add(out, "launch to start", duration(span.v0),
        "start on the GPU - the host's entry into the launching call; below 0: the error of the clocks");
  }
  const auto gap = analysis::gap_before(data, lane, span);
  if (!gap) return;
  add(out, "stream idle before", duration(gap->at.end - gap->at.begin - gap->paused_ns),
      "since the end of its last work, pauses cut out");
  if (const std::string parts = analysis::gap_text(gap->parts, spelled); !parts.empty())
    out.reason = "Idle before: " + parts;
}

Details describe_step(const AppState& app, std::uint32_t step) {
  Details out;
  out.title = "Step " + std::to_string(step);
  const auto steps = app.store().steps();
  const auto row = std::ranges::find(steps, step, &store::StepRow::step);
  if (row == steps.end()) return out;
  out.subtitle = row->skipped                  ? "skipped after overflow"
                 : row->end_ns == store::kOpen ? "in progress"
                                               : "completed";
  add_time(store::time_of(app.store(), *row), "last end - first begin over ranks, pauses cut out", out);
  add(out, "loss", decimal(row->loss, 4));
  add(out, "gradient norm", decimal(row->grad_norm, 4));
  if (row->clip_factor == row->clip_factor)
    add(out, "clip factor", decimal(row->clip_factor, 4),
        "min(1, gradient_clipping / (gradient norm + 1e-6)); 1: not clipped");
  if (row->loss_scale == row->loss_scale) add(out, "loss scale", decimal(row->loss_scale, 0));
  add(out, "tokens", grouped(row->tokens));
  const StepTimes* times = app.run->step_times(step);
  if (times == nullptr) return out;
  out.history_title = "Exposed communication by rank";
  const auto of_step = [](const analysis::TimePartition& time) {
    return time.known() ? duration(time.exposed_comm_ns) : Quantity{kMissing, ""};
  };
  for (const StepTimes::Rank& rank : times->ranks)
    out.history.push_back({std::nullopt, "rank " + std::to_string(rank.rank), of_step(rank.time).text()});
  return out;
}

/// The streams of the GPU over the measured steps that its records cover.
void describe_gpu(const analysis::GpuActivity& gpu, Details& out) {
  for (const auto& [stream, total] : gpu.streams) {
    add(out, std::string(word(stream)) + " busy", duration(total.busy_ns),
        "union of its kernels and copies over " + std::to_string(gpu.steps) + " steps");
    const std::string idle = analysis::gap_text(total.idle_ns, spelled);
    if (!idle.empty()) add(out, std::string(word(stream)) + " idle", idle);
  }
  if (gpu.clock_residual_ns)
    add(out, "GPU clock residual", duration(*gpu.clock_residual_ns),
        "bound on the error of a converted time");
  const std::uint64_t missing = gpu.dropped + gpu.not_placed;
  if (missing > 0) add(out, "GPU records missing", grouped(static_cast<std::int64_t>(missing)));
}

/// How often the fetch scheduler gave up its trace, and why it first did.
void describe_trace(const store::Store& data, std::uint32_t rank, Details& out) {
  const std::uint64_t times = data.instant_count(rank, ev::EventKind::trace_invalidated);
  const auto first = times > 0 ? data.first_instant(rank, ev::EventKind::trace_invalidated) : std::nullopt;
  if (!first) return;
  const analysis::TraceInvalidation why = analysis::read_invalidation(rank, *first);
  add(out, "trace invalidated", times == 1 ? "once" : std::to_string(times) + " times");
  add(out, "at first", timestamp(why.at_ns, 1000));
  add(out, "cause", analysis::cause_text(data, why));
}

/// Ends without a beginning, of each kind that has any.
void describe_unbegun(const analysis::Summary& summary, std::uint32_t rank, Details& out) {
  const auto& ends = summary.unbegun_ends;
  if (!ends) return;
  for (const store::Store::UnbegunEnds& row : *ends) {
    if (row.rank != rank) continue;
    add(out, std::string(ev::name_of(row.kind)) + " unbegun", grouped(static_cast<std::int64_t>(row.count)),
        store::unbegun_text(row.count, row.explained));
  }
}

Details describe_rank(const AppState& app, std::uint32_t rank) {
  Details out;
  out.title = "Rank " + std::to_string(rank);
  for (const store::RankRow& row : app.store().ranks()) {
    if (row.rank != rank) continue;
    out.subtitle = row.host.empty() ? "" : row.host + ", pid " + std::to_string(row.pid);
    const store::RankEnd end = store::rank_end(app.store(), row);
    add(out, "state",
        end.how == store::RankEnd::How::running ? row.connected ? "running" : "not connected"
                                                : store::text_of(end));
    if (end.how != store::RankEnd::How::running) add(out, "last event", timestamp(end.at_ns, 1000));
    if (row.finished) add(out, "exit code", std::to_string(row.exit_code));
    add(out, "events", count(static_cast<double>(row.events)));
    add(out, "dropped", grouped(static_cast<std::int64_t>(row.dropped)));
    add(out, "lost messages", grouped(static_cast<std::int64_t>(row.lost_messages)));
    describe_unbegun(app.run->summary(), rank, out);
    add(out, "clock offset", duration(row.clock_offset_ns), "added to the rank's times");
    const ClockBound bound = clock_bound(app, rank);
    add(out, "clock residual", duration(bound.in_view_ns),
        "bound on the error of an aligned time: the largest in the range that is shown");
    add(out, "in the whole run", duration(bound.in_run_ns), "the largest clock residual of the run");
    add(out, "clock drift", parts_per_million(row.clock_drift),
        "what the offset grows by, microseconds per second, and a bound on its error; known after a second");
    out.reason = row.last_words;
  }
  describe_trace(app.store(), rank, out);
  for (const analysis::RankSummary& row : app.run->summary().ranks) {
    if (row.rank != rank) continue;
    const auto part = [&](std::int64_t ns) {
      return row.time.known() ? duration(ns) : Quantity{kMissing, ""};
    };
    add(out, "compute", part(row.time.compute_ns), "union of computation over the measured steps");
    add(out, "exposed comm", part(row.time.exposed_comm_ns), "|communication \\ compute|");
    if (const analysis::Checkpoints& made = row.checkpoints; made.saves > 0) {
      add(out, "checkpoints", duration(made.save_ns),
          std::to_string(made.saves) + " saved in the whole run, between steps");
    }
    add(out, "idle", part(row.time.idle_ns), "total - union of everything - unrecorded");
    if (row.time.unrecorded_ns > 0) {
      add(out, "unrecorded", duration(row.time.unrecorded_ns),
          "events are missing or were not emitted at the detail set; in no other part");
    }
    add(out, "overlap", percent(row.time.overlap_pct()), "100 (1 - exposed / |communication|)");
    add(out, "fetch wait", row.fetch_wait_ns ? duration(*row.fetch_wait_ns) : Quantity{kMissing, ""});
    if (row.data_wait_ns) {
      add(out, "data wait", duration(*row.data_wait_ns),
          "compute had nothing to do until the next micro-batch was loaded and on the device");
    }
    if (row.gpu) describe_gpu(*row.gpu, out);
  }
  return out;
}

}  // namespace

std::string status_text(const store::ParamState& state, bool persistent) {
  const auto status = static_cast<plan::ParamStatus>(ev::status_of(state.status));
  std::string text = word(status);
  if (persistent && status == plan::ParamStatus::available) text += ", persistent";
  if (ev::secondary_held(state.status)) text += ", secondary copy held";
  return text;
}

std::string idle_text(const AppState& app, store::LaneId lane, std::int64_t at_ns) {
  constexpr std::int64_t kLookAhead = 1'000'000'000;
  const store::Store& data = app.store();
  if (!analysis::gpu_known(data, lane.rank, at_ns, at_ns + 1)) return "No records of the GPU here";
  std::optional<store::Span> next;
  for (std::int64_t ahead = kLookAhead / 1024; !next && ahead <= kLookAhead; ahead *= 32) {
    data.for_each_span(lane, 0, at_ns, at_ns + ahead, [&](const store::Span& span) {
      if (!next && span.begin_ns > at_ns) next = span;
    });
  }
  if (!next) return {};
  const auto gap = analysis::gap_before(data, lane, *next);
  if (!gap || gap->at.begin > at_ns) return {};
  const std::string parts = analysis::gap_text(gap->parts, spelled);
  if (parts.empty()) return "Paused";
  return "Idle " + spelled(gap->at.end - gap->at.begin - gap->paused_ns) + ": " + parts;
}

Details describe_param(const AppState& app, std::uint32_t param, std::uint32_t rank, std::int64_t at_ns) {
  Details out;
  const store::Store& data = app.store();
  out.title = param_name(data, param);
  out.meaning = Meaning::compute;
  if (!data.has_tables() || param >= data.tables().params.size()) return out;
  const ev::RunTables& tables = data.tables();
  const ev::ParamInfo& info = tables.params[param];
  out.subtitle = shape_text(info.shape) + " " + info.dtype;
  add(out, "elements", grouped(info.elems));
  add(out, "size", bytes(info.elems * tables.param_bytes), "elements x bytes of one stored element");
  if (info.frozen) add(out, "training", "frozen: no gradient and no optimizer states");
  if (rank == ev::kNoId) rank = data.ranks().empty() ? 0 : data.ranks().front().rank;
  if (tables.stage == 3) {
    add(out, "shard per rank", grouped(info.shard_elems));
    if (info.padding_elems > 0) add(out, "padding", grouped(info.padding_elems));
  }
  const store::ParamState state = data.param_state(rank, param, at_ns);
  add(out, "status on rank " + std::to_string(rank), status_text(state, info.persistent));
  add(out, "since", duration(at_ns - state.since_ns));
  std::string users;
  for (const std::uint32_t module : info.modules)
    users += (users.empty() ? "" : ", ") + module_name(data, module);
  out.fields.push_back({"used by", users, "", ""});
  out.reason =
      reason_of(data, ev::status_code(state.status, state.cause), state.module, std::span(&param, 1));
  if (state.cause == ev::StatusCause::invalidation) {
    const auto invalidation = analysis::invalidation_before(data, rank, state.since_ns);
    if (invalidation) out.reason += ": " + analysis::cause_text(data, *invalidation);
  }
  const auto history = data.status_history(rank, param, at_ns, kHistoryRows);
  out.history_title = "Latest changes";
  for (auto change = history.rbegin(); change != history.rend(); ++change) {
    out.history.push_back({change->at_ns, word(static_cast<plan::ParamStatus>(change->state.status)),
                           word(change->state.cause)});
  }
  return out;
}

Details describe_span(const AppState& app, store::LaneId lane, const store::Span& span) {
  Details out;
  const store::Store& data = app.store();
  out.meaning = meaning_on(lane.stream, span.kind, span.code);
  out.title = span_label(data, lane.rank, span);
  out.subtitle = "rank " + std::to_string(lane.rank) + ", " + word(lane.stream);
  add_span_times(app, lane.rank, span, out);
  switch (span.kind) {
    case ev::EventKind::module_begin:
      out.subtitle += std::string(", ") + word(static_cast<ev::Pass>(span.code));
      break;
    case ev::EventKind::collective_begin:
      describe_collective(app, lane, span, out);
      break;
    case ev::EventKind::fetch_wait_begin: {
      add(out, "bytes", bytes(span.v0));
      const Fetch* fetch = app.run->index().fetch_by_id(lane.rank, span.b);
      const std::string contents =
          fetch == nullptr ? std::string() : store::contents_text(data, fetch->params);
      out.reason = "Compute stood still at " + module_name(data, span.a) + " until gather " +
                   std::to_string(span.b) + (contents.empty() ? "" : " of " + contents) + " had arrived";
      if (fetch != nullptr) add(out, "outcome", word(fetch->outcome()));
      break;
    }
    case ev::EventKind::reduce_wait_begin:
      add(out, "bytes", bytes(span.v0));
      out.reason = "Compute stood still until bucket " + std::to_string(span.a) + " was reduced";
      break;
    case ev::EventKind::deferred_wait_begin:
      add(out, "elements", grouped(span.v0));
      out.reason = "Compute stood still until the CPU's update of the columns not chosen was here";
      break;
    case ev::EventKind::data_wait_begin:
      out.reason = "Compute had nothing to do until micro-batch " + std::to_string(span.a) +
                   " was loaded and copied to the device";
      break;
    case ev::EventKind::optimizer_begin:
      add(out, "elements", grouped(span.v0));
      break;
    case ev::EventKind::transfer_begin:
      add(out, "bytes", bytes(span.v0));
      break;
    case ev::EventKind::gpu_begin:
      describe_gpu_work(app, lane, span, out);
      break;
    case ev::EventKind::gpu_sync_begin:
      out.reason = std::string("The host stood still until ") + word(static_cast<ev::GpuSync>(span.code)) +
                   " was done";
      break;
    default:
      break;
  }
  return out;
}

Details describe_selection(const AppState& app) {
  const Selection& selection = app.selection;
  switch (selection.kind) {
    case SelectionKind::none:
      return {};
    case SelectionKind::param:
      return describe_param(app, selection.param, selection.rank, app.now_ns());
    case SelectionKind::rank:
      return describe_rank(app, selection.rank);
    case SelectionKind::step:
      return describe_step(app, selection.step);
    case SelectionKind::module: {
      Details out;
      out.meaning = Meaning::compute;
      out.title = module_name(app.store(), selection.module);
      describe_module(app, selection.module, out);
      if (selection.span) add_span_times(app, selection.rank, *selection.span, out);
      module_history(app, selection.rank == ev::kNoId ? app.stepper_rank : selection.rank, selection.module,
                     out);
      return out;
    }
    case SelectionKind::collective:
    case SelectionKind::wait:
    case SelectionKind::span: {
      if (!selection.span) return {};
      Details out = describe_span(app, selection.lane, *selection.span);
      const Fetch* fetch = selection.gather == ev::kNoId
                               ? nullptr
                               : app.run->index().fetch_by_id(selection.rank, selection.gather);
      std::vector<std::uint32_t> params;
      if (fetch != nullptr) {
        params = fetch->params;
      } else if (selection.kind == SelectionKind::collective) {
        const auto parts = app.run->index().parts(selection.rank, selection.collective);
        params.assign(parts.begin(), parts.end());
      }
      if (!params.empty()) out.history_title = "Parameters (" + std::to_string(params.size()) + ")";
      for (std::size_t i = 0; i < std::min(params.size(), kHistoryRows); ++i) {
        out.history.push_back(
            {std::nullopt, param_name(app.store(), params[i]),
             app.store().has_tables() && params[i] < app.store().tables().params.size()
                 ? count(static_cast<double>(app.store().tables().params[params[i]].elems)).text()
                 : "",
             params[i]});
      }
      return out;
    }
  }
  return {};
}

}  // namespace shardscope::gui
