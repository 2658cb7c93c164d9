#include "app/cli/rank_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "app/analysis/foreign_json.h"
#include "app/cli/process.h"
#include "app/cli/verb.h"
#include "app/store/rank_end.h"

namespace shardscope::cli {
namespace {

using Clock = std::chrono::steady_clock;
using instrumentation::Request;

/// Number of messages with this beginning, by rank. The store sorts messages by time: a new one may
/// precede others, so they are counted, for all ranks at once.
std::unordered_map<std::uint32_t, std::size_t> counts_of(const store::Store& store,
                                                         const std::string& begins) {
  std::unordered_map<std::uint32_t, std::size_t> counts;
  for (const store::Message& message : store.messages())
    if (message.text.starts_with(begins)) ++counts[message.rank];
  return counts;
}

std::string last_of(const store::Store& store, std::uint32_t rank, const std::string& begins) {
  std::string out;
  for (const store::Message& message : store.messages()) {
    if (message.rank == rank && message.text.starts_with(begins)) out = message.text.substr(begins.size());
  }
  return out;
}

std::string why_silent(const store::Store& store, std::uint32_t rank, std::chrono::milliseconds patience) {
  const auto row = std::ranges::find(store.ranks(), rank, &store::RankRow::rank);
  if (row == store.ranks().end()) return "no event of it has arrived";
  const store::RankEnd end = store::rank_end(store, *row);
  if (end.how != store::RankEnd::How::running) return "no answer: " + store::text_of(end);
  return fmt::format("no answer within {:g} s", std::chrono::duration<double>(patience).count());
}

}  // namespace

std::vector<RankStacks> ask_for_stacks(collector::Viewer& viewer, store::Store& store,
                                       const std::vector<std::uint32_t>& ranks,
                                       std::chrono::milliseconds patience) {
  const std::string begins = instrumentation::answer_prefix(Request::stacks);
  const std::string refused = "ignored a message from a viewer: ";
  auto before = counts_of(store, begins);
  const std::size_t refused_before = counts_of(store, refused)[0];
  viewer.send({.kind = collector::Command::Kind::ask, .rule = {}, .detail = {}, .request = Request::stacks});
  const Clock::time_point end = Clock::now() + patience;
  std::unordered_map<std::uint32_t, std::size_t> now;
  const auto answered = [&](std::uint32_t rank) { return now[rank] > before[rank]; };
  // Ranks that have ended or are stopped do not answer.
  const auto may_answer = [&](std::uint32_t rank) {
    const auto row = std::ranges::find(store.ranks(), rank, &store::RankRow::rank);
    return row != store.ranks().end() && store::rank_end(store, *row).how == store::RankEnd::How::running;
  };
  for (bool all = false; !all && Clock::now() < end && !interrupted();) {
    viewer.poll(store, std::chrono::milliseconds(50));
    if (counts_of(store, refused)[0] > refused_before)
      throw UserError(last_of(store, 0, refused) +
                      "; give a key that may control the run (docs/security.md)");
    now = counts_of(store, begins);
    all = std::ranges::all_of(ranks, [&](std::uint32_t rank) { return answered(rank) || !may_answer(rank); });
  }
  std::vector<RankStacks> out;
  for (const std::uint32_t rank : ranks) {
    const bool has = answered(rank);
    out.push_back({rank, has, has ? last_of(store, rank, begins) : why_silent(store, rank, patience)});
  }
  return out;
}

std::string with_stacks(const std::string& hang_json, const std::vector<RankStacks>& stacks) {
  if (stacks.empty()) return hang_json;
  nlohmann::json out = nlohmann::json::parse(hang_json);
  for (const RankStacks& one : stacks)
    out["stacks"].push_back({{"rank", one.rank}, {"answered", one.answered}, {"text", one.text}});
  return analysis::to_text(out, 2) + "\n";
}

std::optional<ScriptLine> script_line(std::uint32_t rank, const std::string& stacks) {
  std::string_view rest = stacks;
  bool in_main = false;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.starts_with("thread ")) {
      if (in_main) return std::nullopt;  // the next thread
      in_main = line == "thread MainThread:";
      continue;
    }
    const std::size_t at = line.rfind(" at "), colon = line.rfind(':');
    if (!in_main || !line.starts_with("  ") || at == std::string_view::npos || at < 2 ||
        colon == std::string_view::npos || colon < at + 4)
      continue;
    const std::string_view file = line.substr(at + 4, colon - at - 4);
    // A package's file has a path relative to its folder (_stacks.py), code without a file angle brackets.
    if (!file.starts_with('/') || file.find("/lib/python3") != std::string_view::npos) continue;
    ScriptLine out{rank, std::string(line.substr(2, at - 2)), std::string(file), 0};
    (void)std::from_chars(line.data() + colon + 1, line.data() + line.size(), out.line);
    return out;
  }
  return std::nullopt;
}

std::vector<std::uint32_t> ranks_of_sides(const analysis::Hang& hang) {
  std::vector<std::uint32_t> wanted = analysis::named_ranks(hang);
  if (hang.difference)
    for (const analysis::IssueDifference::Side& side : hang.difference->sides)
      if (!side.ranks.empty()) wanted.push_back(side.ranks.front());
  std::vector<std::uint32_t> out;
  using How = analysis::RankState::How;
  for (const std::uint32_t rank : wanted) {
    const auto one = std::ranges::find(hang.ranks, rank, &analysis::RankState::rank);
    const bool answers = one != hang.ranks.end() && one->how != How::stopped && one->how != How::ended &&
                         one->how != How::gone;
    if (answers && std::ranges::find(out, rank) == out.end()) out.push_back(rank);
  }
  return out;
}

std::string text_of(const std::vector<ScriptLine>& lines) {
  std::string out = lines.empty() ? "" : "where their scripts are (the whole stacks: --stacks):\n";
  for (const ScriptLine& one : lines)
    out += fmt::format("  rank {:<4} {}:{}, in {}\n", one.rank, one.file, one.line, one.function);
  return out;
}

std::string with_lines(const std::string& hang_json, const std::vector<ScriptLine>& lines) {
  if (lines.empty()) return hang_json;
  nlohmann::json out = nlohmann::json::parse(hang_json);
  for (const ScriptLine& one : lines)
    out["lines"].push_back(
        {{"rank", one.rank}, {"function", one.function}, {"file", one.file}, {"line", one.line}});
  return analysis::to_text(out, 2) + "\n";
}

}  // namespace shardscope::cli
