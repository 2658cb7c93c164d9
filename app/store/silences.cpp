#include "app/store/silences.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <span>
#include <string_view>

namespace shardscope::store {
namespace {

constexpr std::string_view kSilent = " has been silent for ";
constexpr std::string_view kAgain = " sends again after ";
constexpr std::string_view kStopped = " is stopped";

std::string seconds_of(double seconds) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", seconds);
  return text.data();
}

/// Of "rank N<what>1.5 s..." the seconds in nanoseconds; nothing of another text.
std::optional<std::int64_t> duration_in(const Message& message, std::string_view what) {
  constexpr double kMostSeconds = 1e9;
  const std::string begin = "rank " + std::to_string(message.rank) + std::string(what);
  if (!message.text.starts_with(begin)) return std::nullopt;
  double seconds = 0;
  const char* const end = message.text.data() + message.text.size();
  const auto [after, error] = std::from_chars(message.text.data() + begin.size(), end, seconds);
  if (error != std::errc() || !(seconds >= 0 && seconds < kMostSeconds)) return std::nullopt;
  return static_cast<std::int64_t>(seconds * 1e9);
}

bool says_stopped(const Message& message) { return message.text.ends_with(kStopped); }

}  // namespace

std::vector<Silence> silences(const Store& store) {
  std::vector<Silence> out;
  const auto open_of = [&](std::uint32_t rank) {
    return std::ranges::find_if(out, [&](const Silence& one) { return one.rank == rank && one.lasts(); });
  };
  for (const Message& message : store.messages()) {
    if (const auto silent = duration_in(message, kSilent)) {
      if (open_of(message.rank) == out.end())
        out.push_back({message.rank, message.at_ns - *silent, kOpen, says_stopped(message)});
    } else if (const auto again = duration_in(message, kAgain)) {
      auto open = open_of(message.rank);
      if (open == out.end()) open = out.insert(out.end(), {.rank = message.rank});
      open->begin_ns = message.at_ns - *again;
      open->end_ns = message.at_ns;
    }
  }
  return out;
}

std::optional<Silence> silence_now(const Store& store, std::uint32_t rank) {
  const std::span<const Message> messages = store.messages();
  for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
    if (message->rank != rank) continue;
    if (duration_in(*message, kAgain)) return std::nullopt;
    if (const auto silent = duration_in(*message, kSilent))
      return Silence{rank, message->at_ns - *silent, kOpen, says_stopped(*message)};
  }
  return std::nullopt;
}

std::string silent_message(std::uint32_t rank, double seconds, std::int32_t stopped_pid) {
  const std::string text = "rank " + std::to_string(rank) + std::string(kSilent) + seconds_of(seconds);
  return stopped_pid > 0
             ? text + "; its process " + std::to_string(stopped_pid) + std::string(kStopped)
             : text + "; its connection lasts: perhaps it was stopped, or its host or network stands still";
}

std::string sends_again_message(std::uint32_t rank, double seconds, bool same_host) {
  return "rank " + std::to_string(rank) + std::string(kAgain) + seconds_of(seconds) + " of silence; " +
         (same_host ? "all its threads stood still" : "all its threads stood still, or its network did");
}

}  // namespace shardscope::store
