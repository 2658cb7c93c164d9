#include "app/store/rank_end.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "app/store/silences.h"

namespace shardscope::store {
namespace {

constexpr std::int32_t kBySignal = 128;
constexpr std::int32_t kMostSignals = 64;

/// Messages and gaps about the ends of ranks. For all ranks they are collected in one pass: the window calls
/// first_failure() in each frame, and a run may have thousands of ranks and of messages.
struct EndMessages {
  std::map<std::uint32_t, Silence> silent;  ///< silences that last
  std::set<std::uint32_t> gone;             ///< reported by the collector
  std::set<std::uint32_t> cut_off;
  bool any_finished = false;
};

bool any_finished(const Store& store) { return std::ranges::any_of(store.ranks(), &RankRow::finished); }

EndMessages end_messages(const Store& store) {
  EndMessages out;
  for (const Silence& silence : silences(store)) {
    if (silence.lasts()) out.silent.insert_or_assign(silence.rank, silence);
  }
  for (const Message& message : store.messages()) {
    if (is_gone_message(message)) out.gone.insert(message.rank);
  }
  for (const Gap& gap : store.gaps()) {
    if (gap.cut_off) out.cut_off.insert(gap.rank);
  }
  out.any_finished = any_finished(store);
  return out;
}

/// The part that end_of() needs for this rank: empty where its row has its end, because a window calls it for
/// each shown rank in every frame.
EndMessages end_messages_of(const Store& store, const RankRow& row) {
  EndMessages out;
  if (row.finished || row.exit_code != 0) return out;
  const std::uint32_t rank = row.rank;
  if (const auto silence = silence_now(store, rank)) out.silent.emplace(rank, *silence);
  if (row.connected || !out.silent.empty()) return out;
  if (std::ranges::any_of(store.messages(), [&](const Message& message) {
        return message.rank == rank && is_gone_message(message);
      }))
    out.gone.insert(rank);
  if (std::ranges::any_of(store.gaps(), [&](const Gap& gap) { return gap.cut_off && gap.rank == rank; }))
    out.cut_off.insert(rank);
  out.any_finished = any_finished(store);
  return out;
}

/// Distinguishes a rank that died from one whose events end with the recording, or with the received
/// events: the collector reported it gone, another rank has finished, or other ranks have later events.
bool is_gone(const Store& store, const RankRow& row, const EndMessages& messages) {
  if (row.events == 0) return false;
  if (messages.gone.contains(row.rank)) return true;
  if (row.outlived_recording || messages.cut_off.contains(row.rank)) return false;
  return row.last_ns < store.end_ns() || messages.any_finished;
}

std::string signal_text(std::int32_t exit_code) {
  const int signal = exit_code - kBySignal;
  const char* name = sigabbrev_np(signal);
  return "killed by signal " + std::to_string(signal) +
         (name == nullptr ? std::string() : " (SIG" + std::string(name) + ")");
}

/// N of "rank N<after>"; the first of "rank N, M<after>".
std::optional<std::uint32_t> rank_named(std::string_view text, std::string_view after) {
  constexpr std::string_view kRank = "rank ";
  for (std::size_t at = text.find(kRank); at != std::string_view::npos; at = text.find(kRank, at + 1)) {
    const char* const begin = text.data() + at + kRank.size();
    const char* const end = text.data() + text.size();
    std::uint32_t rank = 0;
    const auto [next, error] = std::from_chars(begin, end, rank);
    if (error != std::errc()) continue;
    std::string_view rest(next, static_cast<std::size_t>(end - next));
    while (rest.starts_with(", ")) {
      rest.remove_prefix(2);
      rest.remove_prefix(std::min(rest.find_first_not_of("0123456789"), rest.size()));
    }
    if (rest.starts_with(after)) return rank;
  }
  return std::nullopt;
}

RankEnd end_of(const Store& store, const RankRow& row, const EndMessages& messages) {
  RankEnd out{.rank = row.rank,
              .exit_code = row.exit_code,
              .at_ns = std::min(row.last_ns, store.end_ns()),
              .exit_message = row.exit_message};
  if (row.finished) {
    out.how = row.exit_code == 0 ? RankEnd::How::finished : RankEnd::How::failed;
  } else if (row.exit_code > kBySignal && row.exit_code <= kBySignal + kMostSignals) {
    out.how = RankEnd::How::killed;
  } else if (row.exit_code != 0) {
    out.how = RankEnd::How::failed;
  } else if (const auto silence = messages.silent.find(row.rank); silence != messages.silent.end()) {
    out.how = RankEnd::How::stopped;
    out.stop_seen = silence->second.stopped;
  } else if (!row.connected) {
    out.how = is_gone(store, row, messages) ? RankEnd::How::silent
              : row.events > 0              ? RankEnd::How::cut_off
                                            : RankEnd::How::running;
  }
  return out;
}

}  // namespace

RankEnd rank_end(const Store& store, const RankRow& row) {
  return end_of(store, row, end_messages_of(store, row));
}

std::optional<RankEnd> first_failure(const Store& store) {
  using How = RankEnd::How;
  const EndMessages messages = end_messages(store);
  std::vector<RankEnd> failed;
  for (const RankRow& row : store.ranks()) {
    if (row.finished && row.exit_code == 0) continue;
    RankEnd end = end_of(store, row, messages);
    if (is_failure(end.how)) failed.push_back(std::move(end));
  }
  if (failed.empty()) return std::nullopt;
  std::stable_sort(failed.begin(), failed.end(),
                   [](const RankEnd& a, const RankEnd& b) { return a.at_ns < b.at_ns; });
  if (const auto killed = std::ranges::find(failed, How::killed, &RankEnd::how); killed != failed.end())
    return *killed;
  std::map<std::uint32_t, const RankEnd*> of_rank;
  for (const RankEnd& end : failed) of_rank.emplace(end.rank, &end);
  const auto find = [&](std::optional<std::uint32_t> rank) -> const RankEnd* {
    const auto found = rank ? of_rank.find(*rank) : of_rank.end();
    return found == of_rank.end() ? nullptr : found->second;
  };
  for (const RankEnd& end : failed) {
    const RankEnd* gone = find(rank_named(end.exit_message, " ended ("));
    if (gone != nullptr && gone->how == How::silent) return *gone;
  }
  for (const RankEnd& end : failed) {
    if (const RankEnd* named = find(rank_named(end.exit_message, " failed: "))) return *named;
  }
  return failed.front();
}

std::string words_on(const Store& store, const RankEnd& first) {
  if (!first.exit_message.empty()) return first.exit_message;
  for (const RankRow& row : store.ranks()) {
    if (row.rank == first.rank || row.exit_code == 0 || row.exit_message.empty()) continue;
    const std::string then = "rank " + std::to_string(row.rank) + " then failed: ";
    const std::size_t cause = row.exit_message.find(" failed: ");
    return then + (row.exit_message.starts_with("rank ") && cause != std::string::npos
                       ? row.exit_message.substr(cause + 9)
                       : row.exit_message);
  }
  return {};
}

std::string seconds_text(std::int64_t ns) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f s", static_cast<double>(ns) * 1e-9);
  return text.data();
}

