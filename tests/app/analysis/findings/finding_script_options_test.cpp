// Options of FSDP2 and DDP: settings that the framework and the cause have, from the recorded ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

constexpr std::int64_t kLength = 10'000'000;  // of a step

/// Ten steps of 10 ms on two ranks: a collective of 3 ms with nothing beside it, and 6 ms of computation.
struct ExposedRun {
  RunBuilder builder;
  ExposedRun(const std::string& framework, const std::string& config, StreamId lane, CollectiveOp op,
             std::int64_t elems = 10'000'000)
      : builder(2, framework.starts_with("FSDP") ? 3 : 0, framework) {
    for (std::uint32_t step = 0; step < 10; ++step) {
      const std::int64_t at = step * kLength;
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        builder.span(rank, at, at + 3 * kMs, EventKind::collective_begin, lane, step, step,
                     static_cast<std::uint8_t>(op), 10'000'000, 40'000'000);
        builder.span(rank, at + 3 * kMs, at + 9 * kMs, EventKind::module_begin, StreamId::compute, 1, step);
        builder.span(rank, at, at + kLength, EventKind::step_begin, StreamId::host, step);
      }
    }
    builder.change_tables([&](ev::RunTables& tables) {
      tables.config_json = config;
      tables.elems = elems;
      tables.params[0].shape = {elems};
      tables.params[0].elems = elems;
      tables.params[0].shard_elems = elems / 2;
    });
  }
  std::optional<Finding> found(const std::string& id) {
    const store::Store& store = builder.build();
    const std::vector<Finding> all = find(store, summarize(store));
    const auto at = std::ranges::find(all, id, &Finding::id);
    return at == all.end() ? std::nullopt : std::optional(*at);
  }
};

std::optional<Finding> of_fsdp2(const std::string& settings, StreamId lane = StreamId::gather,
                                CollectiveOp op = CollectiveOp::all_gather) {
  ExposedRun run("FSDP2 (PyTorch 2.15.0)", R"({"fully_shard": {)" + settings + "}}", lane, op);
  return run.found("exposed_communication");
}

std::optional<Finding> of_ddp(double cap_mb) {
  ExposedRun run("DistributedDataParallel (PyTorch 2.15.0)",
                 R"({"DistributedDataParallel": {"bucket_cap_mb": )" + std::to_string(cap_mb) + "}}",
                 StreamId::reduce, CollectiveOp::all_reduce);
  return run.found("exposed_communication");
}

/// "key=value", and of several changes joined by a space.
std::vector<std::string> options_of(const std::optional<Finding>& finding) {
  std::vector<std::string> out;
  if (!finding) return {"no finding"};
  for (const Advice& option : finding->options) {
    std::string& text = out.emplace_back();
    for (const Change& change : option.changes)
      text += (text.empty() ? "" : " ") + change.key + "=" + change.value;
  }
  return out;
}

bool offers(const std::vector<std::string>& options, const std::string& text) {
  return std::ranges::find(options, text) != options.end();
}

// Nothing hides them there, whatever the settings.
TEST(FindingScriptOptions, ExposedGathersOfFsdp2OnACpuAreANote) {
  for (const bool cpu : {false, true}) {
    ExposedRun run("FSDP2 (PyTorch 2.15.0)", R"({"fully_shard": {"reshard_after_forward": true}})",
                   StreamId::gather, CollectiveOp::all_gather);
    if (cpu) run.builder.on("cpu");
    const auto found = run.found("exposed_communication");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->severity, cpu ? ev::Severity::info : ev::Severity::warning);
    EXPECT_EQ(found->evidence.find("holds the host") != std::string::npos, cpu) << found->evidence;
  }
}

