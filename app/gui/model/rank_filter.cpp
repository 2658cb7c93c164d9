#include "app/gui/model/rank_filter.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "app/gui/model/format.h"
#include "app/gui/model/match.h"

namespace shardscope::gui {
namespace {

std::optional<std::uint32_t> rank_number(std::string_view text) {
  text = trimmed(text);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The text after `word` and a space; nullopt if `text` does not begin with these.
std::optional<std::string> after(std::string_view text, std::string_view word) {
  if (!text.starts_with(word) || text.size() <= word.size() || text[word.size()] != ' ') return std::nullopt;
  return std::string(trimmed(text.substr(word.size() + 1)));
}

bool take_term(std::string_view term, RankFilter& out) {
  if (term == "slow") return out.slow = true;
  if (auto node = after(term, "node")) {
    out.nodes.push_back(std::move(*node));
    return true;
  }
  if (auto group = after(term, "group")) {
    if (!rank_number(*group)) return false;
    out.groups.push_back(std::move(*group));
    return true;
  }
  if (const auto rank = after(term, "rank")) term = trimmed(term.substr(5));
  const std::size_t dash = term.find('-');
  const auto first = rank_number(term.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : rank_number(term.substr(dash + 1));
  if (!first || !last || *last < *first) return false;
  out.numbers.emplace_back(*first, *last);
  return true;
}

void add_node(const std::string& wanted, const store::Store& store, std::set<std::uint32_t>& out) {
  std::vector<std::string> hosts;
  for (const store::RankRow& rank : store.ranks())
    if (std::ranges::find(hosts, rank.host) == hosts.end()) hosts.push_back(rank.host);
  const auto number = rank_number(wanted);
  const bool named = std::ranges::find(hosts, wanted) != hosts.end();
  for (const store::RankRow& rank : store.ranks()) {
    const bool in = named    ? rank.host == wanted
                    : number ? *number < hosts.size() && rank.host == hosts[*number]
                             : rank.host.find(wanted) != std::string::npos;
    if (in) out.insert(rank.rank);
  }
}

}  // namespace

RankFilter parse_rank_filter(std::string_view text) {
  RankFilter out;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view term = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    if (!term.empty() && !take_term(term, out) && out.problem.empty())
      out.problem =
          "'" + std::string(term) + "' is not a rank: write for example 0-7,17, node 2, group 1 or slow";
  }
  return out;
}

std::set<std::uint32_t> ranks_of(const RankFilter& filter, const store::Store& store,
                                 const std::vector<RankGroup>& groups, const std::set<std::uint32_t>& slow) {
  std::set<std::uint32_t> out;
  for (const store::RankRow& rank : store.ranks()) {
    const bool in = std::ranges::any_of(filter.numbers, [&](const auto& range) {
      return range.first <= rank.rank && rank.rank <= range.second;
    });
    if (in || (filter.slow && slow.contains(rank.rank))) out.insert(rank.rank);
  }
  for (const std::string& node : filter.nodes) add_node(node, store, out);
  for (const std::string& group : filter.groups) {
    const auto number = rank_number(group);
    if (number && *number < groups.size())
      out.insert(groups[*number].ranks.begin(), groups[*number].ranks.end());
  }
  return out;
}

std::string hidden_text(const std::set<std::uint32_t>& shown, std::size_t all) {
  const auto total = grouped(static_cast<std::int64_t>(all));
  if (shown.empty()) return "The filter matches none of " + total + (all == 1 ? " rank" : " ranks");
  std::string numbers = numbers_text({shown.begin(), shown.end()});
  constexpr std::size_t kLongest = 40;
  if (numbers.size() > kLongest) numbers = numbers.substr(0, numbers.rfind(',', kLongest)) + ", ...";
  const auto hidden = static_cast<std::int64_t>(all - std::min(all, shown.size()));
  return grouped(static_cast<std::int64_t>(shown.size())) + " of " + total + " ranks: " + numbers + ". " +
         grouped(hidden) + (hidden == 1 ? " is hidden" : " are hidden");
}

}  // namespace shardscope::gui
