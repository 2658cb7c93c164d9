// Details of a rank, and of a step.
#include <algorithm>

#include "app/analysis/decision_text.h"
#include "app/analysis/gpu_activity.h"
#include "app/analysis/micro_batches.h"
#include "app/analysis/quantity_text.h"
#include "app/gui/model/clock_bound.h"
#include "app/gui/model/details.h"
#include "app/gui/model/details_fields.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/store/losses.h"
#include "app/store/rank_end.h"
#include "app/store/span_time.h"

namespace shardscope::gui {
namespace {

Quantity parts_per_million(const std::optional<store::ClockDrift>& drift) {
  return drift ? Quantity{analysis::ppm_text(*drift), "ppm"} : Quantity{kMissing, {}};
}

/// Busy time of GPU streams over the measured steps with GPU records.
void describe_gpu(const analysis::GpuActivity& gpu, Details& out) {
  for (const auto& [stream, total] : gpu.streams) {
    add(out, std::string(word(stream)) + " busy", duration(total.busy_ns),
        "union of its kernels and copies over " + std::to_string(gpu.steps) + " steps");
    const std::string idle = analysis::gap_text(total.idle_ns, analysis::time_text);
    if (!idle.empty()) add(out, std::string(word(stream)) + " idle", idle);
  }
  if (gpu.clock_residual_ns)
    add(out, "GPU clock residual", duration(*gpu.clock_residual_ns),
        "bound on the error of a converted time");
  const std::uint64_t missing = gpu.dropped + gpu.not_placed;
  if (missing > 0) add(out, "GPU records missing", grouped(static_cast<std::int64_t>(missing)));
}

/// Sizes of micro-batches, if they differ.
void describe_micro_batches(const analysis::MicroBatchSums& sums, Details& out) {
  if (!sums.vary()) return;
  add(out, "micro-batches", analysis::text_of(sums), "fewest and most, padding included");
  add(out, "padding", percent(sums.padding_pct()),
      grouped(sums.padding) + " of " + grouped(sums.positions()) + " positions are padding");
}

/// How often the trace was invalidated, and the first reason.
void describe_trace(const store::Store& data, std::uint32_t rank, Details& out) {
  const std::uint64_t times = data.instant_count(rank, ev::EventKind::trace_invalidated);
  const auto first = times > 0 ? data.first_instant(rank, ev::EventKind::trace_invalidated) : std::nullopt;
  if (!first) return;
  const analysis::TraceInvalidation why = analysis::read_invalidation(rank, *first);
  add(out, "trace invalidated", times == 1 ? "once" : std::to_string(times) + " times");
  add(out, "first at", timestamp(why.at_ns, 1000));
  add(out, "cause", analysis::explain(data, why));
}

/// Unmatched span ends, by kind.
void describe_unmatched_ends(const analysis::Summary& summary, std::uint32_t rank, Details& out) {
  for (const store::Store::UnmatchedEnds& row : summary.unmatched_ends) {
    if (row.rank != rank) continue;
    add(out, std::string(ev::name_of(row.kind)) + " unmatched", grouped(static_cast<std::int64_t>(row.count)),
        store::unmatched_ends_text(row.count, row.explained));
  }
}

}  // namespace

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
  if (row->eval_loss == row->eval_loss)
    add(out, "held-out loss", decimal(row->eval_loss, 4),
        "mean over the batches of all ranks, evaluated after this step");
  add(out, "gradient norm", decimal(row->grad_norm, 4));
  if (row->clip_factor == row->clip_factor)
    add(out, "clip factor", decimal(row->clip_factor, 4),
        "min(1, gradient_clipping / (gradient norm + 1e-6)); 1: not clipped");
  if (row->loss_scale == row->loss_scale) add(out, "loss scale", decimal(row->loss_scale, 0));
  add(out, "tokens", grouped(row->tokens), "of all ranks, without padding");
  const StepTimes* times = app.run->step_times(step);
  if (times == nullptr) return out;
  describe_micro_batches(times->micro_batches, out);
  out.history_title = "Exposed communication by rank";
  const auto of_step = [](const analysis::TimePartition& time) {
    return time.known() ? duration(time.exposed_comm_ns) : Quantity{kMissing, ""};
  };
  for (const StepTimes::Rank& rank : times->ranks)
    out.history.push_back({std::nullopt, "rank " + std::to_string(rank.rank), of_step(rank.time).text()});
  return out;
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
    describe_unmatched_ends(app.run->summary(), rank, out);
    add(out, "clock offset", duration(row.clock_offset_ns), "added to the rank's times");
    const ClockBound bound = clock_bound(app, rank);
    add(out, "clock residual", duration(bound.in_view_ns),
        "bound on the error of an aligned time: the largest in the range that is shown");
    add(out, "in the whole run", duration(bound.in_run_ns), "the largest clock residual of the run");
    add(out, "clock drift", parts_per_million(row.clock_drift),
        "growth of the offset in microseconds per second, and a bound on its error; known after a second");
    out.reason = row.exit_message;
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
    if (const analysis::Evaluations& made = row.evaluations; made.count > 0) {
      add(out, "evaluations", duration(made.ns),
          std::to_string(made.count) + " in the whole run, between steps: in no step time");
    }
    add(out, "idle", part(row.time.idle_ns), "total - union of everything - unrecorded");
    if (row.time.unrecorded_ns > 0) {
      add(out, "unrecorded", duration(row.time.unrecorded_ns),
          "events are missing or not recorded at this detail; in no other part");
    }
    add(out, "overlap", percent(row.time.overlap_pct()), "100 (1 - exposed / |communication|)");
    if (row.micro_batches) {
      add(out, "tokens", grouped(row.micro_batches->tokens),
          "of this rank in the completed steps, without padding");
      describe_micro_batches(*row.micro_batches, out);
    }
    add(out, "fetch wait", row.fetch_wait_ns ? duration(*row.fetch_wait_ns) : Quantity{kMissing, ""});
    if (row.data_wait_ns) {
      add(out, "data wait", duration(*row.data_wait_ns),
          "compute had nothing to do until the next micro-batch was loaded and on the device");
    }
    if (row.gpu) describe_gpu(*row.gpu, out);
  }
  return out;
}

}  // namespace shardscope::gui
