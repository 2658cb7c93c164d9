#include "app/analysis/late_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "app/analysis/digest.h"
#include "app/analysis/hang/module_order.h"
#include "app/analysis/summary.h"
#include "app/analysis/why_late.h"

namespace shardscope::analysis {
namespace {

constexpr std::size_t kReasons = static_cast<std::size_t>(LateReason::unknown) + 1;

double ms(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

OwnParts parts_of(const RankStep& step, const Digest& digest) {
  OwnParts out{.rank = step.rank,
               .compute = ms(step.time.compute_ns),
               .copy = ms(step.time.exposed_copy_ns),
               .idle = ms(step.time.idle_ns),
               .data = ms(step.data_wait_ns.value_or(0))};
  if (step.processor_waits) out.processor = step.processor_waits->waited_of(ms(step.time.total_ns));
  for (const GroupExposure& one : step.groups)
    out.groups.push_back({one.group, digest.members_of(one.group), ms(one.waiting_ns), ms(one.moving_ns),
                          one.late, ms(one.late_ns)});
  return out;
}

LateReason reason_of(const WhyLate& why) {
  if (why.for_data) return LateReason::data;
  if (why.for_processor) return LateReason::processor;
  switch (why.part) {
    case WhyLate::Part::compute:
      return LateReason::compute;
    case WhyLate::Part::copy:
      return LateReason::copy;
    case WhyLate::Part::idle:
      return LateReason::idle;
    case WhyLate::Part::group:
      return LateReason::group;
  }
  return LateReason::unknown;
}

/// The last rank of a step and its reason.
struct LastRank {
  std::uint32_t rank = 0;
  double waited_ms = 0;  ///< of each other rank
  LateReason reason = LateReason::unknown;
};
std::optional<LastRank> last_rank(const StepDigest& step, const Digest& digest) {
  const auto last = std::ranges::max_element(step.late, {}, &Lateness::others_waited_ns);
  if (last == step.late.end() || last->others_waited_ns <= 0 || step.ranks.size() < 2) return std::nullopt;
  LastRank out{.rank = last->rank,
               .waited_ms = ms(last->others_waited_ns) / static_cast<double>(step.ranks.size() - 1)};
  std::vector<OwnParts> parts;
  for (const RankStep& rank : step.ranks)
    if (rank.time.known()) parts.push_back(parts_of(rank, digest));
  std::vector<std::pair<std::uint32_t, double>> waits;
  for (const WaitedFor& pair : step.pairs)
    if (pair.late == last->rank) waits.emplace_back(pair.waiter, ms(pair.ns));
  const auto why = why_late(parts, last->rank, waiters_of(waits));
  if (why && why->excess_ms() >= out.waited_ms / 2) out.reason = reason_of(*why);
  return out;
}

}  // namespace

const char* explain(LateReason reason) noexcept {
  switch (reason) {
    case LateReason::compute:
      return "it computed longer than they did";
    case LateReason::copy:
      return "it copied longer than they did";
    case LateReason::idle:
      return "it did nothing for longer than they did";
    case LateReason::group:
      return "collectives of another of its groups took longer";
    case LateReason::data:
      return "it waited for its data";
    case LateReason::processor:
      return "its threads waited for a processor";
    case LateReason::unknown:
      return "of an unknown reason";
  }
  return "?";
}

const char* name_of(LateReason reason) noexcept {
  constexpr std::array<const char*, kReasons> kNames{"compute", "copy",      "idle",   "group",
                                                     "data",    "processor", "unknown"};
  return kNames[static_cast<std::size_t>(reason)];
}

double LateCauses::waited_ms() const noexcept {
  double sum = 0;
  for (const LateCause& cause : causes) sum += cause.waited_ms;
  return sum;
}

LateCauses late_causes(const Digest& digest) {
  LateCauses out;
  std::array<LateCause, kReasons> sums;
  for (std::size_t i = digest.first_measured(); i < digest.steps().size(); ++i) {
    ++out.of;
    const auto last = last_rank(digest.steps()[i], digest);
    if (!last) continue;
    ++out.steps;
    LateCause& sum = sums[static_cast<std::size_t>(last->reason)];
    sum.reason = last->reason;
    ++sum.steps;
    sum.waited_ms += last->waited_ms;
    const auto at = std::ranges::lower_bound(sum.ranks, last->rank);
    if (at == sum.ranks.end() || *at != last->rank) sum.ranks.insert(at, last->rank);
  }
  for (LateCause& sum : sums)
    if (sum.steps > 0) out.causes.push_back(std::move(sum));
  std::ranges::stable_sort(out.causes, std::greater{}, &LateCause::waited_ms);
  return out;
}

std::optional<LateCause> why_late(const Summary& summary) {
  const LateCauses& all = summary.late_causes;
  // Without a critical path the computation of no rank is known.
  if (all.causes.empty() || !summary.critical_path) return std::nullopt;
  const LateCause& most = all.causes.front();
  if (most.reason == LateReason::unknown || 2 * most.waited_ms <= all.waited_ms()) return std::nullopt;
  return most;
}

std::string text_of(const LateCauses& all, const LateCause& cause) {
  const auto per_step = [&](double sum) { return all.of > 0 ? sum / all.of : 0; };
  return fmt::format(
      "in {} of {} steps the last one ({}) was late because {}: {:.1f} of {:.1f} ms that each other rank "
      "waited for it in a step",
      cause.steps, all.of, ranks_text(cause.ranks), explain(cause.reason), per_step(cause.waited_ms),
      per_step(all.waited_ms()));
}

}  // namespace shardscope::analysis
