#include "app/collector/run_identity.h"

#include <algorithm>

namespace shardscope::collector {

RunIdentity::Verdict RunIdentity::judge(const std::string& run_id, Proof proof) {
  if (!known_) {
    if (proof == Proof::published) {
      const bool same = run_id_ == run_id;
      run_id_ = run_id;
      known_ = true;
      return same ? Verdict::ours : Verdict::ours_instead;
    }
    if (run_id_.empty()) run_id_ = run_id;
    return run_id_ == run_id ? Verdict::ours : Verdict::undecided;
  }
  return run_id_ == run_id ? Verdict::ours : Verdict::other;
}

std::string RunIdentity::refusal_of(const std::string& run_id) const {
  return "it belongs to run '" + run_id + "', this collector receives '" + run_id_ +
         "'; give each run an endpoint of its own, or start this one with --run-id " + run_id;
}

RunIdentity::Tables RunIdentity::set_world(std::uint32_t world, std::uint32_t local_world) {
  if (world_known_ && world != world_) return Tables::contradict;
  world_known_ = true;
  local_world_ = std::max<std::uint32_t>(local_world, 1);
  const bool same = world_ == world;
  world_ = world;
  return same ? Tables::agree : Tables::change;
}

std::string RunIdentity::contradiction_of(std::uint32_t world) const {
  return "its world has " + std::to_string(world) + " ranks, that of other ranks " + std::to_string(world_);
}

}  // namespace shardscope::collector