std::string text_of(const RankEnd& end) {
  const std::string rank = "rank " + std::to_string(end.rank);
  switch (end.how) {
    case RankEnd::How::running:
      return rank + " is running";
    case RankEnd::How::stopped:
      return rank + (end.stop_seen ? " is stopped" : " is silent, perhaps stopped");
    case RankEnd::How::finished:
      return rank + " finished";
    case RankEnd::How::failed:
      return rank + " failed with exit code " + std::to_string(end.exit_code);
    case RankEnd::How::killed:
      return rank + " was " + signal_text(end.exit_code);
    case RankEnd::How::silent:
      return rank + " ended without a word";
    case RankEnd::How::cut_off:
      return "events of " + rank + " end";
  }
  return rank;
}

std::string mark_of(const RankEnd& end) {
  switch (end.how) {
    case RankEnd::How::running:
      return {};
    case RankEnd::How::stopped:
      return (end.stop_seen ? "stopped: no events after " : "silent, perhaps stopped: no events after ") +
             seconds_text(end.at_ns);
    case RankEnd::How::finished:
      return "rank ended here";
    case RankEnd::How::failed:
      return "rank failed here (exit code " + std::to_string(end.exit_code) + ")";
    case RankEnd::How::killed:
      return "rank ended here (" + signal_text(end.exit_code) + ")";
    case RankEnd::How::silent:
    case RankEnd::How::cut_off:
      return "no events after " + seconds_text(end.at_ns);
  }
  return {};
}

}  // namespace shardscope::store
