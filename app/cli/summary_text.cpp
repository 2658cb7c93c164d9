#include "app/cli/summary_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/analysis/advice.h"
#include "app/analysis/efficiency.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/framework_json.h"
#include "app/analysis/hang/module_order.h"
#include "app/analysis/memory.h"
#include "app/analysis/missing_reason.h"
#include "app/analysis/outside_memory.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/why_late.h"
#include "app/analysis/zero_settings.h"
#include "app/cli/say.h"
#include "app/store/losses.h"
#include "app/store/names.h"

namespace shardscope::cli {
namespace {

double mib(std::int64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }
/// Difference to an expected value: "+1.25 MiB".
std::string more(std::int64_t bytes) { return (bytes > 0 ? "+" : "") + analysis::bytes_text(bytes); }
double ms(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

std::string or_dash(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : std::string("—");
}

std::string us_text(std::int64_t ns) { return fmt::format("{:.1f} µs", static_cast<double>(ns) * 1e-3); }

/// Errors of each rank's times on the collector's clock.
std::string clocks_text(const analysis::Summary& s) {
  std::string text =
      fmt::format("\n{:<5} {:>14} {:>12} {:>18}\n", "rank", "clock offset", "residual", "clock drift");
  for (const analysis::RankSummary& rank : s.ranks) {
    text += fmt::format("{:<5} {:>14} {:>12} {:>18}\n", rank.rank, analysis::time_text(rank.clock_offset_ns),
                        "±" + analysis::time_text(rank.clock_residual_ns),
                        rank.clock_drift ? analysis::ppm_text(*rank.clock_drift) + " ppm" : "—");
  }
  return text;
}

/// The GPU's streams by rank, and why they were idle.
std::string gpu_text(const analysis::Summary& s) {
  const bool any = std::any_of(s.ranks.begin(), s.ranks.end(), [](const auto& rank) { return rank.gpu; });
  if (!any) return {};
  std::string text = fmt::format("\n{:<5} {:<12} {:>8} {:>8} {:>10} {:>20} {:>24}  {}\n", "rank", "stream",
                                 "kernels", "copies", "busy ms", "launch to start", "(least, most)", "idle");
  for (const analysis::RankSummary& rank : s.ranks) {
    if (!rank.gpu) {
      text += fmt::format("{:<5} no step is covered by the GPU's records\n", rank.rank);
      continue;
    }
    for (const auto& [lane, stream] : rank.gpu->streams) {
      const bool timed = stream.launches > 0;
      text += fmt::format(
          "{:<5} {:<12} {:>8} {:>8} {:>10.2f} {:>20} {:>24}  {}\n", rank.rank, store::name_of(lane),
          stream.kernels, stream.copies, ms(stream.busy_ns),
          timed ? us_text(stream.delay_sum_ns / static_cast<std::int64_t>(stream.launches)) + " mean" : "—",
          timed ? us_text(stream.delay_min_ns) + ", " + us_text(stream.delay_max_ns) : "",
          analysis::gap_text(stream.idle_ns,
                             [](std::int64_t ns) { return fmt::format("{:.2f} ms", ms(ns)); }));
    }
    if (rank.gpu->clock_residual_ns) {
      text += fmt::format("{:<5} times of the GPU are right to {} on the rank's clock\n", rank.rank,
                          fmt::format("{:.2f} µs", static_cast<double>(*rank.gpu->clock_residual_ns) * 1e-3));
    }
    if (rank.gpu->dropped + rank.gpu->not_placed + rank.gpu->no_launch > 0) {
      text += fmt::format(
          "{:<5} {} records dropped by CUPTI, {} fitted in no lane (waits of several threads at once among "
          "them), {} without their launch\n",
          rank.rank, rank.gpu->dropped, rank.gpu->not_placed, rank.gpu->no_launch);
    }
  }
  return text;
}

/// DeepSpeed's eight counters, by rank.
std::string fetch_counters_text(const analysis::Summary& s) {
  if (s.stage != 3 || !analysis::has_fetch_trace(s.kind)) return {};
  constexpr std::size_t kPerDirection = plan::kFetchCounters / 2;
  std::string text =
      fmt::format("\n{:<5} {:<9} {:>11} {:>20} {:>20} {:>20} {:>20}\n", "rank", "fetches", "micro-steps",
                  "fetch_submit", "fetch_wait", "prefetch_submit", "all_gather");
  bool any = false;
  for (const analysis::RankSummary& rank : s.ranks) {
    if (!rank.fetch_counters) continue;
    any = true;
    for (std::size_t direction = 0; direction < 2; ++direction) {
      text += fmt::format("{:<5} {:<9} {:>11}", rank.rank, direction == 0 ? "forward" : "backward",
                          rank.fetch_counters->micro_steps);
      for (std::size_t i = 0; i < kPerDirection; ++i) {
        const plan::FetchCount& counter = rank.fetch_counters->total[direction * kPerDirection + i];
        text += fmt::format(" {:>20}", fmt::format("{} / {}", counter.count, counter.elems));
      }
      text += '\n';
    }
  }
  if (!any) return "\nfetch counters not recorded\n";
  return text +
         "count / elements; fetch_submit and fetch_wait in elements of one rank's shards with padding,\n"
         "prefetch_submit and all_gather in elements of whole parameters, as DeepSpeed counts them\n";
}

/// Which rank waits for which: a small table where ranks are few, else the largest pairs.
std::string waited_pairs_text(const analysis::Summary& s) {
  constexpr std::size_t kTable = 8, kShown = 8;
  double total = 0;
  for (const analysis::RankSummary& rank : s.ranks) total = std::max(total, ms(rank.time.total_ns));
  if (s.waited_pairs.empty() || ms(s.waited_pairs.front().ns) < 0.01 * total) return {};
  std::string text;
  if (s.ranks.size() > kTable) {
    for (std::size_t i = 0; i < std::min(kShown, s.waited_pairs.size()); ++i) {
      const analysis::WaitedPair& pair = s.waited_pairs[i];
      text += fmt::format("{:<14} rank {} waited {}{:.1f} ms in total for rank {}\n", i == 0 ? "by pair" : "",
                          pair.waiter, s.waited_pairs_whole ? "" : "at least ", ms(pair.ns), pair.late);
    }
    return text;
  }
  text = fmt::format("{:<14} total ms that the rank of a row waited for the rank of a column\n{:<14}",
                     "by pair", "");
  for (const analysis::RankSummary& late : s.ranks) text += fmt::format(" {:>9}", late.rank);
  for (const analysis::RankSummary& waiter : s.ranks) {
    text += fmt::format("\n{:>14}", waiter.rank);
    for (const analysis::RankSummary& late : s.ranks) {
      const auto pair = std::ranges::find_if(s.waited_pairs, [&](const analysis::WaitedPair& one) {
        return one.waiter == waiter.rank && one.late == late.rank;
      });
      text += pair == s.waited_pairs.end() ? fmt::format(" {:>9}", waiter.rank == late.rank ? "" : "-")
                                           : fmt::format(" {:>9.1f}", ms(pair->ns));
    }
  }
  return text + '\n';
}

/// The slowest links first; empty with a single group.
std::string links_text(const analysis::Summary& s) {
  constexpr std::size_t kShown = 16;
  const auto other = [&](const analysis::GroupLink& link) { return link.ranks != s.links.front().ranks; };
  if (std::ranges::none_of(s.links, other)) return {};
  std::string text = fmt::format("\n{:<15} {:>8} {:>14} {:>11} {:>17}  {}\n", "link", "count", "MiB",
                                 "busbw GB/s", "95 %", "group");
  for (std::size_t i = 0; i < std::min(kShown, s.links.size()); ++i) {
    const analysis::GroupLink& link = s.links[i];
    const std::string range =
        link.interval ? fmt::format("{:.3f} to {:.3f}", link.interval->low, link.interval->high) : "—";
    text += fmt::format("{:<15} {:>8} {:>14.2f} {:>11} {:>17}  {}{}\n", store::name_of(link.op), link.count,
                        mib(link.bytes), or_dash(link.busbw_gbs, "{:.3f}"), range,
                        analysis::ranks_text(link.ranks),
                        link.no_interval.empty() ? "" : "; no interval: " + link.no_interval);
  }
  if (s.links.size() > kShown)
    text += fmt::format("{} more: summary --json has all\n", s.links.size() - kShown);
  return text + "slowest first; median of the latest measured steps, and its interval by blocks of steps\n";
}

std::string prefetch_text(const analysis::Prefetch& prefetch) {
  return fmt::format(
      "{} early, {} just in time, {} late ({:.2f} ms waited), {} mistargeted, {} unused (all ranks)",
      prefetch.early, prefetch.just_in_time, prefetch.late, ms(prefetch.late_wait_ns), prefetch.mistargeted,
      prefetch.unused);
}

}  // namespace

std::string loss_text(const std::vector<double>& values) {
  const auto finite = [](double value) { return std::isfinite(value); };
  const auto last = std::find_if(values.rbegin(), values.rend(), finite);
  if (last == values.rend()) return "—";
  return (finite(values.front()) ? fmt::format("{:.4f}", values.front()) : std::string("—")) +
         fmt::format(" -> {:.4f}", *last);
}

std::string shed_text(std::uint64_t events, const std::string& upstream) {
  return fmt::format("{} events were not passed on to {}: it was not reached, or takes them in too slowly",
                     events, upstream);
}

std::string closing_text(const store::Store& store, std::uint64_t events, const std::string& record) {
  std::vector<double> losses;
  for (const store::StepRow& row : store.steps())
    if (row.end_ns != store::kOpen) losses.push_back(row.loss);
  return fmt::format(
      "{} events of {} ranks, {}{}{}", events, store.ranks().size(), store::text_of(store::losses_of(store)),
      losses.empty() ? "" : ", loss " + loss_text(losses),
      record.empty() ? "" : "; recorded to " + record + "; next: shardscope summary " + record);
}

std::string summary_text(const analysis::Summary& s) {
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += plain_format("{:<14} {}\n", name, value);
  };
  using instrumentation::Capability;
  const auto missing_reason = [&s](const char* what, instrumentation::Detail from, Capability capability) {
    return analysis::missing_reason(s, what, from, capability);
  };
  const auto over = [&](std::uint32_t steps, std::uint32_t all) {
    const std::string covered = analysis::coverage(s, steps, all);
    if (!covered.empty()) line("", covered);
  };
  // A recording without ranks has no figures and no run.
  if (s.world == 0 && s.events == 0 && s.ranks.empty() && !s.problems.empty()) {
    line("events", "0");
    for (const std::string& problem : s.problems) line("problem", problem);
    return text;
  }
  line("run", fmt::format("{}, {}, {} ranks{}, {} parameters, {}{}", s.model,
                          analysis::partitioning_name(s.kind, s.stage), s.world,
                          analysis::copies_text(s.world, s.copy_ranks), s.params, s.device,
                          s.simulated ? ", simulated" : ""));
  if (!s.framework.empty()) line("framework", s.framework);
  for (const analysis::ParamGroupRow& row : s.param_groups) {
    const instrumentation::ParamGroupInfo& group = row.settings;
    line("param group",
         fmt::format("{}: {} parameters, {} elements{}; lr {}, betas {}, {}, eps {}, weight decay {}",
                     group.name, group.params.size(), row.elems,
                     row.padding_elems ? fmt::format(" + {} padding", *row.padding_elems) : "", group.lr,
                     group.beta1, group.beta2, group.eps, group.weight_decay));
  }
  for (const instrumentation::NotRecorded& lack : s.not_recorded)
    line("not recorded", analysis::lack_text(lack));
  if (s.link_gbps > 0)
    line("link", fmt::format("emulated: {} Gbit/s, {} µs", s.link_gbps, s.link_latency_us));
  line("events", fmt::format("{}, {}", s.events, store::text_of(s.losses)));
  if (const std::string ends = store::unmatched_ends_by_rank(s.unmatched_ends); !ends.empty()) {
    line("", "unexplained unmatched ends: " + ends);
  }
  for (const std::string& problem : s.problems) line("problem", problem);
  line("steps", s.steps_measured == 1 && s.steps == 1
                    ? std::string("1 (measured, though it is the first: there is no other)")
                    : fmt::format("{} ({} measured, without the first)", s.steps, s.steps_measured));
  if (s.kept) {
    line("kept", analysis::text_of(*s.kept));
    for (const store::Moment& moment : s.kept->moments) line("kept moment", analysis::text_of(moment));
  }
  line("step time", fmt::format("{} ms median, {} ms p95", or_dash(s.step_ms_median, "{:.2f}"),
                                or_dash(s.step_ms_p95, "{:.2f}")));
  line("throughput", or_dash(s.tokens_per_s, "{:.0f}") + " tokens/s");
  if (s.micro_batches && s.micro_batches->vary()) {
    line("micro-batches",
         fmt::format("{}, {:.1f} % padding; uneven over ranks by {} % (of their time if time went by size)",
                     analysis::text_of(*s.micro_batches), s.micro_batches->padding_pct(),
                     or_dash(s.uneven_pct, "{:.1f}")));
  }
  if (s.simulated) {
    line("loss", "not known: no rank trained");
  } else if (!s.loss.empty()) {
    line("loss", loss_text(s.loss));
  }
  std::vector<double> held_out;  // of the evaluated steps
  std::ranges::copy_if(s.eval_loss, std::back_inserter(held_out),
                       [](double loss) { return std::isfinite(loss); });
  if (!held_out.empty()) line("held-out loss", loss_text(held_out));
  line("model states",
       fmt::format("{}: {} per rank expected, {}", s.memory_model.expression,
                   analysis::bytes_text(s.memory_model.bytes_per_rank),
                   s.memory_model.measured_bytes_per_rank
                       ? fmt::format("{} measured ({})",
                                     analysis::bytes_text(*s.memory_model.measured_bytes_per_rank),
                                     or_dash(s.memory_model.excess_pct, "{:+.2f} %"))
                       : "not measured: " + analysis::missing_model_states(s)));
  for (const analysis::MemoryPart& part : s.memory_model.parts) {
    line("", fmt::format("{} {}: {}", more(part.bytes), analysis::name_of(part.cause),
                         analysis::explain(part.cause)));
  }
  for (const analysis::MemoryModel::Offloaded& pool : s.memory_model.offloaded) {
    for (const analysis::MemoryPart& part : pool.parts) {
      line("", fmt::format("{} {}, {} memory: {}", more(part.bytes), analysis::name_of(part.cause),
                           store::name_of(pool.pool), analysis::explain(part.cause)));
    }
    if (pool.unexplained_bytes) {
      line("", fmt::format("{} bytes of {} memory unexplained", *pool.unexplained_bytes,
                           store::name_of(pool.pool)));
    }
  }
  if (s.memory_model.unexplained_bytes) {
    line("", fmt::format("{} bytes unexplained", *s.memory_model.unexplained_bytes));
  }
  if (const analysis::RankSummary* const rank = analysis::most_outside(s)) {
    line("outside memory",
         fmt::format("{} at most (rank {}, {} in use in all): {}", analysis::bytes_text(rank->outside->bytes),
                     rank->rank, analysis::bytes_text(rank->outside->in_use_bytes),
                     analysis::outside_contents(s.kind, s.framework, s.device)));
  }
  line("communicated",
       fmt::format("{} elements per rank and step; {} = {:.0f} by the expression",
                   or_dash(s.elements_per_step, "{:.0f}"), s.comm_expression, s.expected_elements_per_step));
  if (s.elements_per_step) over(s.elements_steps, s.steps_measured);
  for (const analysis::VolumePart& part : s.volume_parts) {
    line("", fmt::format("{:+.0f} {}: {}", part.elements_per_step, analysis::name_of(part.cause),
                         analysis::explain(part.cause)));
  }
  line("", s.unexplained_elements_per_step
               ? fmt::format("{:.0f} unexplained", *s.unexplained_elements_per_step)
               : "what differs is not known: " + missing_reason("gathers and gradients of parameters",
                                                                instrumentation::Detail::params,
                                                                Capability::collective_parts));
  const bool fetches = s.stage == 3;
  line("prefetch",
       !fetches ? analysis::partitioning_name(s.kind, s.stage) + " has none: parameters stay where they are"
       : s.prefetch ? prefetch_text(*s.prefetch)
                    : "not known: " + missing_reason("prefetches", instrumentation::Detail::params,
                                                     Capability::prefetches));
  if (s.prefetch && s.stage == 3) over(s.prefetch_steps, s.steps);
  line("trace", !fetches || !analysis::has_fetch_trace(s.kind)
                    ? analysis::partitioning_name(s.kind, s.stage) + " has none"
                : s.trace ? fmt::format("{} record, {} complete, {} invalidated (all ranks{})",
                                        s.trace->record, s.trace->complete, s.trace->invalidated,
                                        s.lacking_steps > 0 ? "; at least: events are missing" : "")
                          : "not known: " + missing_reason("modes of it", instrumentation::Detail::phases,
                                                           Capability::trace));
  if (s.first_invalidation) {
    line("", fmt::format("first invalidated at trace step {} of rank {}, which {}",
                         s.first_invalidation->trace_step, s.first_invalidation->rank,
                         s.first_invalidation_text));
  }
  if (s.not_finite && s.not_finite->events > 0) {
    line("not finite", fmt::format("gradients of {} steps and ranks; first: {}", s.not_finite->events,
                                   s.not_finite->text.empty() ? "not known" : s.not_finite->text));
  }
  analysis::Checkpoints most;
  for (const analysis::RankSummary& rank : s.ranks) {
    most.saves = std::max(most.saves, rank.checkpoints.saves);
    most.loads = std::max(most.loads, rank.checkpoints.loads);
    most.save_ns = std::max(most.save_ns, rank.checkpoints.save_ns);
    most.load_ns = std::max(most.load_ns, rank.checkpoints.load_ns);
  }
  if (most.saves + most.loads > 0) {
    line("checkpoints",
         fmt::format("{} saved in {:.1f} ms, {} loaded in {:.1f} ms (slowest rank), between steps",
                     most.saves, ms(most.save_ns), most.loads, ms(most.load_ns)));
  }
  analysis::Evaluations longest;
  for (const analysis::RankSummary& rank : s.ranks) {
    longest.count = std::max(longest.count, rank.evaluations.count);
    longest.ns = std::max(longest.ns, rank.evaluations.ns);
  }
  if (longest.count > 0) {
    line("evaluations",
         fmt::format("{} in {:.1f} ms (slowest rank), in no step time", longest.count, ms(longest.ns)));
  }
  if (s.eval_trace) {
    line("", fmt::format("trace of evaluation: {} record, {} complete (all ranks)", s.eval_trace->record,
                         s.eval_trace->complete));
  }
  if (s.scheduling && analysis::has_fetch_trace(s.kind)) {
    line("scheduling", s.scheduling->text());
    if (!s.scheduling->caveat.empty()) line("", s.scheduling->caveat);
  }
  if (s.critical_path) {
    double whole = 0;
    for (const auto& [part, mean_ms] : s.critical_path->ms_per_step) whole += mean_ms;
    const int digits = whole < 1     ? 4
                       : whole < 100 ? 2
                                     : 1;  // the parts sum to the step: 0.0 of 0.2 ms is useless
    const auto list = [digits](const std::vector<std::pair<std::string, double>>& means) {
      std::string parts;
      for (const auto& [part, mean_ms] : means)
        parts += fmt::format("{}{} {:.{}f}", parts.empty() ? "" : ", ", part, mean_ms, digits);
      return parts;
    };
    line("critical path",
         fmt::format("{} ms a step, mean of {}{}", list(s.critical_path->ms_per_step), s.critical_path->steps,
                     s.critical_path->steps == s.steps_measured ? ""
                     : s.critical_path->gain_ms_per_step.empty()
                         ? fmt::format(" of {}: those of which it is known", s.steps_measured)
                         : fmt::format(" of {}: those that could be replayed", s.steps_measured)));
    if (!s.critical_path->gain_ms_per_step.empty())
      line("", fmt::format("without one of them a step would be shorter by: {} ms",
                           list(s.critical_path->gain_ms_per_step)));
    constexpr std::size_t kPieces = 3;
    for (std::size_t i = 0; i < std::min(kPieces, s.critical_path->longest.size()); ++i) {
      const analysis::LongPathPiece& piece = s.critical_path->longest[i];
      line(i == 0 ? "longest pieces" : "",
           fmt::format("{:.{}f} ms of {}{} on rank {} in step {}", ms(piece.end_ns - piece.begin_ns), digits,
                       piece.part, piece.label.empty() ? "" : " (" + piece.label + ")", piece.rank,
                       piece.step));
    }
  }
  for (const analysis::RankSummary& rank : s.ranks) {
    if (rank.time_steps == 0 || ms(rank.others_waited_ns) < 0.01 * ms(rank.time.total_ns)) continue;
    const auto why = analysis::why_late(s, rank.rank);
    line("waited for",
         fmt::format("rank {}: it entered {} collectives last, the others waited {:.1f} ms in all{}",
                     rank.rank, rank.entered_last, ms(rank.others_waited_ns),
                     why ? "; " + analysis::text_of(*why) : ""));
  }
  if (const auto why = analysis::why_late(s); why) line("why late", analysis::text_of(s.late_causes, *why));
  text += waited_pairs_text(s);
  if (s.efficiency && s.efficiency->tflops_per_rank) {
    line("efficiency", analysis::rate_text(*s.efficiency) + "; " + analysis::flop_text(*s.efficiency));
  }
  if (s.energy) line("energy", analysis::energy_text(*s.energy));
  text += fmt::format(
      "\nms per step, mean of the measured steps that are known of a rank:\n"
      "{:<5} {:>9} {:>13} {:>13} {:>9} {:>11} {:>9} {:>9} {:>11} {:>11}\n",
      "rank", "compute", "exposed comm", "exposed copy", "idle", "unrecorded", "total", "overlap",
      "fetch wait", "peak MiB");
  std::uint32_t known_steps = s.steps_measured;
  for (const analysis::RankSummary& rank : s.ranks) {
    const auto peak = rank.memory_peak.find(instrumentation::MemoryPool::device);
    // As the lines above; with more digits for steps below 100 ms.
    const auto per_step = [&](std::int64_t ns) {
      const std::uint32_t steps = rank.time_steps > 0 ? rank.time_steps : s.steps_measured;
      if (steps == 0) return std::string("—");
      return fmt::format("{:.{}f}", ms(ns) / steps, ms(rank.time.total_ns) / steps < 100 ? 3 : 1);
    };
    const auto part = [&](std::int64_t ns) { return rank.time.known() ? per_step(ns) : std::string("—"); };
    known_steps = std::min(known_steps, rank.time_steps);
    text += fmt::format(
        "{:<5} {:>9} {:>13} {:>13} {:>9} {:>11} {:>9} {:>9} {:>11} {:>11}\n", rank.rank,
        part(rank.time.compute_ns),
        analysis::exposure_known(s) ? part(rank.time.exposed_comm_ns) : std::string("—"),
        rank.copies_known ? part(rank.time.exposed_copy_ns) : std::string("—"), part(rank.time.idle_ns),
        per_step(rank.time.unrecorded_ns), per_step(rank.time.total_ns),
        or_dash(rank.time.overlap_pct(), "{:.1f} %"),
        rank.fetch_wait_ns ? per_step(*rank.fetch_wait_ns) : std::string("—"),
        peak == rank.memory_peak.end() ? std::string("—") : fmt::format("{:.2f}", mib(peak->second.total())));
  }
  if (!s.ranks.empty() && known_steps < s.steps_measured) {
    text +=
        fmt::format("what was computed in {} of the {} measured steps is not known: {}\n",
                    s.steps_measured - known_steps, s.steps_measured,
                    known_steps > 0 ? s.kept && s.lacking_steps == 0 ? "they were not kept at full detail"
                                                                     : "nothing of it was recorded in them"
                                    : missing_reason("modules, kernels and optimizer steps",
                                                     instrumentation::Detail::modules, Capability::modules));
  }
  if (known_steps > 0 && std::any_of(s.ranks.begin(), s.ranks.end(),
                                     [](const auto& rank) { return rank.time.unrecorded_ns > 0; })) {
    text +=
        "unrecorded: events are missing or were not emitted at the detail set; the other parts, overlap and\n"
        "fetch wait are of what was recorded\n";
  }
  if (!s.ranks.empty()) text += clocks_text(s);
  text += fetch_counters_text(s);
  text += gpu_text(s);
  if (!s.ops.empty()) {
    text +=
        fmt::format("\n{:<15} {:>8} {:>14} {:>24} {:>24}\n{:<15} {:>8} {:>14} {:>12} {:>11} {:>12} {:>11}\n",
                    "collective", "count", "MiB", "transfer alone GB/s", "with waiting GB/s", "", "", "",
                    "algbw", "busbw", "algbw", "busbw");
    for (const analysis::OpRow& op : s.ops) {
      text +=
          fmt::format("{:<15} {:>8} {:>14.2f} {:>12} {:>11} {:>12} {:>11}\n", store::name_of(op.op), op.count,
                      mib(op.bytes), or_dash(op.algbw_gbs, "{:.3f}"), or_dash(op.busbw_gbs, "{:.3f}"),
                      or_dash(op.algbw_waiting_gbs, "{:.3f}"), or_dash(op.busbw_waiting_gbs, "{:.3f}"));
    }
    const std::string covered = analysis::coverage(s, s.ops_steps, s.steps_measured);
    text += "of the lowest rank" + (covered.empty() ? "" : ", " + covered) +
            "; transfer alone: from when all ranks had entered, the least over ranks; with waiting: begin "
            "to end,\nmean over ranks\n";
  }
  return text + links_text(s);
}

std::string findings_text(const std::vector<analysis::Finding>& findings, bool simulated) {
  std::string text = simulated ? "This run was simulated: no rank trained.\n" : "";
  if (findings.empty()) return text + "No findings: nothing stands out in this run.\n";
  for (const analysis::Finding& finding : findings) {
    text += plain_format("{:<8} {}\n         {}\n", store::name_of(finding.severity), finding.title,
                         finding.evidence);
    std::string cost;
    const auto add = [&](const std::string& part) { cost += (cost.empty() ? "" : ", ") + part; };
    if (finding.cost_ms) add(fmt::format("{:.1f} ms of a step", *finding.cost_ms));
    if (finding.cost_once_ms) add(fmt::format("{:.0f} ms once", *finding.cost_once_ms));
    if (finding.cost_bytes) add(analysis::bytes_cost_text(finding));
    if (!cost.empty()) text += "         Cost: " + cost + "\n";
    for (const std::string& follower : finding.explains)
      text += plain_format("         Explains: {}\n", follower);
    text += plain_format("         Next: {}\n", finding.next_step);
    std::string changes;
    for (const analysis::Change& change : finding.changes)
      changes += plain_format("{}{}={}", changes.empty() ? "" : " ", change.key, change.value);
    if (!changes.empty()) text += "         Change: " + changes + "\n";
    if (const std::string gain = analysis::gain_text(finding); !gain.empty())
      text += plain_format("         Gain: {}\n", gain);
    if (!finding.page.empty()) text += plain_format("         See: {}\n", finding.page);
  }
  return text;
}

}  // namespace shardscope::cli
