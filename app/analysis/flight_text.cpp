// The comparison of Flight Recorder dumps, as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>

#include "app/analysis/flight_compare.h"
#include "app/analysis/foreign_json.h"

namespace shardscope::analysis {
namespace {

using What = FlightDifference::What;

std::string these_ranks(const std::vector<std::uint32_t>& ranks) {
  constexpr std::size_t kShown = 8;
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kShown); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (ranks.size() > kShown) out += fmt::format(" and {} more", ranks.size() - kShown);
  return out;
}

std::string upper(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

/// "group 0 (default_pg)"
std::string group_text(const FlightGroupState& group) {
  const bool described =
      !group.description.empty() && group.description != "undefined" && group.description != group.name;
  return fmt::format("group {}{}", group.name, described ? " (" + group.description + ")" : "");
}

/// "[1024, 768], [3] and 4 more"
std::string sizes_text(const FlightTexts::Sizes& sizes) {
  constexpr std::size_t kShown = 3;
  std::string out;
  for (std::size_t i = 0; i < std::min(sizes.of.size(), kShown); ++i)
    out += fmt::format("{}[{}]", i == 0 ? "" : ", ", fmt::join(sizes.of[i], ", "));
  if (sizes.of.size() > kShown) out += fmt::format(" and {} more", sizes.of.size() - kShown);
  return out;
}

class Words {
 public:
  Words(const FlightComparison& comparison, const FlightTexts& texts) : of_(comparison), texts_(texts) {}

  /// "all_reduce #5"
  [[nodiscard]] std::string operation(const FlightEntry& entry) const {
    return fmt::format("{} #{}", texts_.text_of(entry.name), entry.sequence);
  }

  /// "[4] Float", "[4] Float to [8] Float"; empty without tensors.
  [[nodiscard]] std::string tensors(const FlightEntry& entry) const {
    const auto side = [&](FlightTexts::Id sizes, FlightTexts::Id types) {
      const std::string text = sizes_text(texts_.sizes_of(sizes));
      return text.empty() || texts_.text_of(types).empty() ? text : text + " " + texts_.text_of(types);
    };
    std::string in = side(entry.input_sizes, entry.input_types);
    std::string out = side(entry.output_sizes, entry.output_types);
    if (in.empty() || in == out) return out;
    return out.empty() ? in : in + " to " + out;
  }

  /// "train.py:31 in step"; empty if no stack was recorded.
  [[nodiscard]] std::string place(const FlightEntry& entry) const {
    const FlightFrame* frame = users_frame(texts_.frames_of(entry.frames));
    return frame == nullptr ? "" : fmt::format("{}:{} in {}", frame->file, frame->line, frame->function);
  }

  /// "[4] Float, started, at train.py:31 in step"
  [[nodiscard]] std::string details(const FlightEntry& entry) const {
    const std::string sizes = tensors(entry), at = place(entry);
    return fmt::format("{}{}{}{}", sizes.empty() ? "" : sizes + ", ", name_of(entry.state),
                       entry.timed_out ? " and timed out" : "", at.empty() ? "" : ", at " + at);
  }

  /// "all_reduce #5, [4] Float, started, at train.py:31 in step"
  [[nodiscard]] std::string whole(const FlightEntry& entry) const {
    return operation(entry) + ", " + details(entry);
  }

  /// "all_reduce #5 of group 0 (default_pg), [4] Float, ..."
  [[nodiscard]] std::string open_of(const FlightRankState& rank) const {
    const std::string group =
        rank.group < of_.groups.size() ? " of " + group_text(of_.groups[rank.group]) : "";
    return operation(*rank.open) + group + ", " + details(*rank.open);
  }

  /// "ranks 0, 2 all_reduce #5, [4] Float, ...; rank 1 nothing; its last was all_reduce #4, ..."
  [[nodiscard]] std::string sides(const FlightGroupState& group) const {
    std::string out;
    for (const FlightSide& side : group.difference->sides) {
      out += (out.empty() ? "" : "; ") + these_ranks(side.ranks) + " ";
      if (side.entry != nullptr) {
        out += whole(*side.entry);
        continue;
      }
      out += "nothing";
      if (group.difference->point_to_point) continue;
      out += last_in(group, side.ranks.front(), ", the last was ", " in this group at all");
    }
    return out;
  }

  [[nodiscard]] std::string difference(const FlightGroupState& group) const {
    const FlightDifference& one = *group.difference;
    const std::string where = fmt::format("{} #{}", group_text(group), one.sequence);
    switch (one.what) {
      case What::operation:
        return fmt::format("{}: the ranks issued different operations: {}.", where, sides(group));
      case What::count:
        return fmt::format("{}: the ranks coalesced different numbers of operations: {}.", where,
                           sides(group));
      case What::sizes:
        return fmt::format("{}: the ranks issued different sizes{}: {}.", where,
                           one.detail.empty() ? "" : " (" + one.detail + ")", sides(group));
      case What::type:
        return fmt::format("{}: the ranks issued different data types: {}.", where, sides(group));
      case What::missing:
        return fmt::format("{}: not every rank issued it: {}.", where, sides(group));
      case What::unfinished:
        return fmt::format("{}: all issued the same, and it has not ended: {}.", where, sides(group));
    }
    return "";
  }

  /// The last operation of a rank in a group, after the text `before`; `none` if its dump has none.
  [[nodiscard]] std::string last_in(const FlightGroupState& group, std::uint32_t rank, const char* before,
                                    const char* none) const {
    const auto progress = std::ranges::find(group.ranks, rank, &FlightProgress::rank);
    return progress == group.ranks.end() || progress->last == nullptr ? none
                                                                      : before + whole(*progress->last);
  }

  /// The first rank that waits for one of `culprits`; null if there is none.
  [[nodiscard]] const FlightRankState* first_waiting() const {
    const auto found = std::ranges::find_if(of_.ranks, [&](const FlightRankState& one) {
      return std::ranges::find_first_of(one.waits_for, of_.culprits) != one.waits_for.end();
    });
    return found == of_.ranks.end() ? nullptr : &*found;
  }

  /// "Ranks 0, 2 wait for rank 1 in all_reduce #5 of group 0, ... Rank 1 never issued it: ..."
  [[nodiscard]] std::string who_waits(const FlightRankState& first) const {
    std::vector<std::uint32_t> waiting;
    for (const FlightRankState& one : of_.ranks) {
      if (one.open != nullptr && one.group == first.group && one.open->sequence == first.open->sequence &&
          one.open->name == first.open->name && one.waits_for == first.waits_for)
        waiting.push_back(one.rank);
    }
    std::string out =
        fmt::format("{} {} for {} in {}.", upper(these_ranks(waiting)),
                    waiting.size() == 1 ? "waits" : "wait", these_ranks(first.waits_for), open_of(first));
    constexpr std::size_t kMostDescribed = 4;
    std::size_t described = 0;
    for (const std::uint32_t rank : of_.culprits) {
      if (described++ == kMostDescribed) break;
      out += " " + instead(rank, first);
    }
    return out;
  }

  /// What the waited-for `rank` did instead.
  [[nodiscard]] std::string instead(std::uint32_t rank, const FlightRankState& first) const {
    const auto state = std::ranges::find(of_.ranks, rank, &FlightRankState::rank);
    if (state == of_.ranks.end())
      return fmt::format("Rank {} has no dump here: it ended before it wrote one, or its file was not given.",
                         rank);
    std::string out = fmt::format("Rank {} ", rank);
    if (first.group < of_.groups.size() && !first.open->point_to_point) {
      const FlightGroupState& group = of_.groups[first.group];
      const auto progress = std::ranges::find(group.ranks, rank, &FlightProgress::rank);
      if (progress != group.ranks.end() && progress->whole &&
          progress->issued.value_or(-1) < first.open->sequence)
        out += "never issued it" + last_in(group, rank, ": its last there is ", ", nor any other there") +
               ". It ";
      else if (progress != group.ranks.end() && !progress->issued)
        out +=
            "has nothing of this group in its dump: it issued none, or the dump leaves out what ended. It ";
    }
    if (state->open != nullptr) return out + "is in " + open_of(*state) + ".";
    out += "is in no recorded operation";
    // Already named if the last one in the group is the last of all.
    const bool named = state->last == nullptr || out.find(whole(*state->last)) != std::string::npos;
    return out + (named ? "." : "; its last of all is " + whole(*state->last) + ".");
  }

  [[nodiscard]] std::string paragraph() const {
    const FlightGroupState* chief = chief_group();
    const FlightRankState* first = first_waiting();
    if (chief == nullptr && first == nullptr)
      return of_.without_dump.empty()
                 ? "The ranks issued the same operations, and all have ended: these dumps show no hang."
                 : fmt::format(
                       "What the dumps here hold is the same on all their ranks and has ended, but {} "
                       "{} none: it ended before it wrote one, or its file was not given.",
                       these_ranks(of_.without_dump), of_.without_dump.size() == 1 ? "has" : "have");
    const bool is_plain = chief == nullptr || chief->difference->what == What::missing ||
                          chief->difference->what == What::unfinished;
    // A different operation is the cause, so it precedes the waits elsewhere. A missing operation is
    // described by the waits.
    const bool same = chief != nullptr && first != nullptr && first->group < of_.groups.size() &&
                      &of_.groups[first->group] == chief &&
                      first->open->point_to_point == chief->difference->point_to_point &&
                      first->open->sequence == chief->difference->sequence;
    std::string out;
    if (chief != nullptr && !(is_plain && same)) out = upper(difference(*chief));
    if (first != nullptr && (is_plain || !same)) out += (out.empty() ? "" : " ") + who_waits(*first);
    if (is_plain && !timed_out())
      out += " Nothing has timed out: an instant of a run that goes on looks so too.";
    return out;
  }

  /// Of the groups with a difference the one with the clearest, and of these the earliest.
  [[nodiscard]] const FlightGroupState* chief_group() const {
    const auto rank_of = [](const FlightGroupState& group) {
      const What what = group.difference->what;
      return std::pair(what == What::unfinished ? 2
                       : what == What::missing  ? 1
                                                : 0,
                       at_ns(*group.difference));
    };
    const FlightGroupState* out = nullptr;
    for (const FlightGroupState& group : of_.groups) {
      if (group.difference && (out == nullptr || rank_of(group) < rank_of(*out))) out = &group;
    }
    return out;
  }

  [[nodiscard]] bool timed_out() const {
    return std::ranges::any_of(
        of_.ranks, [](const FlightRankState& one) { return one.open != nullptr && one.open->timed_out; });
  }

  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> out = {paragraph()};
    const FlightGroupState* chief = chief_group();
    for (const FlightGroupState& group : of_.groups) {
      if (group.difference && &group != chief) out.push_back(difference(group));
    }
    for (const FlightRankState& one : of_.ranks) {
      std::string text = fmt::format("rank {:<4} ", one.rank);
      if (one.open != nullptr)
        text += open_of(one);
      else if (one.last != nullptr)
        text += "nothing open; the last was " + whole(*one.last);
      else
        text += "its dump holds no operation";
      if (!one.waits_for.empty()) text += "; waits for " + these_ranks(one.waits_for);
      out.push_back(std::move(text));
    }
    if (!of_.without_dump.empty()) out.push_back("without a dump: " + these_ranks(of_.without_dump));
    return out;
  }

 private:
  static std::int64_t at_ns(const FlightDifference& difference) {
    std::int64_t out = INT64_MAX;
    for (const FlightSide& side : difference.sides) {
      if (side.entry != nullptr) out = std::min(out, side.entry->created_ns);
    }
    return out;
  }

  const FlightComparison& of_;
  const FlightTexts& texts_;
};

nlohmann::json entry_json(const FlightEntry* entry, const FlightTexts& texts) {
  if (entry == nullptr) return nullptr;
  nlohmann::json frames = nlohmann::json::array();
  for (const FlightFrame& frame : texts.frames_of(entry->frames))
    frames.push_back({{"function", frame.function}, {"file", frame.file}, {"line", frame.line}});
  return {{"operation", texts.text_of(entry->name)},
          {"backend", texts.text_of(entry->backend)},
          {"group", texts.text_of(entry->group)},
          {"sequence", entry->sequence},
          {"point_to_point", entry->point_to_point},
          {"input_sizes", texts.sizes_of(entry->input_sizes).of},
          {"output_sizes", texts.sizes_of(entry->output_sizes).of},
          {"input_types", texts.text_of(entry->input_types)},
          {"output_types", texts.text_of(entry->output_types)},
          {"state", name_of(entry->state)},
          {"timed_out", entry->timed_out},
          {"created_ns", entry->created_ns},
          {"frames", std::move(frames)}};
}

template <typename Value>
nlohmann::json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

std::vector<std::string> flight_lines(const FlightComparison& comparison, const FlightTexts& texts) {
  return Words(comparison, texts).lines();
}

std::string flight_json(const FlightComparison& comparison, const std::vector<FlightDump>& dumps,
                        const FlightTexts& texts) {
  const Words words(comparison, texts);
  nlohmann::json out = {{"text", words.paragraph()},
                        {"lines", words.lines()},
                        {"culprits", comparison.culprits},
                        {"without_dump", comparison.without_dump},
                        {"timed_out", words.timed_out()}};
  out["groups"] = nlohmann::json::array();
  for (const FlightGroupState& group : comparison.groups) {
    nlohmann::json ranks = nlohmann::json::array(), difference;
    for (const FlightProgress& one : group.ranks)
      ranks.push_back({{"rank", one.rank},
                       {"has_dump", one.has_dump},
                       {"first_held", or_null(one.first)},
                       {"issued", or_null(one.issued)},
                       {"completed", or_null(one.completed)}});
    if (group.difference) {
      nlohmann::json sides = nlohmann::json::array();
      for (const FlightSide& side : group.difference->sides)
        sides.push_back({{"ranks", side.ranks}, {"entry", entry_json(side.entry, texts)}});
      difference = {{"what", name_of(group.difference->what)},
                    {"sequence", group.difference->sequence},
                    {"point_to_point", group.difference->point_to_point},
                    {"detail", group.difference->detail},
                    {"sides", std::move(sides)}};
    }
    out["groups"].push_back({{"name", group.name},
                             {"description", group.description},
                             {"ranks", std::move(ranks)},
                             {"difference", std::move(difference)}});
  }
  out["ranks"] = nlohmann::json::array();
  for (const FlightRankState& one : comparison.ranks) {
    const auto dump = std::ranges::find(dumps, one.rank, &FlightDump::rank);
    out["ranks"].push_back({{"rank", one.rank},
                            {"version", dump == dumps.end() ? "" : dump->version},
                            {"library", dump == dumps.end() ? "" : dump->library},
                            {"open", entry_json(one.open, texts)},
                            {"last", entry_json(one.last, texts)},
                            {"waits_for", one.waits_for}});
  }
  return to_text(out);
}

}  // namespace shardscope::analysis
