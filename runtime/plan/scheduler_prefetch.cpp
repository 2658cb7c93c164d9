// Prefetch: parameters of later modules, in the recorded order, within the limits; and the shards read ahead
// from NVMe before that.
#include <algorithm>

#include "runtime/plan/scheduler_state.h"

namespace shardscope::plan {

/// The prefetch at one fetch (C8): parameters are taken from the front of the recorded order until a limit is
/// reached. For example, with stage3_prefetch_bucket_size 100 and parameters a (60), b (available), c (60), d
/// (10) ahead, it takes a, skips b, takes c (the bucket may be passed by one parameter) and stops before d:
/// PrefetchStop::bucket_full. All that it takes become one gather.
Gather FetchScheduler::State::prefetch(PrefetchStop& stop) {
  if (config.prefetch_bucket_elems == 0) {
    stop = PrefetchStop::disabled;
    return {};
  }
  const std::int64_t live_room = config.max_live_elems - available;
  // Both in full elements. `available` already counts this module's parameters, which fetch() has issued.
  const std::int64_t budget = std::min(live_room, config.prefetch_bucket_elems);
  std::vector<ParamId> chosen;
  std::int64_t chosen_elems = 0;
  stop = PrefetchStop::end_of_trace;
  while (!queue.empty()) {
    // Checked before a parameter is taken, so the bucket may be exceeded by one parameter.
    if (chosen_elems >= budget) {
      stop = live_room <= config.prefetch_bucket_elems ? PrefetchStop::live_limit : PrefetchStop::bucket_full;
      break;
    }
    const TracedParam next = queue.front();
    Param& param = at(next.param);
    if (param.status == ParamStatus::not_available && !swap.ready(next.param)) {
      stop = PrefetchStop::offloaded;  // C8: shards on NVMe are read ahead first
      break;
    }
    // If it is available, in flight or already chosen, only its later use is noted.
    const bool take = param.status == ParamStatus::not_available && !contains_id(chosen, next.param);
    // DeepSpeed may exceed the live limit by one parameter; ours leaves that one to the next fetch.
    if (take && !compat.prefetch_passes_live_limit() && counted(param) &&
        chosen_elems + param.elems > live_room) {
      stop = PrefetchStop::live_limit;
      break;
    }
    // Also if it is not taken: it stays available until that step because of `fetched_for`
    // (decide_release()).
    queue.pop_front();
    param.fetched_for = std::max(param.fetched_for, next.step);
    if (take) {
      chosen.push_back(next.param);
      chosen_elems += param.elems;
    }
  }
  return issue(chosen);
}

std::vector<ParamId> FetchScheduler::State::read_ahead() {
  if (config.prefetch_bucket_elems == 0) return {};
  std::int64_t in_flight = 0;
  // Counts registered parameters, whether their gathers are complete or not.
  for (const Param& param : params) in_flight += param.registered == kNone<GatherId> ? 0 : param.elems;
  return swap.read_ahead(queue, elems, in_flight,
                         [this](ParamId id) { return at(id).status != ParamStatus::not_available; });
}

}  // namespace shardscope::plan
