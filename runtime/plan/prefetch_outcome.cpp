#include "runtime/plan/prefetch_outcome.h"

namespace shardscope::plan {

PrefetchVerdict judge_prefetch(const PrefetchTimes& times) noexcept {
  PrefetchVerdict verdict;
  verdict.gather_ns = times.gather_end_ns - times.gather_begin_ns;
  verdict.slack_ns = times.needed_ns - times.gather_end_ns;
  if (verdict.slack_ns < 0) {
    verdict.outcome = PrefetchOutcome::late;
    verdict.slack_ns = times.needed_ns - times.resumed_ns;
  } else if (verdict.slack_ns <= verdict.gather_ns) {
    verdict.outcome = PrefetchOutcome::just_in_time;
  } else {
    verdict.outcome = PrefetchOutcome::early;
  }
  return verdict;
}

const char* to_string(PrefetchOutcome outcome) noexcept {
  switch (outcome) {
    case PrefetchOutcome::early:
      return "early";
    case PrefetchOutcome::just_in_time:
      return "just in time";
    case PrefetchOutcome::late:
      return "late";
    case PrefetchOutcome::mistargeted:
      return "mistargeted";
    case PrefetchOutcome::unused:
      return "unused";
  }
  return "unknown";
}

}  // namespace shardscope::plan
