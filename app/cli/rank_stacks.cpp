#include "app/cli/rank_stacks.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "app/analysis/foreign_json.h"
#include "app/cli/process.h"
#include "app/cli/verb.h"
#include "app/store/rank_end.h"

namespace shardscope::cli {
namespace {

using Clock = std::chrono::steady_clock;
using instrumentation::Request;

/// A thread that does not answer is waited for 100 ms; a busy machine makes that more.
constexpr std::chrono::seconds kAnswer{10};

/// The store keeps messages in order of time: a new one may stand before others, so they are counted.
std::size_t count_of(const store::Store& store, std::uint32_t rank, const std::string& begins) {
  return static_cast<std::size_t>(std::ranges::count_if(store.messages(), [&](const store::Message& message) {
    return message.rank == rank && message.text.starts_with(begins);
  }));
}

std::string last_of(const store::Store& store, std::uint32_t rank, const std::string& begins) {
  std::string out;
  for (const store::Message& message : store.messages()) {
    if (message.rank == rank && message.text.starts_with(begins)) out = message.text.substr(begins.size());
  }
  return out;
}

std::string why_silent(const store::Store& store, std::uint32_t rank) {
  const auto row = std::ranges::find(store.ranks(), rank, &store::RankRow::rank);
  if (row == store.ranks().end()) return "nothing has come of it";
  const store::RankEnd end = store::rank_end(store, *row);
  if (end.how != store::RankEnd::How::running) return "no answer: " + store::text_of(end);
  return "no answer within " + std::to_string(kAnswer.count()) + " s";
}

}  // namespace

std::vector<RankStacks> ask_for_stacks(collector::Viewer& viewer, store::Store& store,
                                       const std::vector<std::uint32_t>& ranks) {
  const std::string begins = instrumentation::answer_prefix(Request::stacks);
  const std::string refused = "ignored a message from a viewer: ";
  std::vector<std::size_t> before;
  for (const std::uint32_t rank : ranks) before.push_back(count_of(store, rank, begins));
  const std::size_t refused_before = count_of(store, 0, refused);
  viewer.send({.kind = collector::Command::Kind::ask, .rule = {}, .detail = {}, .request = Request::stacks});
  const Clock::time_point end = Clock::now() + kAnswer;
  const auto answered = [&](std::size_t i) { return count_of(store, ranks[i], begins) > before[i]; };
  // Who is over or stopped does not answer.
  const auto may_answer = [&](std::size_t i) {
    const auto row = std::ranges::find(store.ranks(), ranks[i], &store::RankRow::rank);
    return row != store.ranks().end() && store::rank_end(store, *row).how == store::RankEnd::How::running;
  };
  for (bool all = false; !all && Clock::now() < end && !interrupted();) {
    viewer.poll(store, std::chrono::milliseconds(50));
    if (count_of(store, 0, refused) > refused_before)
      throw UserError("--stacks: " + last_of(store, 0, refused) +
                      "; give a key that may control the run (docs/security.md)");
    all = true;
    for (std::size_t i = 0; i < ranks.size(); ++i) all = all && (answered(i) || !may_answer(i));
  }
  std::vector<RankStacks> out;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const bool has = answered(i);
    out.push_back({ranks[i], has, has ? last_of(store, ranks[i], begins) : why_silent(store, ranks[i])});
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

}  // namespace shardscope::cli
