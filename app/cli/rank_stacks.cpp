#include "app/cli/rank_stacks.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <unordered_map>

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

/// How often each rank has said what begins so. The store keeps messages in order of time: a new one may
/// stand before others, so they are counted, of all ranks at once.
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

std::string why_silent(const store::Store& store, std::uint32_t rank) {
  const auto row = std::ranges::find(store.ranks(), rank, &store::RankRow::rank);
  if (row == store.ranks().end()) return "no event of it has arrived";
  const store::RankEnd end = store::rank_end(store, *row);
  if (end.how != store::RankEnd::How::running) return "no answer: " + store::text_of(end);
  return "no answer within " + std::to_string(kAnswer.count()) + " s";
}

}  // namespace

std::vector<RankStacks> ask_for_stacks(collector::Viewer& viewer, store::Store& store,
                                       const std::vector<std::uint32_t>& ranks) {
  const std::string begins = instrumentation::answer_prefix(Request::stacks);
  const std::string refused = "ignored a message from a viewer: ";
  auto before = counts_of(store, begins);
  const std::size_t refused_before = counts_of(store, refused)[0];
  viewer.send({.kind = collector::Command::Kind::ask, .rule = {}, .detail = {}, .request = Request::stacks});
  const Clock::time_point end = Clock::now() + kAnswer;
  std::unordered_map<std::uint32_t, std::size_t> now;
  const auto answered = [&](std::uint32_t rank) { return now[rank] > before[rank]; };
  // Who is over or stopped does not answer.
  const auto may_answer = [&](std::uint32_t rank) {
    const auto row = std::ranges::find(store.ranks(), rank, &store::RankRow::rank);
    return row != store.ranks().end() && store::rank_end(store, *row).how == store::RankEnd::How::running;
  };
  for (bool all = false; !all && Clock::now() < end && !interrupted();) {
    viewer.poll(store, std::chrono::milliseconds(50));
    if (counts_of(store, refused)[0] > refused_before)
      throw UserError("--stacks: " + last_of(store, 0, refused) +
                      "; give a key that may control the run (docs/security.md)");
    now = counts_of(store, begins);
    all = std::ranges::all_of(ranks, [&](std::uint32_t rank) { return answered(rank) || !may_answer(rank); });
  }
  std::vector<RankStacks> out;
  for (const std::uint32_t rank : ranks) {
    const bool has = answered(rank);
    out.push_back({rank, has, has ? last_of(store, rank, begins) : why_silent(store, rank)});
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
