#include "app/analysis/compared_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "app/analysis/digest.h"
#include "app/analysis/memory.h"
#include "app/analysis/paired_steps.h"
#include "app/analysis/spans.h"
#include "app/analysis/statistics.h"
#include "app/store/lane.h"
#include "app/store/module_name.h"
#include "app/store/span_label.h"
#include "instrumentation/event_fields.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::analysis {
namespace {

using ev::EventKind;

/// Name, figure and unit of a row.
using RowKey = std::tuple<std::string, std::string, std::string>;
using RowValues = std::map<RowKey, ValuesByStep>;

/// The measured steps of a run, or the latest of them within a range.
struct Measured {
  const Digest* digest = nullptr;
  std::size_t most_steps = SIZE_MAX;
  StepBounds within;
  std::size_t most_ranks = SIZE_MAX;
  std::optional<std::uint32_t> only;
  /// The ranks over which a step's figures are averaged.
  [[nodiscard]] std::span<const RankStep> ranks_of(const StepDigest& step) const {
    const std::span<const RankStep> ranks(step.ranks);
    if (!only) return ranks.first(std::min(most_ranks, ranks.size()));
    const auto at = std::ranges::lower_bound(ranks, *only, {}, &RankStep::rank);
    const bool there = at != ranks.end() && at->rank == *only;
    return there ? ranks.subspan(static_cast<std::size_t>(at - ranks.begin()), 1) : ranks.first(0);
  }
};

template <typename Visit>
void for_each_measured(const Measured& measured, Visit visit) {
  const Digest& digest = *measured.digest;
  const auto index_of = [&](auto step) { return static_cast<std::size_t>(step - digest.steps().begin()); };
  const std::size_t begin =
      index_of(std::ranges::lower_bound(digest.steps(), measured.within.first, {}, &StepDigest::step));
  const std::size_t count =
      index_of(std::ranges::upper_bound(digest.steps(), measured.within.last, {}, &StepDigest::step));
  const std::size_t latest = count - std::min(count, measured.most_steps);
  for (std::size_t i = std::max({digest.first_measured(), latest, begin}); i < count; ++i) {
    if (!digest.steps()[i].ranks.empty()) visit(digest.steps()[i]);
  }
}

RowValues rank_rows(const Measured& digest) {
  constexpr std::array kParts{std::pair{"computation", &TimePartition::compute_ns},
                              std::pair{"exposed communication", &TimePartition::exposed_comm_ns},
                              std::pair{"idle", &TimePartition::idle_ns}};
  RowValues out;
  for_each_measured(digest, [&](const StepDigest& step) {
    for (const RankStep& rank : step.ranks) {
      if (!rank.time.known() || rank.time.unrecorded_ns > 0) continue;
      for (const auto& [figure, part] : kParts)
        out[{fmt::format("rank {}", rank.rank), figure, "ms"}][step.step] =
            static_cast<double>(rank.time.*part) * 1e-6;
    }
  });
  return out;
}

RowValues collective_rows(const Measured& digest) {
  RowValues out;
  for_each_measured(digest, [&](const StepDigest& step) {
    for (const auto& [op, totals] : step.ops) {
      const std::string name = ev::label_of(op);
      out[{name, "time, with waiting", "ms"}][step.step] = totals.waiting_ns * 1e-6;
      out[{name, "bytes", "MiB"}][step.step] = static_cast<double>(totals.bytes) / (1024.0 * 1024.0);
      out[{name, "operations", ""}][step.step] = static_cast<double>(totals.count);
    }
  });
  return out;
}

/// A module that does not run in a step takes no time in it: 0.
void fill_up(RowValues& rows, const std::set<std::uint32_t>& steps) {
  for (auto& [key, values] : rows) {
    for (const std::uint32_t step : steps) values.try_emplace(step, 0);
  }
}

RowValues module_rows(const store::Store& store, const Measured& digest) {
  RowValues out;
  std::set<std::uint32_t> steps;
  for_each_measured(digest, [&](const StepDigest& step) {
    steps.insert(step.step);
    const double part = 1 / static_cast<double>(std::max<std::size_t>(1, digest.ranks_of(step).size()));
    for (const RankStep& rank : digest.ranks_of(step)) {
      for_each_span(
          store, {rank.rank, ev::StreamId::compute}, rank.begin_ns, rank.end_ns,
          [&](const store::Span& span) {
            if (span.kind != EventKind::module_begin || span.end_ns == store::kOpen ||
                span.begin_ns < rank.begin_ns || span.begin_ns >= rank.end_ns)
              return;
            const auto fields = ev::as<EventKind::module_begin>(span);
            out[{store::module_name(store, fields.module), ev::label_of(fields.pass), "ms"}][step.step] +=
                part * static_cast<double>(span.end_ns - span.begin_ns) * 1e-6;
          });
    }
  });
  fill_up(out, steps);
  return out;
}

/// Kernels on the GPU streams where these were recorded in the run, else on the hosts. Only steps that have
/// any: the others were recorded at a lower level of detail.
RowValues kernel_rows(const store::Store& store, const Measured& digest) {
  RowValues gpu, host;
  std::set<std::uint32_t> gpu_steps, host_steps;
  const auto add_rank = [&](const StepDigest& step, const RankStep& rank) {
    const double part = 1 / static_cast<double>(std::max<std::size_t>(1, digest.ranks_of(step).size()));
    const auto add = [&](const store::Span& span, std::uint32_t number, bool on_gpu) {
      if (span.end_ns == store::kOpen || span.begin_ns < rank.begin_ns || span.begin_ns >= rank.end_ns)
        return;
      RowValues& out = on_gpu ? gpu : host;
      (on_gpu ? gpu_steps : host_steps).insert(step.step);
      std::string name = store.name(rank.rank, number);
      if (name.empty()) name = fmt::format("kernel {}", number);
      out[{name, "time", "ms"}][step.step] += part * static_cast<double>(span.end_ns - span.begin_ns) * 1e-6;
      out[{name, "launches", ""}][step.step] += part;
    };
    for (auto at = static_cast<std::uint8_t>(ev::StreamId::gpu_compute);
         ev::is_gpu_stream(static_cast<ev::StreamId>(at)); ++at) {
      const auto lane = static_cast<ev::StreamId>(at);
      for_each_span(store, {rank.rank, lane}, rank.begin_ns, rank.end_ns, [&](const store::Span& span) {
        if (span.kind != EventKind::gpu_begin) return;
        const auto fields = ev::as<EventKind::gpu_begin>(span);
        if (fields.work == ev::GpuWork::kernel) add(span, fields.name, true);
      });
    }
    for_each_span(store, {rank.rank, ev::StreamId::compute}, rank.begin_ns, rank.end_ns,
                  [&](const store::Span& span) {
                    if (span.kind == EventKind::kernel_begin)
                      add(span, ev::as<EventKind::kernel_begin>(span).name, false);
                  });
  };
  for_each_measured(digest, [&](const StepDigest& step) {
    for (const RankStep& rank : digest.ranks_of(step)) add_rank(step, rank);
  });
  fill_up(gpu, gpu_steps);
  fill_up(host, host_steps);
  return gpu.empty() ? host : gpu;
}

/// Waits of computation: those for parameters by module, the others by kind, whose names have numbers.
RowValues wait_rows(const store::Store& store, const Measured& digest) {
  RowValues out;
  std::set<std::uint32_t> steps;
  const auto add_rank = [&](const StepDigest& step, const RankStep& rank) {
    const double part = 1 / static_cast<double>(std::max<std::size_t>(1, digest.ranks_of(step).size()));
    for_each_span(store, {rank.rank, ev::StreamId::compute}, rank.begin_ns, rank.end_ns,
                  [&](const store::Span& span) {
                    if (!store::is_wait(span.kind) || span.end_ns == store::kOpen ||
                        span.begin_ns < rank.begin_ns || span.begin_ns >= rank.end_ns)
                      return;
                    const std::string name = span.kind == EventKind::fetch_wait_begin
                                                 ? store::label_of(store, rank.rank, span)
                                                 : store::kind_label(store, span.kind);
                    out[{name, "time", "ms"}][step.step] +=
                        part * static_cast<double>(span.end_ns - span.begin_ns) * 1e-6;
                    out[{name, "waits", ""}][step.step] += part;
                  });
  };
  for_each_measured(digest, [&](const StepDigest& step) {
    steps.insert(step.step);
    for (const RankStep& rank : digest.ranks_of(step)) add_rank(step, rank);
  });
  fill_up(out, steps);
  return out;
}

std::string param_name(const store::Store& store, std::uint32_t param) {
  const auto& params = store.tables().params;
  return param < params.size() ? params[param].name : fmt::format("parameter {}", param);
}

/// Time for which a parameter was gathered on a rank, and its number of gathers.
RowValues parameter_rows(const store::Store& store, const Measured& digest) {
  RowValues out;
  std::set<std::uint32_t> steps;
  const auto add_rank = [&](const StepDigest& step, const RankStep& rank) {
    const double part = 1 / static_cast<double>(std::max<std::size_t>(1, digest.ranks_of(step).size()));
    std::map<std::uint32_t, std::int64_t> since;
    const auto whole = [&](std::uint32_t param, std::int64_t from_ns, std::int64_t to_ns) {
      out[{param_name(store, param), "whole on a rank", "ms"}][step.step] +=
          part * static_cast<double>(to_ns - from_ns) * 1e-6;
    };
    store.for_each_instant(rank.rank, rank.begin_ns, rank.end_ns, [&](const ev::Event& event) {
      if (event.kind != EventKind::param_status) return;
      const auto fields = ev::as<EventKind::param_status>(event);
      const auto at_ns = static_cast<std::int64_t>(event.ticks);
      const auto held = since.find(fields.param);
      if (fields.status.status() == plan::ParamStatus::in_flight)
        out[{param_name(store, fields.param), "gathers", ""}][step.step] += part;
      if (fields.status.status() == plan::ParamStatus::available) {
        since.try_emplace(fields.param, at_ns);
      } else if (held != since.end()) {
        whole(fields.param, held->second, at_ns);
        since.erase(held);
      }
    });
    for (const auto& [param, from_ns] : since) whole(param, from_ns, rank.end_ns);
  };
  for_each_measured(digest, [&](const StepDigest& step) {
    steps.insert(step.step);
    for (const RankStep& rank : digest.ranks_of(step)) add_rank(step, rank);
  });
  fill_up(out, steps);
  return out;
}

RowValues values_of(const Run& run, CompareBy by, std::size_t most_steps, StepBounds within,
                    std::size_t most_ranks, std::optional<std::uint32_t> only) {
  const Digest made = run.digest == nullptr ? digest_of(*run.store) : Digest();
  const Measured digest{run.digest != nullptr ? run.digest : &made, most_steps, within, most_ranks, only};
  switch (by) {
    case CompareBy::module:
      return module_rows(*run.store, digest);
    case CompareBy::kernel:
      return kernel_rows(*run.store, digest);
    case CompareBy::wait:
      return wait_rows(*run.store, digest);
    case CompareBy::collective:
      return collective_rows(digest);
    case CompareBy::parameter:
      return parameter_rows(*run.store, digest);
    case CompareBy::rank:
      return rank_rows(digest);
    case CompareBy::memory:
      break;
  }
  return {};
}

ComparedRows by_memory(const Run& a, const Run& b) {
  ComparedRows out{
      .rows = {}, .confidence = 0, .note = "Device memory at the peak of the rank that held most."};
  const auto peak_a = largest_device_peak(*a.summary), peak_b = largest_device_peak(*b.summary);
  if (!peak_a || !peak_b) {
    out.note = "Memory was not recorded in both runs.";
    return out;
  }
  const store::MemorySample *of_a = peak_a->sample, *of_b = peak_b->sample;
  constexpr double kMib = 1024.0 * 1024.0;
  for (std::size_t i = 0; i < of_a->bytes.size(); ++i) {
    if (of_a->bytes[i] == 0 && of_b->bytes[i] == 0) continue;
    out.rows.push_back({ev::label_of(static_cast<ev::MemoryCategory>(i)), "at the peak", "MiB",
                        static_cast<double>(of_a->bytes[i]) / kMib,
                        static_cast<double>(of_b->bytes[i]) / kMib, std::nullopt});
  }
  return out;
}

const char* note_of(CompareBy by) {
  switch (by) {
    case CompareBy::module:
      return "Time in each module in a step, with what is inside it. Mean over ranks.";
    case CompareBy::kernel:
      return "Time and launches of each kernel in a step. Mean over ranks.";
    case CompareBy::wait:
      return "What computation waits for in a step: time and number of waits. Mean over ranks.";
    case CompareBy::collective:
      return "Collectives of a step: bytes and number of the lowest rank, times the mean over the ranks.";
    case CompareBy::parameter:
      return "How long each parameter was whole on a rank in a step, and how often it was gathered. Mean "
             "over "
             "ranks.";
    case CompareBy::rank:
      return "Where each rank's time of a step goes.";
    case CompareBy::memory:
      break;
  }
  return "";
}

std::optional<double> middle(const RowValues& rows, const RowKey& key) {
  const auto found = rows.find(key);
  if (found == rows.end() || found->second.empty()) return std::nullopt;
  std::vector<double> values;
  for (const auto& [step, value] : found->second) values.push_back(value);
  return quantile(std::move(values), 0.5);
}

}  // namespace

