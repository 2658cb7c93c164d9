#include "runtime/engine/trace_check.h"

#include <array>
#include <span>
#include <stdexcept>
#include <vector>

#include "runtime/plan/trace_agreement.h"

namespace shardscope::engine {

using plan::TracedVisit;

void check_same_trace(const plan::FetchScheduler& scheduler, const plan::ModelPlan& model,
                      comm::Communicator& control) {
  if (control.world() == 1) return;
  const std::vector<TracedVisit> mine = plan::traced_visits(scheduler);
  std::uint64_t length = mine.size();
  control.broadcast_host(std::as_writable_bytes(std::span(&length, 1)), 0);
  std::vector<TracedVisit> first = mine;  // becomes rank 0's
  first.resize(length);
  control.broadcast_host(std::as_writable_bytes(std::span(first)), 0);

  // Maximum over ranks: selects the earliest step, and of its ranks the highest.
  constexpr unsigned kRankBits = 24;
  const auto differs = plan::first_difference(first, mine);
  std::uint64_t found =
      differs ? ~static_cast<std::uint64_t>(*differs) << kRankBits | control.rank() : std::uint64_t{0};
  control.max_host(std::span(&found, 1));
  if (found == 0) return;

  const auto rank = static_cast<std::uint32_t>(found & ((1U << kRankBits) - 1));
  const auto step = static_cast<std::size_t>(~found >> kRankBits);  // drops the rank's bits
  const auto at = [step](std::uint32_t rank_of_trace, const std::vector<TracedVisit>& trace) {
    plan::RankVisit visit{rank_of_trace, {}};
    if (step < trace.size()) visit.visit = trace[step];
    return visit;
  };
  std::array<std::uint32_t, 3> other{};  // [step exists, module, params]
  if (step < mine.size()) other = {1, mine[step].module, mine[step].params};
  control.broadcast_host(std::as_writable_bytes(std::span(other)), rank);
  plan::RankVisit theirs{rank, {}};
  if (other[0] != 0) theirs.visit = TracedVisit{other[1], other[2]};
  throw std::runtime_error(plan::describe_difference(step, at(0, first), theirs, model));
}

}  // namespace shardscope::engine
