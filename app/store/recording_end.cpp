#include "app/store/recording_end.h"

#include <algorithm>
#include <set>
#include <vector>

#include "app/store/recorded_run.h"
#include "app/store/recording_lock.h"
#include "instrumentation/possible_time.h"

namespace shardscope::store {
namespace {

/// For ranks of this project's own training program, and of any PyTorch training.
constexpr const char* kHowRanksCome =
    "give ranks its endpoint (zero_train --publish ENDPOINT), or start a PyTorch training by `shardscope "
    "attach --record FILE -- COMMAND`";

std::string ms_text(std::int64_t ns) { return std::to_string(ns / 1'000'000) + " ms"; }

/// The reason of an early stop as text: [Note: why a recording stopped] in early_stop.h. nullopt if there was
/// none.
std::optional<std::string> why_it_stopped(Database& database, const Store& store) {
  Statement rows = database.prepare(
      "SELECT why.value, at.value, lacking.value, (SELECT value FROM meta WHERE key = 'recorder_ended') "
      "FROM meta why, meta at, meta lacking WHERE why.key = 'stopped' AND at.key = 'stopped_ns' AND "
      "lacking.key = 'lacking'");
  if (!rows.step()) return std::nullopt;
  const std::int64_t at = rows.integer(1), lacking = rows.integer(2);
  if (!instrumentation::is_time(at) || lacking < 0) return std::nullopt;
  return "recording stopped at " + ms_text(std::max<std::int64_t>(at - store.origin_ns(), 0)) +
         " of the run (" + rows.text(0) + "): " + (rows.integer(3) == 1 ? "" : "at least ") +
         std::to_string(lacking) + " events that came until the recorder ended are not in it";
}

/// Reports, for each rank, events that were received but are not in the file. A rank's row counts events
/// received; after a full disk or a crash this exceeds the events in its chunks.
void name_absent(const RecordingEnd::Read& read, bool complete, Store& store, Problems& problems) {
  std::map<std::uint32_t, std::uint64_t> known = read.events;
  for (const Gap& gap : store.gaps()) {
    if (gap.damaged) known[gap.rank] += gap.events;
  }
  for (const RankRow& row : std::vector<RankRow>(store.ranks().begin(), store.ranks().end())) {
    const std::uint64_t absent = row.events - std::min(row.events, known[row.rank]);
    // If the recording was finished, the missing events may be anywhere, not only at the end.
    if (!complete && (absent != 0 || !row.finished)) RecordedRun(store).note_cut_off(row.rank, absent);
    if (absent == 0) continue;
    problems.add("rank " + std::to_string(row.rank) + ": " + std::to_string(absent) + " of the " +
                 std::to_string(row.events) + " events that were received are not in the file");
  }
}

/// "3", "3 to 5", "3 to 5, 9 and 61 more".
std::string list_of(const std::vector<std::uint32_t>& ranks) {
  constexpr int kMost = 4;
  std::string text;
  std::size_t i = 0;
  for (int ranges = 0; i < ranks.size() && ranges < kMost; ++ranges) {
    const std::size_t first = i++;
    while (i < ranks.size() && ranks[i] == ranks[i - 1] + 1) ++i;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[first]);
    if (i - first > 1) text += (i - first > 2 ? " to " : ", ") + std::to_string(ranks[i - 1]);
  }
  if (i < ranks.size()) text += " and " + std::to_string(ranks.size() - i) + " more";
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

/// Reports ranks that did not report their end and ranks that never connected. A finished recording holds all
/// events received, but only a rank that reported its end is known to have sent all of its events.
void name_unended(const Store& store, Problems& problems) {
  std::vector<std::uint32_t> unended, absent;
  std::set<std::uint32_t> came;
  for (const RankRow& row : store.ranks()) {
    came.insert(row.rank);
    if (!row.finished) unended.push_back(row.rank);
  }
  const std::uint32_t world = store.has_tables() ? store.tables().world : 0;
  constexpr std::uint32_t kMostRanks = 1U << 20;
  for (std::uint32_t rank = 0; rank < std::min(world, kMostRanks); ++rank)
    if (!came.contains(rank)) absent.push_back(rank);
  if (!unended.empty()) {
    problems.add(list_of(unended) + " did not say that " + (unended.size() == 1 ? "it" : "they") +
                 " ended (killed, or a node's collector was, or recording ended first): how many events are "
                 "missing there is not known");
  }
  if (!absent.empty()) {
    problems.add("of the run's " + std::to_string(world) + " ranks " + std::to_string(absent.size()) +
                 (absent.size() == 1 ? " is" : " are") + " not in it: " + list_of(absent));
  }
}

}  // namespace

RecordingEnd::RecordingEnd(const std::string& path)
    : path_(path), being_written_(RecordingLock::is_taken(path)) {
  if (wants_log(path)) log_ = scan_log_of(path);
}

void RecordingEnd::look_for_rows(Database& database) {
  if (log_is_damaged()) return;
  try {
    holds_nothing_ =
        database.integer(
            "SELECT EXISTS(SELECT 1 FROM tables) OR EXISTS(SELECT 1 FROM chunks) OR EXISTS(SELECT 1 "
            "FROM ranks) OR EXISTS(SELECT 1 FROM messages) OR EXISTS(SELECT 1 FROM meta WHERE key = "
            "'stopped' OR (key = 'chunks' AND value > 0))") == 0;
  } catch (const DatabaseError&) {  // there may be rows: holds_nothing_ stays false
  }
}

bool RecordingEnd::report(Database& database, const Read& read, Run run, Store& store,
                          Problems& problems) const {
  bool complete = false;
  std::uint64_t chunks = 0;
  problems.guard("meta", [&] {
    complete = database.integer("SELECT value FROM meta WHERE key = 'complete'") == 1;
    chunks = static_cast<std::uint64_t>(database.integer("SELECT value FROM meta WHERE key = 'chunks'"));
  });
  if (holds_nothing_) {
    problems.add(empty_recording_text(complete));
  } else if (!complete) {
    std::string why = being_written_
                          ? "it is still being recorded"
                          : "the recording was not finished (the recorder ended without closing it)";
    problems.guard("meta", [&] { why = why_it_stopped(database, store).value_or(why); });
    problems.add(why + "; it holds what was committed up to " + ms_text(store.end_ns()));
    const std::string of_log =
        log_ && !log_was_folded_in(database, problems) ? problem_of(*log_, path_) : std::string();
    if (!of_log.empty()) problems.add(of_log);
  } else if (chunks > read.chunks) {
    problems.add(std::to_string(chunks - read.chunks) + " of " + std::to_string(chunks) +
                 " chunks are missing");
  }
  if (run == Run::continues_in_a_part) {
    // How many of their events are in the next part is not known here.
    for (const RankRow& row : std::vector<RankRow>(store.ranks().begin(), store.ranks().end()))
      if (!row.finished) RecordedRun(store).note_cut_off(row.rank, 0);
    return false;
  }
  name_absent(read, complete, store, problems);
  if (complete && !holds_nothing_) name_unended(store, problems);
  return complete;
}

bool RecordingEnd::log_is_damaged() const {
  return log_ && (log_->state == LogScan::State::damaged || log_->state == LogScan::State::header_damaged);
}

/// The recorder has noted its end in the file and no log is left beside it: the log was folded in afterwards.
bool RecordingEnd::log_was_folded_in(Database& database, Problems& problems) const {
  bool ended = false;
  problems.guard("meta", [&] {
    ended = database.integer("SELECT count(*) FROM meta WHERE key = 'recorder_ended' AND value = 1") == 1;
  });
  return ended && (log_->state == LogScan::State::missing || log_->state == LogScan::State::empty);
}

std::string RecordingEnd::empty_recording_text(bool complete) const {
  if (complete) {
    return std::string("nothing is in it: no rank came before the recorder ended; ") + kHowRanksCome;
  }
  std::string text =
      "nothing is in it: nothing was committed, which happens half a second after the first rank has "
      "connected. "
      "If it is being recorded, look again later; if no rank came, ";
  text += kHowRanksCome;
  if (log_ && log_->state != LogScan::State::whole) text += "; if it is a copy, " + problem_of(*log_, path_);
  return text;
}

}  // namespace shardscope::store
