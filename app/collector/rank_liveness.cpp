#include "app/collector/rank_liveness.h"

#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>

#include "app/collector/now.h"
#include "app/store/silences.h"

namespace shardscope::collector {

using instrumentation::Severity;
using store::Resumption;

namespace {
constexpr double kSilentAfter_s = RankTable::kSilentAfter_s;
constexpr double kStoppedAfter_s = 2.5;  ///< the same, where the kernel reports its process as stopped

/// Whether the kernel reports the process as stopped, by a signal or a debugger.
bool is_stopped(std::int32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  // The name, in parentheses, may contain any characters.
  const std::size_t name_end = text.rfind(") ");
  return name_end != std::string::npos && name_end + 2 < text.size() &&
         (text[name_end + 2] == 'T' || text[name_end + 2] == 't');
}
}  // namespace

void RankLiveness::lost(RankSession& rank, const std::string& why) {
  if (!rank.row.connected) return;
  rank.row.connected = false;
  rank.silent_since_s.reset();
  rank.silence_recorded_s.reset();
  rank.row_dirty = true;
  rank.row_sent_s = -1e300;
  listed_.rank_changed(rank);
  rank.listed_s = nullptr;
  rank.route.clear();
  rank.answer.connection_ended();
  rank.end_unconfirmed = false;
  ranks_.note_change(rank, now_s());
  if (rank.row.finished) return;
  record_.flush_all(rank);
  if (Upstream* const above = relay_.upstream()) above->pack_soon();
  messages_.record(rank.row.rank, Severity::error, store::gone_message(rank.row.rank, why));
  pauses_.rank_down(rank.row.rank, why, now_s());
}

void RankLiveness::begin_silence(RankSession& rank, double now) {
  rank.silent_since_s = rank.last_control();
  pauses_.rank_down(rank.row.rank, "is silent", now);
}

void RankLiveness::end_silence(RankSession& rank, double now, store::Resumption how) {
  if (!rank.row.connected || rank.row.finished) {
    rank.silence_recorded_s.reset();
    return;
  }
  const double since_s = rank.silent_since_s.value_or(rank.silence_recorded_s.value_or(rank.last_control()));
  const bool restarted = how == Resumption::restarted;
  listed_.rank_changed(rank);
  // on_hello() calls rank_up() for another process, which is not part of a pause that has begun.
  if (rank.silent() && !restarted) pauses_.rank_up(rank.row.rank);
  if (Upstream* const above = relay_.upstream()) above->rank_was_silent(rank.row.rank);
  rank.silent_since_s.reset();
  if (rank.node_clock != nullptr && !restarted) return;
  rank.silence_recorded_s.reset();
  const std::string text = store::resumption_message(rank.row.rank, now - since_s, how);
  if (restarted) {
    messages_.record(rank.row.rank, Severity::warning, text);
  } else {
    messages_.report_rank(rank, Severity::warning, text);
  }
}

void RankLiveness::note_silence_of_node(RankSession& rank, std::uint64_t incarnation,
                                        const std::string& text) {
  store::Message message;
  message.rank = rank.row.rank;
  message.text = text;
  if (const auto silent_ns = store::silent_for(message)) {
    rank.silence_recorded_s = now_s() - static_cast<double>(*silent_ns) * 1e-9;
    if (rank.control_incarnation != 0 && rank.control_incarnation != incarnation)
      end_silence(rank, now_s(), Resumption::restarted);
  }
  if (store::is_resumption_message(message)) rank.silence_recorded_s.reset();
}

// [Note: silent, not gone]
// The kernel closes the connections of a process that ends, however it ends, and a send to a closed one fails
// (router_mandatory): that rank is lost. A rank that sends nothing over an open connection is stopped, or its
// host or network is down. It may continue at any time, so it stays connected, and only a pause does not
// wait for it. A relayed rank has no connection to this collector: its node's collector lists the ranks that
// are connected to it, and which of them are silent (ListedRanks). Texts about a silence are written by the
// collector that has the connection, and relayed; but each collector reports a restart of a rank itself,
// because a text about a process that has ended might not arrive.
void RankLiveness::check_silence(RankSession& rank, double now) {
  const double silent_s = now - rank.last_control();
  if (rank.row.finished || silent_s < kStoppedAfter_s) return;
  if (rank.node_clock != nullptr) {
    if (silent_s > kSilentAfter_s)
      lost(rank, "has not been at its node's collector for " +
                     std::to_string(static_cast<int>(kSilentAfter_s)) + " s");
    return;
  }
  if (rank.silent()) return;
  const bool stopped = rank.pid_seen && is_stopped(rank.row.pid);
  if (!stopped && silent_s <= kSilentAfter_s) return;
  begin_silence(rank, now);
  messages_.report_rank(rank, Severity::warning,
                        store::silent_message(rank.row.rank, silent_s, stopped ? rank.row.pid : 0));
}

void RankLiveness::check(RankSession& rank, double now) {
  if (rank.pid_seen && kill(rank.row.pid, 0) != 0 && errno == ESRCH) {
    lost(rank, "(process " + std::to_string(rank.row.pid) + ") is gone");
  } else {
    check_silence(rank, now);
  }
}

}  // namespace shardscope::collector
