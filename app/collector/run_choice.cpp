// Which run a collector receives, and how ranks of other runs are refused ([Note: which run it is]).
#include <string>

#include "app/collector/collector_state.h"
#include "app/collector/now.h"

namespace shardscope::collector {

namespace {
constexpr double kRepeatRefusal_s = 5;
constexpr std::size_t kMostRefusals = 1024;
}  // namespace

bool Collector::State::is_of_run(const wire::Header& from, RunIdentity::Proof proof) {
  const std::string supposed = identity.known() ? std::string() : identity.run_id();
  const RunIdentity::Verdict verdict = identity.judge(from.run_id, proof);
  if (header.run_id != identity.run_id()) header.run_id = identity.run_id();
  switch (verdict) {
    case RunIdentity::Verdict::ours:
      return true;
    case RunIdentity::Verdict::ours_instead:
      forget_greetings(supposed);
      return true;
    case RunIdentity::Verdict::undecided:
      return false;
    case RunIdentity::Verdict::other:
      break;
  }
  reject("run", "rank " + std::to_string(from.rank), identity.refusal_of(from.run_id));
  return false;
}

/// Of a run that has published nothing while another has.
void Collector::State::forget_greetings(const std::string& run_id) {
  if (ranks.empty() && identity.world() == 0) return;
  report_problem("run", "run '" + run_id + "' has greeted and published nothing: another is received");
  forget_unpublished();
  nodes.clear();
  identity.forget_world();
  if (upstream) upstream->forget_greetings();
}

/// Whoever is of this run greets again.
void Collector::State::forget_unpublished() {
  std::erase_if(ranks, [this](const auto& entry) {
    const RankSession& rank = entry.second;
    if (rank.has_published()) return false;
    if (rank.row.connected) pauses.rank_down(rank.row.rank, "has published nothing", now_s());
    census.forget(rank.row.rank);
    return true;
  });
}

void Collector::State::refuse(const std::string& route, const wire::Header& to, const std::string& why) {
  const double now = now_s();
  if (refused_runs.size() >= kMostRefusals) refused_runs.clear();
  const auto [refused_at, first] = refused_runs.try_emplace(route, now);
  if (!first && now - refused_at->second < kRepeatRefusal_s) return;
  refused_at->second = now;
  wire::Message message;
  message.header = header;
  message.header.run_id = to.run_id;
  message.header.rank = to.rank;
  message.body = wire::Refusal{why};
  const wire::Frame frame = wire::encode(message);
  sockets.control_used();
  try {
    if (!sockets.control.send(zmq::const_buffer(route.data(), route.size()),
                              zmq::send_flags::sndmore | zmq::send_flags::dontwait)) {
      return;
    }
    (void)sockets.control.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::dontwait);
  } catch (const zmq::error_t&) {  // gone meanwhile
  }
}

}  // namespace shardscope::collector
