// What the rules read: typical steps apart from the few that took much longer, medians of each rank,
// settings.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/analysis/findings/findings.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/statistics.h"
#include "app/analysis/zero_settings.h"

namespace shardscope::analysis::findings {
namespace {

double ms(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

/// From the first begin to the last end, without pauses.
double length_ms(const StepDigest& step) {
  double longest = 0;
  for (const RankStep& rank : step.ranks)
    longest = std::max(longest, ms(rank.time.total_ns - rank.time.checkpoint_ns));
  return longest;
}

double median(std::vector<double> values) { return values.empty() ? 0 : quantile(std::move(values), 0.5); }

/// [Note: long steps]
/// A step is long where it took half a step and 0.4 s more than the median, and far more than steps differ
/// by. Where more than a tenth of the steps are (and more than two), they are how the run is, and typical.
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

/// Of one rank in the typical steps of which it is known what it computed.
std::optional<RankFacts> rank_facts(const Facts& facts, std::uint32_t rank) {
  RankFacts out;
  out.rank = rank;
  struct Column {
    double RankFacts::*of;
    std::vector<double> values;
  };
  std::vector<Column> columns;
  for (const auto of :
       {&RankFacts::compute, &RankFacts::waiting, &RankFacts::moving, &RankFacts::gather_moving,
        &RankFacts::reduce_moving, &RankFacts::link, &RankFacts::hideable, &RankFacts::copy, &RankFacts::idle,
        &RankFacts::data, &RankFacts::fetch_wait, &RankFacts::total})
    columns.push_back({of, {}});
  std::size_t known = 0, slower = 0;
  for (const std::size_t index : facts.typical) {
    const StepDigest& step = facts.digest.steps()[index];
    const auto of = std::ranges::find(step.ranks, rank, &RankStep::rank);
    // A rank of whose step much is missing says little of it.
    if (of == step.ranks.end() || !of->time.known() || 2 * of->time.unrecorded_ns > of->time.total_ns)
      continue;
    ++known;
    const double values[] = {ms(of->time.compute_ns),
                             ms(of->exposed.waiting_ns),
                             ms(of->exposed.moving_ns),
                             ms(of->exposed.gather_moving_ns),
                             ms(of->exposed.reduce_moving_ns),
                             ms(of->exposed.link_ns),
                             ms(of->exposed.hideable_gather_ns),
                             ms(of->time.exposed_copy_ns),
                             ms(of->time.idle_ns),
                             ms(of->data_wait_ns.value_or(0)),
                             ms(of->fetch_wait_ns),
                             ms(of->time.total_ns - of->time.checkpoint_ns)};
    for (std::size_t k = 0; k < columns.size(); ++k) columns[k].values.push_back(values[k]);
    std::vector<double> others;
    for (const RankStep& other : step.ranks) {
      if (other.rank != rank && other.time.known()) others.push_back(ms(other.time.compute_ns));
    }
    slower += !others.empty() && ms(of->time.compute_ns) > 1.05 * median(others) ? 1 : 0;
    for (const Lateness& late : step.late) {
      if (late.rank == rank && !others.empty())
        out.others_waited += ms(late.others_waited_ns) / static_cast<double>(others.size());
    }
  }
  if (known == 0) return std::nullopt;
  for (Column& column : columns) out.*column.of = median(std::move(column.values));
  out.others_waited /= static_cast<double>(known);
  out.lasting = static_cast<double>(slower) / static_cast<double>(known);
  return out;
}

void read_settings(Facts& facts) {
  const Framework kind = facts.summary.kind;
  facts.zero_keys = facts.store.has_tables() && (kind == Framework::zero || kind == Framework::deepspeed);
  if (!facts.zero_keys) return;
  facts.zero = zero_of(facts.store.tables());
  facts.overlap_comm = facts.zero.overlap();
  const nlohmann::json config = parse_foreign(facts.summary.config_json);
  if (!config.is_object()) return;
  const nlohmann::json::json_pointer overlap("/zero_optimization/overlap_comm"),
      accumulation("/gradient_accumulation_steps");
  // A recording of DeepSpeed holds the user's file: unset, it is on in stage 3.
  if (kind == Framework::deepspeed && !config.contains(overlap))
    facts.overlap_comm = facts.summary.stage == 3;
  if (config.contains(accumulation) && config[accumulation].is_number_integer())
    facts.micro_steps = std::max<std::int64_t>(1, config[accumulation].get<std::int64_t>());
}

}  // namespace

double Facts::mean(double RankFacts::*of) const {
  double sum = 0;
  for (const RankFacts& rank : ranks) sum += rank.*of;
  return ranks.empty() ? 0 : sum / static_cast<double>(ranks.size());
}

Facts facts_of(const store::Store& store, const Summary& summary, const Digest& digest) {
  Facts facts{.store = store, .summary = summary, .digest = digest};
  divide_steps(facts);
  for (const RankSummary& rank : summary.ranks) {
    if (const auto of = rank_facts(facts, rank.rank)) facts.ranks.push_back(*of);
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

}  // namespace shardscope::analysis::findings
