// The choices of rows as lines of the settings file.
#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "app/gui/model/timeline_rows.h"

namespace shardscope::gui {
namespace {

constexpr std::string_view kOrder = "RankOrder=", kRankHeight = "RankHeight=", kGrouping = "RankGrouping=",
                           kCurves = "Curves=", kSampled = "SampledCurve=";
constexpr std::size_t kLongestName = 200;

/// The number after `key`, if it is below `end`.
std::optional<std::uint32_t> choice_after(std::string_view line, std::string_view key, std::uint32_t end) {
  if (!line.starts_with(key)) return std::nullopt;
  line.remove_prefix(key.size());
  std::uint32_t value = 0;
  const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc() || rest != line.data() + line.size() || value >= end) return std::nullopt;
  return value;
}

}  // namespace

std::vector<std::string> lines_of(const RowChoices& choices) {
  const RankOrder order = choices.order == RankOrder::own ? RankOrder::number : choices.order;
  std::uint32_t curves = 0;
  for (const RowCounter counter : choices.counters) curves |= 1U << static_cast<unsigned>(counter);
  std::vector<std::string> out{
      std::string(kOrder) + std::to_string(static_cast<int>(order)),
      std::string(kRankHeight) + std::to_string(static_cast<int>(choices.rank_height)),
      std::string(kGrouping) + choices.grouping, std::string(kCurves) + std::to_string(curves)};
  for (const std::string& name : choices.sampled) out.push_back(std::string(kSampled) + name);
  return out;
}

void take_line(RowChoices& choices, std::string_view line) {
  if (const auto order = choice_after(line, kOrder, static_cast<std::uint32_t>(RankOrder::own)))
    choices.order = static_cast<RankOrder>(*order);
  if (const auto height = choice_after(line, kRankHeight, static_cast<std::uint32_t>(RankHeight::heat) + 1))
    choices.rank_height = static_cast<RankHeight>(*height);
  if (line.starts_with(kGrouping) && line.size() < kLongestName)
    choices.grouping = line.substr(kGrouping.size());
  constexpr std::size_t kMostSampled = 64;
  if (line.starts_with(kSampled) && line.size() < kLongestName && choices.sampled.size() < kMostSampled)
    choices.sampled.emplace(line.substr(kSampled.size()));
  if (const auto curves = choice_after(line, kCurves, 1U << kRowCounters)) {
    choices.counters.clear();
    for (int i = 0; i < kRowCounters; ++i) {
      if ((*curves >> static_cast<unsigned>(i) & 1U) != 0)
        choices.counters.insert(static_cast<RowCounter>(i));
    }
  }
}

}  // namespace shardscope::gui
