// Where the evidence of a finding is: a step or stretch of time, and a rank.
#include <algorithm>
#include <vector>

#include "app/analysis/findings/findings.h"

namespace shardscope::analysis::findings {
namespace {

void look_at_rank_step(Finding& finding, const RankStep& step) {
  finding.rank = step.rank;
  finding.at_ns = step.begin_ns;
  finding.until_ns = step.end_ns;
}

/// The step of the finding's rank, or of the lowest one. Without a rank before, it has none afterwards.
void look_at_digest_step(Finding& finding, const StepDigest& step) {
  if (step.ranks.empty()) return;
  const auto own = std::ranges::find(step.ranks, finding.rank, &RankStep::rank);
  const RankStep& shown = own == step.ranks.end() ? step.ranks.front() : *own;
  finding.at_ns = shown.begin_ns;
  finding.until_ns = shown.end_ns;
}

bool is_typical(const Facts& facts, std::uint32_t step) {
  return std::ranges::any_of(facts.typical,
                             [&](std::size_t index) { return facts.digest.steps()[index].step == step; });
}

}  // namespace

void look_at_worst(const Facts& facts, Finding& finding,
                   const std::function<std::int64_t(const RankStep&)>& figure) {
  if (finding.placed()) return;
  std::int64_t most = 0;
  const RankStep* worst = nullptr;
  for (const std::size_t index : facts.typical) {
    for (const RankStep& one : facts.digest.steps()[index].ranks) {
      if ((finding.rank != ev::kNoId && one.rank != finding.rank) || figure(one) <= most) continue;
      most = figure(one);
      worst = &one;
    }
  }
  if (worst != nullptr) look_at_rank_step(finding, *worst);
}

void look_at_path(const Facts& facts, Finding& finding, PathPart part) {
  if (finding.placed()) return;
  for (const Digest::LongPiece& one : facts.digest.longest_pieces()) {
    if (one.piece.part != part || !is_typical(facts, one.step)) continue;
    finding.rank = one.piece.rank;
    finding.at_ns = one.piece.at.begin;
    finding.until_ns = one.piece.at.end;
    return;
  }
  look_at_worst_step(facts, finding, [part](const StepDigest& step) {
    return step.path ? static_cast<double>((*step.path)[static_cast<std::size_t>(part)]) : 0;
  });
}

void look_at_worst_step(const Facts& facts, Finding& finding,
                        const std::function<double(const StepDigest&)>& figure) {
  if (finding.placed()) return;
  double most = 0;
  const StepDigest* worst = nullptr;
  for (const std::size_t index : facts.typical) {
    const StepDigest& step = facts.digest.steps()[index];
    if (figure(step) <= most) continue;
    most = figure(step);
    worst = &step;
  }
  if (worst != nullptr) look_at_digest_step(finding, *worst);
}

void look_at_a_step(const Facts& facts, Finding& finding) {
  if (finding.placed()) return;
  const std::vector<StepDigest>& steps = facts.digest.steps();
  if (steps.empty()) return;
  std::vector<std::size_t> typical = facts.typical;
  if (typical.empty()) return look_at_digest_step(finding, steps.front());
  const auto middle = typical.begin() + static_cast<std::ptrdiff_t>(typical.size() / 2);
  std::ranges::nth_element(typical, middle, {}, [&](std::size_t index) { return length_ms(steps[index]); });
  look_at_digest_step(finding, steps[*middle]);
}

}  // namespace shardscope::analysis::findings
