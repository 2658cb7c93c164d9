#include "app/cli/rank_failure.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "app/store/rank_end.h"

namespace shardscope::cli {

namespace {

/// The number after `words` in `text` from `at` on; sets `at` to its end.
std::optional<int> number_after(std::string_view text, std::string_view words, std::size_t& at) {
  const std::size_t found = text.find(words, at);
  if (found == std::string_view::npos) return std::nullopt;
  const char* const begin = text.data() + found + words.size();
  int number = 0;
  const auto [next, error] = std::from_chars(begin, text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  at = static_cast<std::size_t>(next - text.data());
  return number;
}

}  // namespace

std::optional<RankExit> exit_in_notice(const std::string& notice) {
  // "mpirun noticed that process rank 1 with PID 4711 on node n1 exited on signal 9 (Killed)."; a line may be
  // broken anywhere.
  std::string text = notice;
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::size_t at = 0;
  const auto rank = number_after(text, "noticed that process rank ", at);
  const auto signal = rank ? number_after(text, "exited on signal ", at) : std::nullopt;
  if (!signal) return std::nullopt;
  return RankExit{static_cast<std::uint32_t>(*rank), 128 + *signal};
}

std::string failure_text(const store::Store& store, const std::string& reported) {
  const auto first = store::first_failure(store);
  if (!first || first->how == store::RankEnd::How::failed) return reported;
  std::string text = store::text_of(*first);
  if (first->at_ns > 0) text += " at " + store::seconds_text(first->at_ns) + " of the run";
  return reported.empty() ? text : text + "; the others ended because of it:\n  " + reported;
}

}  // namespace shardscope::cli
