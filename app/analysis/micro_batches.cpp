#include "app/analysis/micro_batches.h"

#include <fmt/format.h>

#include <map>

#include "app/analysis/spans.h"

namespace shardscope::analysis {

namespace ev = shardscope::instrumentation;

std::vector<MicroBatch> micro_batches(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                      std::int64_t end_ns) {
  std::vector<MicroBatch> found;
  if (store.instant_count(rank, ev::EventKind::micro_batch) == 0) return found;  // avoids reading blocks
  store.for_each_instant(rank, begin_ns, end_ns, [&](const ev::Event& event) {
    if (event.kind != ev::EventKind::micro_batch) return;
    const auto batch = ev::as<ev::EventKind::micro_batch>(event);
    if (batch.micro_step == ev::kNoId || batch.samples == 0 || batch.samples == ev::kNoId) return;
    found.push_back({batch.micro_step, batch.samples, batch.tokens, batch.padding});
  });
  return found;
}

std::int64_t recorded_micro_steps(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                  std::int64_t end_ns) {
  std::int64_t count = 0;
  for_each_span(store, {rank, ev::StreamId::host}, begin_ns, end_ns, [&](const store::Span& span) {
    if (span.kind == ev::EventKind::micro_step_begin && span.begin_ns >= begin_ns) ++count;
  });
  return count;
}

void MicroBatchSums::add(const MicroBatch& one) noexcept {
  const std::int64_t length = one.positions() / std::max<std::int64_t>(one.samples, 1);
  add({1, one.tokens, one.padding, length, length, one.samples, one.samples});
}

void MicroBatchSums::add(const MicroBatchSums& others) noexcept {
  if (others.count == 0) return;
  const bool first = count == 0;
  shortest = first ? others.shortest : std::min(shortest, others.shortest);
  longest = std::max(longest, others.longest);
  fewest_samples = first ? others.fewest_samples : std::min(fewest_samples, others.fewest_samples);
  most_samples = std::max(most_samples, others.most_samples);
  count += others.count;
  tokens += others.tokens;
  padding += others.padding;
}

double MicroBatchSums::padding_pct() const noexcept {
  return positions() > 0 ? 100 * static_cast<double>(padding) / static_cast<double>(positions()) : 0;
}

bool MicroBatchSums::vary() const noexcept {
  return padding > 0 || shortest != longest || fewest_samples != most_samples;
}

std::string text_of(const MicroBatchSums& sums) {
  const auto range = [](std::int64_t least, std::int64_t most) {
    return least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
  };
  return fmt::format("{} {} of {} {}", range(sums.fewest_samples, sums.most_samples),
                     sums.most_samples == 1 ? "sample" : "samples", range(sums.shortest, sums.longest),
                     sums.longest == 1 ? "token" : "tokens");
}

std::optional<double> Unevenness::pct() const noexcept {
  if (most <= 0) return std::nullopt;
  return 100 * (1 - mean / most);
}

Unevenness unevenness(const std::vector<std::vector<MicroBatch>>& ranks) {
  struct MicroStep {
    std::size_t ranks = 0;
    std::int64_t sum = 0, most = 0;
  };
  std::map<std::uint32_t, MicroStep> micro_steps;
  for (const std::vector<MicroBatch>& of_rank : ranks) {
    for (const MicroBatch& one : of_rank) {
      MicroStep& micro_step = micro_steps[one.micro_step];
      ++micro_step.ranks;
      micro_step.sum += one.positions();
      micro_step.most = std::max(micro_step.most, one.positions());
    }
  }
  Unevenness sum;
  for (const auto& [number, micro_step] : micro_steps) {
    if (micro_step.ranks != ranks.size())
      continue;  // a rank's micro-batch is missing: the waits of the others are unknown
    sum.mean += static_cast<double>(micro_step.sum) / static_cast<double>(ranks.size());
    sum.most += static_cast<double>(micro_step.most);
  }
  return sum;
}

}  // namespace shardscope::analysis
