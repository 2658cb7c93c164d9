// The input of the rules: typical steps without the few that took much longer, medians of each rank,
// settings.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "app/analysis/findings/findings.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/free_parts.h"
#include "app/analysis/slow_rank.h"
#include "app/analysis/statistics.h"
#include "app/analysis/why_late.h"
#include "app/analysis/zero_settings.h"

namespace shardscope::analysis::findings {
namespace {

double ms(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

double median(std::vector<double> values) { return values.empty() ? 0 : quantile(std::move(values), 0.5); }

/// [Note: long steps]
/// A step is long if it exceeds the median by half the median, by 0.4 s, and by far more than steps vary. If
/// more than a tenth of the steps (and more than two) are long, that is how the run is, and all are typical.
void divide_steps(Facts& facts) {
  constexpr double kLeastMs = 400, kSpreads = 8;
  const auto& steps = facts.digest.steps();
  std::vector<double> lengths;
  for (std::size_t i = facts.digest.first_measured(); i < steps.size(); ++i)
    lengths.push_back(length_ms(steps[i]));
  if (lengths.empty()) return;
  const double middle = median(lengths);
  const double bound = std::max({kLeastMs, middle / 2, kSpreads * half_iqr(lengths)});
  for (std::size_t k = 0; k < lengths.size(); ++k) {
    const std::size_t index = facts.digest.first_measured() + k;
    if (lengths.size() > 2 && lengths[k] - middle > bound) {
      facts.long_steps.push_back({index, lengths[k] - middle});
    } else {
      facts.typical.push_back(index);
    }
  }
  if (facts.long_steps.size() > std::max<std::size_t>(2, lengths.size() / 10)) {
    facts.typical.clear();
    facts.long_steps.clear();
    for (std::size_t k = 0; k < lengths.size(); ++k)
      facts.typical.push_back(facts.digest.first_measured() + k);
  }
  std::vector<double> typical;
  for (const std::size_t index : facts.typical) typical.push_back(length_ms(steps[index]));
  facts.step_ms = median(std::move(typical));
}

/// A figure of a rank, and its value in one step.
struct Figure {
  double RankFacts::*of;
  std::int64_t (*in_step)(const RankStep&);
};
constexpr std::array kFigures{
    Figure{&RankFacts::compute, [](const RankStep& s) { return s.time.compute_ns; }},
    Figure{&RankFacts::waiting, [](const RankStep& s) { return s.exposed.waiting_ns; }},
    Figure{&RankFacts::moving, [](const RankStep& s) { return s.exposed.moving_ns; }},
    Figure{&RankFacts::gather_moving, [](const RankStep& s) { return s.exposed.gather_moving_ns; }},
    Figure{&RankFacts::reduce_moving, [](const RankStep& s) { return s.exposed.reduce_moving_ns; }},
    Figure{&RankFacts::link, [](const RankStep& s) { return s.exposed.link_ns; }},
    Figure{&RankFacts::reduce_link, [](const RankStep& s) { return s.exposed.reduce_link_ns; }},
    Figure{&RankFacts::hideable, [](const RankStep& s) { return s.exposed.hideable_gather_ns; }},
    Figure{&RankFacts::copy, [](const RankStep& s) { return s.time.exposed_copy_ns; }},
    Figure{&RankFacts::idle, [](const RankStep& s) { return s.time.idle_ns; }},
    Figure{&RankFacts::data, [](const RankStep& s) { return s.data_wait_ns.value_or(0); }},
    Figure{&RankFacts::recompute, [](const RankStep& s) { return s.recompute_ns; }},
    Figure{&RankFacts::fetch_wait, [](const RankStep& s) { return s.fetch_wait_ns; }},
    Figure{&RankFacts::total, [](const RankStep& s) { return s.time.total_ns - s.time.checkpoint_ns; }}};

/// One rank in the typical steps in which its computation was recorded.
struct RankSteps {
  std::vector<const RankStep*> steps;
  std::size_t slower = 0;  ///< steps in which it computed longer than the others
  double others_waited = 0;
  RetryCount retries;
  GroupTimes groups;
  std::map<std::uint32_t, double> waiters;
};

/// Whether at least half of the rank's step was recorded.
bool says_enough(const RankStep& step) {
  return step.time.known() && 2 * step.time.unrecorded_ns <= step.time.total_ns;
}

/// Adds a step to the sums of its ranks. Compares each rank with the median of the others in one sorted pass.
void add_step(const StepDigest& step, std::unordered_map<std::uint32_t, RankSteps>& ranks) {
  std::vector<double> computed;
  for (const RankStep& rank : step.ranks) {
    if (rank.time.known()) computed.push_back(ms(rank.time.compute_ns));
  }
  const double others = static_cast<double>(computed.size()) - 1;
  const OthersMedian medians(std::move(computed));
  for (const RankStep& rank : step.ranks) {
    if (!says_enough(rank)) continue;
    RankSteps& of = ranks[rank.rank];
    of.steps.push_back(&rank);
    of.groups.add(rank);
    const double own = ms(rank.time.compute_ns);
    of.slower += computes_longer(own, medians.without(own).value_or(0)) ? 1 : 0;
  }
  for (const WaitedFor& pair : step.pairs) {
    if (const auto of = ranks.find(pair.late); of != ranks.end())
      of->second.waiters[pair.waiter] += ms(pair.ns);
  }
  if (others <= 0) return;
  for (const Lateness& late : step.late) {
    const auto rank = std::ranges::lower_bound(step.ranks, late.rank, {}, &RankStep::rank);
    if (rank == step.ranks.end() || rank->rank != late.rank || !says_enough(*rank)) continue;
    ranks[late.rank].others_waited += ms(late.others_waited_ns) / others;
  }
}

RankFacts facts_of_rank(std::uint32_t rank, const RankSteps& of, const Digest& digest) {
  RankFacts out;
  out.rank = rank;
  for (const Figure& figure : kFigures) {
    std::vector<double> values;
    for (const RankStep* step : of.steps) values.push_back(ms(figure.in_step(*step)));
    out.*figure.of = median(std::move(values));
  }
  const auto known = static_cast<double>(of.steps.size());
  out.others_waited = of.others_waited / known;
  out.lasting = static_cast<double>(of.slower) / known;
  // A sample covers many short steps, or a part of a long one: use the rate in a step of median length.
  ProcessorWaits waits;
  for (const RankStep* step : of.steps) {
    waits.add(step->processor_waits.value_or(ProcessorWaits{}));
    out.gpu.add(step->gpu_state);
  }
  out.processor = waits.waited_of(out.total);
  out.retries = of.retries.count().value_or(0);
  out.groups = own_groups(of.groups.all(digest), known);
  out.waiters.assign(of.waiters.begin(), of.waiters.end());
  return out;
}

void read_settings(Facts& facts) {
  const Framework kind = facts.summary.kind;
  // Recorded micro-steps, for frameworks without a configuration of them. Median, since the last step of an
  // epoch may have fewer.
  std::vector<double> micro_steps;
  for (const std::size_t index : facts.typical)
    micro_steps.push_back(static_cast<double>(facts.digest.steps()[index].micro_steps));
  facts.micro_steps = std::max<std::int64_t>(std::llround(median(std::move(micro_steps))), 1);
  facts.zero_keys = facts.store.has_tables() && (kind == Framework::zero || kind == Framework::deepspeed);
  if (!facts.zero_keys) return;
  facts.zero = zero_of(facts.store.tables());
  facts.overlap_comm = facts.zero.overlap();
  const nlohmann::json config = parse_foreign(facts.summary.config_json);
  if (!config.is_object()) return;
  const nlohmann::json::json_pointer overlap("/zero_optimization/overlap_comm"),
      accumulation("/gradient_accumulation_steps");
  // A recording of DeepSpeed contains the user's file: the default is on in stage 3.
  if (kind == Framework::deepspeed && !config.contains(overlap))
    facts.overlap_comm = facts.summary.stage == 3;
  if (config.contains(accumulation) && config[accumulation].is_number_integer())
    facts.micro_steps = std::max<std::int64_t>(config[accumulation].get<std::int64_t>(), 1);
}

}  // namespace

double length_ms(const StepDigest& step) {
  double longest = 0;
  for (const RankStep& rank : step.ranks)
    longest = std::max(longest, ms(rank.time.total_ns - rank.time.checkpoint_ns));
  return longest;
}

double Facts::mean(double RankFacts::*of) const {
  double sum = 0;
  for (const RankFacts& rank : ranks) sum += rank.*of;
  return ranks.empty() ? 0 : sum / static_cast<double>(ranks.size());
}

Facts facts_of(const store::Store& store, const Summary& summary, const Digest& digest) {
  Facts facts{.store = store, .summary = summary, .digest = digest};
  divide_steps(facts);
  std::unordered_map<std::uint32_t, RankSteps> ranks;
  for (const std::size_t index : facts.typical) add_step(digest.steps()[index], ranks);
  for (std::size_t i = 0; i < digest.steps().size(); ++i) {
    const bool typical = std::ranges::binary_search(facts.typical, i);
    for (const RankStep& rank : digest.steps()[i].ranks) {
      if (rank.allocator_retries) ranks[rank.rank].retries.add(rank, typical);
    }
  }
  for (const RankSummary& rank : summary.ranks) {
    const auto of = ranks.find(rank.rank);
    if (of != ranks.end() && !of->second.steps.empty())
      facts.ranks.push_back(facts_of_rank(rank.rank, of->second, digest));
  }
  std::int64_t paths = 0;
  for (const std::size_t index : facts.typical) {
    const auto& path = digest.steps()[index].path;
    if (!path) continue;
    ++paths;
    for (std::size_t part = 0; part < kPathParts; ++part) facts.path_ns[part] += (*path)[part];
  }
  for (std::int64_t& ns : facts.path_ns) ns /= std::max<std::int64_t>(paths, 1);
  read_settings(facts);
  return facts;
}

std::optional<double> gain_without(const Facts& facts, PathPart part) {
  std::int64_t gained = 0;
  std::size_t steps = 0;
  for (const std::size_t index : facts.typical) {
    const StepDigest& step = facts.digest.steps()[index];
    if (!step.path || !was_replayed(step.path_gains)) continue;
    const std::int64_t ns = step.path_gains[static_cast<std::size_t>(part)];
    if (ns == kNotReplayed) continue;
    gained += ns;
    ++steps;
  }
  if (steps == 0) return std::nullopt;
  return static_cast<double>(gained) * 1e-6 / static_cast<double>(steps);
}

}  // namespace shardscope::analysis::findings
