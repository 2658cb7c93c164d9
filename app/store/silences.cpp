#include "app/store/silences.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <map>
#include <span>
#include <string_view>

namespace shardscope::store {
namespace {

constexpr std::string_view kSilent = " has been silent for ";
constexpr std::string_view kAgain = " sends again after ";
constexpr std::string_view kNoThreadRan = "none of its threads ran";
constexpr std::string_view kStopped = " is stopped";
constexpr std::string_view kGone = " without reporting its end";

std::string seconds_of(double seconds) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", seconds);
  return text.data();
}

/// The text after "rank N", where N is the message's own rank; empty for other texts.
std::string_view after_rank(const Message& message) noexcept {
  constexpr std::string_view kRank = "rank ";
  std::string_view text = message.text;
  if (!text.starts_with(kRank)) return {};
  text.remove_prefix(kRank.size());
  std::uint32_t rank = 0;
  const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || rank != message.rank) return {};
  return text.substr(static_cast<std::size_t>(next - text.data()));
}

/// The duration after "rank N<what>", nanoseconds; nullopt for other texts. Called for all messages of a run,
/// repeatedly: allocates nothing.
std::optional<std::int64_t> duration_in(const Message& message, std::string_view what) noexcept {
  constexpr double kMostSeconds = 1e9;
  std::string_view text = after_rank(message);
  if (!text.starts_with(what)) return std::nullopt;
  text.remove_prefix(what.size());
  double seconds = 0;
  const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || !(seconds >= 0 && seconds < kMostSeconds)) return std::nullopt;
  return static_cast<std::int64_t>(seconds * 1e9);
}

bool reports_stopped(const Message& message) { return message.text.ends_with(kStopped); }

/// Begin of a silence that lasts and is reported by `message`: the message rounds, and may count from before
/// events that came with it. Not for one that has ended: the rank's last event may be later than it.
std::int64_t begin_of_lasting(const Store& store, const Message& message, std::int64_t silent_ns) {
  const auto row = std::ranges::find(store.ranks(), message.rank, &RankRow::rank);
  const std::int64_t alive_ns = row == store.ranks().end() ? Store::kBegin : row->last_ns;
  return std::max(message.at_ns - silent_ns, std::min(alive_ns, message.at_ns));
}

}  // namespace

std::vector<Silence> silences(const Store& store) {
  std::vector<Silence> out;
  struct Open {
    std::size_t at = 0;  ///< in `out`
    const Message* message = nullptr;
  };
  std::map<std::uint32_t, Open> open;  // by rank, those that last
  for (const Message& message : store.messages()) {
    if (const auto silent = duration_in(message, kSilent)) {
      if (open.try_emplace(message.rank, Open{out.size(), &message}).second)
        out.push_back({message.rank, message.at_ns - *silent, kOpen, reports_stopped(message)});
    } else if (const auto again = duration_in(message, kAgain)) {
      auto ended = open.extract(message.rank);
      if (ended.empty()) out.push_back({.rank = message.rank, .begin_ns = message.at_ns - *again});
      Silence& silence = ended.empty() ? out.back() : out[ended.mapped().at];
      // The message of its end may have a later begin: that of a collector above the rank's own.
      silence.begin_ns = std::min(silence.begin_ns, message.at_ns - *again);
      silence.end_ns = message.at_ns;
      silence.process_frozen = message.text.ends_with(kNoThreadRan);
    } else if (is_gone_message(message)) {
      if (const auto ended = open.extract(message.rank); !ended.empty())
        out[ended.mapped().at].end_ns = message.at_ns;
    }
  }
  for (const auto& [rank, lasting] : open) {
    Silence& silence = out[lasting.at];
    silence.begin_ns = begin_of_lasting(store, *lasting.message, lasting.message->at_ns - silence.begin_ns);
  }
  return out;
}

std::optional<Silence> silence_now(const Store& store, std::uint32_t rank) {
  const std::span<const Message> messages = store.messages();
  std::optional<Silence> lasts;
  for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
    if (message->rank != rank) continue;
    if (duration_in(*message, kAgain) || is_gone_message(*message)) break;
    if (const auto silent = duration_in(*message, kSilent))  // the earliest message counts
      lasts = Silence{rank, begin_of_lasting(store, *message, *silent), kOpen, reports_stopped(*message)};
  }
  return lasts;
}

std::string silent_message(std::uint32_t rank, double seconds, std::int32_t stopped_pid) {
  const std::string text = "rank " + std::to_string(rank) + std::string(kSilent) + seconds_of(seconds);
  return stopped_pid > 0 ? text + "; its process " + std::to_string(stopped_pid) + std::string(kStopped)
                         : text +
                               "; its connection lasts: perhaps it was stopped, or its host was suspended or "
                               "its network does not respond";
}

std::string resumption_message(std::uint32_t rank, double seconds, Resumption how) {
  std::string text =
      "rank " + std::to_string(rank) + std::string(kAgain) + seconds_of(seconds) + " of silence; ";
  switch (how) {
    case Resumption::on_this_host:
      return text + std::string(kNoThreadRan);
    case Resumption::on_another_host:
      return text + "none of its threads ran, or its network did not respond";
    case Resumption::restarted:
      return text + "another process does, or the same through another collector of its node";
  }
  return text;
}

std::string gone_message(std::uint32_t rank, const std::string& why) {
  return "rank " + std::to_string(rank) + " " + why + std::string(kGone);
}

std::optional<std::int64_t> silent_for(const Message& message) noexcept {
  return duration_in(message, kSilent);
}

bool is_resumption_message(const Message& message) noexcept {
  return duration_in(message, kAgain).has_value();
}

bool is_gone_message(const Message& message) noexcept {
  return message.severity == ev::Severity::error && after_rank(message).ends_with(kGone);
}

}  // namespace shardscope::store
