#include "app/cli/rank_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

/// "3" or "3-7".
std::optional<NumberRange> range_of(std::string_view text) {
  const auto number = [](std::string_view digits) -> std::optional<std::uint32_t> {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
  };
  const std::size_t dash = text.find('-');
  const auto first = number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return NumberRange{*first, *last};
}

}  // namespace

std::vector<std::uint32_t> ranks_of(const store::Store& store, std::string_view list) {
  std::vector<std::uint32_t> ranks;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view part = list.substr(0, comma);
    const auto range = range_of(part);
    if (!range) throw UserError(fmt::format("--ranks {}: is not like 0,4-7", part), 2);
    bool any = false;
    for (const store::RankRow& row : store.ranks()) {
      if (row.rank < range->first || row.rank > range->second) continue;
      any = true;
      // Parts may overlap.
      if (std::ranges::find(ranks, row.rank) == ranks.end()) ranks.push_back(row.rank);
    }
    if (!any) throw UserError(fmt::format("--ranks {}: there is no such rank", part));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return ranks;
}

std::int64_t time_of(std::string_view option, std::string_view text) {
  using Unit = std::pair<std::string_view, double>;
  constexpr std::array kUnits{Unit{"", 1e9}, Unit{"s", 1e9}, Unit{"ms", 1e6}, Unit{"us", 1e3}, Unit{"ns", 1}};
  constexpr double kMost = 9e18;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& [name, factor] : kUnits) {
    if (error == std::errc{} && unit == name && number >= 0 && number * factor < kMost)
      return std::llround(number * factor);
  }
  throw UserError(fmt::format("{} {}: is not like 1.25s or 300ms", option, text), 2);
}

std::optional<NumberRange> steps_of(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto steps = range_of(text);
  if (!steps) throw UserError(fmt::format("--steps {}: is not like 10 or 10-20", text), 2);
  return steps;
}

}  // namespace shardscope::cli