TEST(FindingScriptOptions, ExposedGathersOfFsdp2AreIssuedEarlierOrNotAtAll) {
  const auto found = of_fsdp2(R"("reshard_after_forward": true)");
  const std::vector<std::string> options = options_of(found);
  EXPECT_TRUE(offers(options, "fully_shard.groups_to_backward_prefetch=2")) << options.front();
  EXPECT_TRUE(offers(options, "fully_shard.groups_to_forward_prefetch=1"));
  EXPECT_TRUE(
      offers(options, "fully_shard.groups_to_forward_prefetch=2 fully_shard.groups_to_backward_prefetch=2"));
  ASSERT_TRUE(offers(options, "fully_shard.reshard_after_forward=false"));
  EXPECT_NE(found->options.back().next_step.find("up to 19.1 MiB more on each rank"), std::string::npos)
      << found->options.back().next_step;
  EXPECT_NE(found->next_step.find("set_modules_to_backward_prefetch()"), std::string::npos);
  // By itself the backward gathers the next group beside the current one: naming two adds one.
  const auto of = [&](const char* changes) {
    const auto at = std::ranges::find(options, changes);
    return found->options[static_cast<std::size_t>(at - options.begin())].next_step;
  };
  EXPECT_TRUE(of("fully_shard.groups_to_backward_prefetch=2")
                  .ends_with("up to one more group is gathered at a time."))
      << found->next_step;
  EXPECT_TRUE(of("fully_shard.groups_to_backward_prefetch=3")
                  .ends_with("up to two more groups are gathered at a time."));
  EXPECT_NE(found->otherwise.find("smaller groups of fully_shard()"), std::string::npos);
}

TEST(FindingScriptOptions, AreNotWhatTheRunHasAlready) {
  const std::vector<std::string> kept = options_of(of_fsdp2(R"("reshard_after_forward": false)"));
  EXPECT_FALSE(kept.empty());
  for (const std::string& option : kept) EXPECT_EQ(option.find("reshard"), std::string::npos) << option;
  // Some groups are, as the recording counts them.
  EXPECT_TRUE(offers(options_of(of_fsdp2(R"("reshard_after_forward": {"true": 3, "false": 1})")),
                     "fully_shard.reshard_after_forward=false"));
  // Lists for the backward are known only as far as they had an effect.
  EXPECT_TRUE(offers(options_of(of_fsdp2(R"("modules_with_explicit_backward_prefetch": 2)")),
                     "fully_shard.reshard_after_forward=false fully_shard.groups_to_backward_prefetch=1"));
}

/// Earlier gathers do not hide reductions.
TEST(FindingScriptOptions, ExposedReductionsOfFsdp2HaveNoSetting) {
  const auto found = of_fsdp2("", StreamId::reduce, CollectiveOp::reduce_scatter);
  EXPECT_TRUE(options_of(found).empty());
  EXPECT_NE(found->next_step.find("3.0 ms of it are reductions"), std::string::npos) << found->next_step;
}

/// 38 MiB of gradients.
TEST(FindingScriptOptions, BucketsOfDdpAreOfOtherSizesThanTheRecordedOne) {
  const std::vector<std::string> of_large = options_of(of_ddp(25));
  for (const char* mb : {"9.5", "4.8", "2.4", "19", "38"})
    EXPECT_TRUE(offers(of_large, std::string("DistributedDataParallel.bucket_cap_mb=") + mb)) << mb;
  EXPECT_EQ(of_large.size(), 5U);
  const std::vector<std::string> of_small = options_of(of_ddp(2));
  EXPECT_EQ(of_small.size(), 2U) << "a sixteenth of the gradients is not smaller";
  EXPECT_TRUE(offers(of_small, "DistributedDataParallel.bucket_cap_mb=19"));
  EXPECT_TRUE(offers(of_small, "DistributedDataParallel.bucket_cap_mb=38"));
}

/// Two digits of 99.6 MiB would be 1e+02.
TEST(FindingScriptOptions, BucketsOfNearlyAHundredMebibytesHaveTheirDigits) {
  ExposedRun run("DistributedDataParallel (PyTorch 2.15.0)",
                 R"({"DistributedDataParallel": {"bucket_cap_mb": 25}})", StreamId::reduce,
                 CollectiveOp::all_reduce, 26'110'000);
  const std::vector<std::string> options = options_of(run.found("exposed_communication"));
  EXPECT_TRUE(offers(options, "DistributedDataParallel.bucket_cap_mb=100")) << options.front();
  for (const std::string& option : options) EXPECT_EQ(option.find("e+"), std::string::npos) << option;
}

TEST(FindingScriptOptions, Fsdp1HasNone) {
  ExposedRun run("FSDP1 (PyTorch 2.15.0)", "{}", StreamId::gather, CollectiveOp::all_gather);
  const auto found = run.found("exposed_communication");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->options.empty());
}

}  // namespace
}  // namespace shardscope::analysis