ComparedRows compare_by(const Run& a, const Run& b, CompareBy by, std::size_t most_steps,
                        std::size_t most_ranks, Confidence of, std::optional<std::uint32_t> only,
                        StepBounds within) {
  ComparedRows out;
  if (by == CompareBy::memory) {
    out = by_memory(a, b);
  } else {
    // For runs of different length use the latest steps that both have: intervals are of pairs of steps.
    for (const Run* run : {&a, &b})
      if (most_steps != SIZE_MAX && run->digest != nullptr && !run->digest->steps().empty())
        within.last = std::min(within.last, run->digest->steps().back().step);
    const RowValues of_a = values_of(a, by, most_steps, within, most_ranks, only),
                    of_b = values_of(b, by, most_steps, within, most_ranks, only);
    std::set<RowKey> keys;
    for (const auto& [key, values] : of_a) keys.insert(key);
    for (const auto& [key, values] : of_b) keys.insert(key);
    constexpr double kConfidence = 0.95;
    const std::size_t shared_by = of == Confidence::all_rows ? std::max<std::size_t>(keys.size(), 1) : 1;
    out.confidence = 1 - (1 - kConfidence) / static_cast<double>(shared_by);
    for (const RowKey& key : keys) {
      const auto& [name, figure, unit] = key;
      ComparedRow row{name, figure, unit, middle(of_a, key), middle(of_b, key), std::nullopt};
      if (row.a) row.in_a = of_a.at(key);
      if (row.b) row.in_b = of_b.at(key);
      if (row.a && row.b) row.interval = paired_steps({row.in_a}, {row.in_b}, out.confidence).interval;
      out.rows.push_back(std::move(row));
    }
    out.note = keys.empty()
                   ? fmt::format("Neither run recorded what this table is made of; record with --detail {}.",
                                 by == CompareBy::kernel ? "kernels"
                                 : by == CompareBy::wait ? "modules"
                                                         : "params")
                   : note_of(by);
  }
  // Times before other units; within a unit the largest change first.
  std::ranges::stable_sort(out.rows, [](const ComparedRow& x, const ComparedRow& y) {
    if (x.unit != y.unit) return x.unit == "ms" || (y.unit != "ms" && x.unit > y.unit);
    return std::abs(x.change()) > std::abs(y.change());
  });
  return out;
}

}  // namespace shardscope::analysis
