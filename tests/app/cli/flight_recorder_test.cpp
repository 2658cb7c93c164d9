// A recorder with limits on a collector whose one rank sends steps made here: what becomes a moment of its
// recording, and what is kept around it.
#include "app/cli/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/collector/viewer.h"
#include "app/store/recording.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::cli {
namespace {

using namespace collector;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kAround = 150 * kMs;

struct MadeStep {
  std::int64_t ms = 100;
  double loss = 2.0, grad_norm = 1.0;
};

class FlightRecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path folder = std::filesystem::temp_directory_path();
    const std::string name = "flight_recorder_test-" + std::to_string(getpid());
    path_ = (folder / (name + ".zscope")).string();
    node_path_ = (folder / (name + "-node.zscope")).string();
  }
  void TearDown() override {
    std::filesystem::remove(path_);
    std::filesystem::remove(node_path_);
  }

  /// What the recording has of these steps. The recorder looks once, when the collector has all of them.
  std::vector<store::Moment> moments_of(const std::vector<MadeStep>& steps,
                                        const RetentionOptions& kept = {}) {
    const CollectorOptions options = with_limits(path_);
    {
      Collector collector(options);
      FlightRecorder recorder(collector, options, kept);
      Rank rank(collector.publish_endpoint(), 0, 1);
      const std::uint64_t count = push(rank, steps);
      EXPECT_TRUE(rank.until([&] { return events_in(collector) == count; }));
      recorder.look();
      rank.finish();
      collector.stop();
    }
    const store::Store read = store::open_recording(path_, nullptr);
    steps_.assign(read.steps().begin(), read.steps().end());
    return {read.moments().begin(), read.moments().end()};
  }
  static CollectorOptions with_limits(const std::string& path) {
    CollectorOptions options = local();
    options.record_path = path;
    options.retention.max_age_ns = 3'600'000 * kMs;
    options.retention.around_ns = kAround;
    return options;
  }
  static std::uint64_t events_in(const Collector& collector) {
    std::uint64_t arrived = 0;
    collector.read([&](const store::Store& store) { arrived = store.event_count(); });
    return arrived;
  }
  /// Returns how many events they are.
  static std::uint64_t push(Rank& rank, const std::vector<MadeStep>& steps) {
    std::vector<Event> events = events_of(steps);
    const std::uint64_t count = events.size();
    const auto begin = static_cast<std::int64_t>(events.front().ticks);
    const auto end = static_cast<std::int64_t>(events.back().ticks);
    rank.link->push(std::move(events), 0, begin, end, 25);
    return count;
  }
  /// What is kept of a step's moment: its begin and end, and kAround on either side.
  void expect_around(const store::Moment& moment, std::size_t step) const {
    ASSERT_LT(step, steps_.size());
    EXPECT_EQ(moment.step, step);
    EXPECT_EQ(moment.at_ns, steps_[step].begin_ns);
    EXPECT_EQ(moment.begin_ns, steps_[step].begin_ns - kAround);
    EXPECT_EQ(moment.end_ns, steps_[step].end_ns + kAround);
  }

 private:
  /// In the past, one step after the other, so that none is in the future.
  static std::vector<Event> events_of(const std::vector<MadeStep>& steps) {
    std::int64_t at = monotonic_now_ns();
    for (const MadeStep& step : steps) at -= step.ms * kMs;
    std::vector<Event> events;
    for (std::uint32_t number = 0; number < steps.size(); ++number) {
      const MadeStep& step = steps[number];
      const auto value = [&](EventKind kind, double of) {
        events.push_back(event_of(kind, at + kMs, StreamId::host, number));
        events.back().v0 = std::bit_cast<std::int64_t>(of);
      };
      events.push_back(event_of(EventKind::step_begin, at, StreamId::host, number));
      value(EventKind::loss, step.loss);
      value(EventKind::grad_norm, step.grad_norm);
      at += step.ms * kMs;
      events.push_back(event_of(EventKind::step_end, at - 1, StreamId::host, number));
    }
    return events;
  }

  std::vector<store::StepRow> steps_;

 protected:
  std::string path_, node_path_;
};

/// Steps that differ a little: their spread is not zero.
std::vector<MadeStep> healthy(std::size_t count) {
  std::vector<MadeStep> steps;
  for (std::size_t i = 0; i < count; ++i) {
    const auto third = static_cast<double>(i % 3);
    steps.push_back({100 + static_cast<std::int64_t>(i % 3), 2.0 + 0.01 * third, 1.0 + 0.01 * third});
  }
  return steps;
}

TEST_F(FlightRecorderTest, AHealthyRunHasNoMoment) { EXPECT_TRUE(moments_of(healthy(40)).empty()); }

TEST_F(FlightRecorderTest, KeepsAStepBeyondTheSpreadOfThoseBefore) {
  std::vector<MadeStep> steps = healthy(24);
  steps[20].ms = 300;
  const std::vector<store::Moment> moments = moments_of(steps);
  ASSERT_EQ(moments.size(), 1U);
  EXPECT_EQ(moments[0].kind, "slow_step");
  EXPECT_EQ(moments[0].text, "step 20 took 300 ms: 2.97 times the median of the 19 steps before (101 ms)");
  expect_around(moments[0], 20);
}

TEST_F(FlightRecorderTest, KeepsALossThatJumps) {
  std::vector<MadeStep> steps = healthy(24);
  steps[20].loss = 5.0;
  const std::vector<store::Moment> moments = moments_of(steps);
  ASSERT_EQ(moments.size(), 1U);
  EXPECT_EQ(moments[0].kind, "loss_jump");
  EXPECT_EQ(moments[0].text, "step 20 has a loss of 5: 2.49 times the median of the 20 steps before (2.01)");
  expect_around(moments[0], 20);
}

TEST_F(FlightRecorderTest, KeepsAGradientNormThatJumps) {
  std::vector<MadeStep> steps = healthy(24);
  steps[20].grad_norm = 40;
  const std::vector<store::Moment> moments = moments_of(steps);
  ASSERT_EQ(moments.size(), 1U);
  EXPECT_EQ(moments[0].kind, "grad_norm_jump");
  EXPECT_EQ(moments[0].text,
            "step 20 has a gradient norm of 40: 39.60 times the median of the 20 steps before (1.01)");
  expect_around(moments[0], 20);
}

/// Of one kind there is one in this time, of each kind its own, and what is not among --moment-triggers is
/// none.
TEST_F(FlightRecorderTest, KeepsWhatIsWantedOfEachKind) {
  std::vector<MadeStep> steps = healthy(40);
  steps[20] = {300, 5.0, 40};
  steps[30].loss = 6.0;
  const auto kinds = [](const std::vector<store::Moment>& moments) {
    std::vector<std::string> out;
    for (const store::Moment& moment : moments)
      out.push_back(moment.kind + " " + std::to_string(moment.step));
    return out;
  };
  using testing::UnorderedElementsAre;
  EXPECT_THAT(kinds(moments_of(steps)),
              UnorderedElementsAre("slow_step 20", "loss_jump 20", "grad_norm_jump 20", "loss_jump 30"));
  RetentionOptions kept;
  kept.triggers = {"loss_jump"};
  EXPECT_THAT(kinds(moments_of(steps, kept)), UnorderedElementsAre("loss_jump 20", "loss_jump 30"));
  steps[21].loss = 9.0;  // begins within what is kept of step 20
  EXPECT_THAT(kinds(moments_of(steps, kept)), UnorderedElementsAre("loss_jump 20", "loss_jump 30"));
}

TEST_F(FlightRecorderTest, SaysThatALimitIsTooSmallForWhatIsAlwaysKept) {
  CollectorOptions options = with_limits(path_);
  options.retention.max_bytes = 1000;
  testing::internal::CaptureStderr();
  {
    Collector collector(options);
    FlightRecorder recorder(collector, options, {});
    Rank rank(collector.publish_endpoint(), 0, 1);
    push(rank, healthy(24));
    EXPECT_TRUE(rank.until([&] {
      std::string texts;
      collector.read([&](const store::Store& store) { texts = all_texts(store); });
      return texts.find("more than its limit") != std::string::npos;
    }));
    recorder.look();
    rank.finish();
    collector.stop();
  }
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_EQ(printed.find("shardscope: the recording takes "), 0U) << printed;
  EXPECT_NE(all_texts(store::open_recording(path_, nullptr)).find("(--max-size)"), std::string::npos);
}

/// Over a node's recorder that finds nothing itself: what the recorder above finds, and what a viewer asks of
/// it, are moments of the node's recording as well, each once.
TEST_F(FlightRecorderTest, MomentsAtTheTopReachTheRecordersOfNodes) {
  const CollectorOptions at_top = with_limits(path_);
  {
    Collector top(at_top);
    CollectorOptions at_node = with_limits(node_path_);
    at_node.upstream = top.publish_endpoint();
    Collector node(at_node);
    RetentionOptions none;
    none.triggers = {"rank_failed"};
    FlightRecorder above(top, at_top, {}), below(node, at_node, none);
    Rank rank(node.publish_endpoint(), 0, 1);
    std::vector<MadeStep> steps = healthy(24);
    steps[20].ms = 300;
    const std::uint64_t count = push(rank, steps);
    EXPECT_TRUE(rank.until([&] { return events_in(top) == count && events_in(node) == count; }));
    Viewer viewer(top.view_endpoint());
    store::Store seen;
    EXPECT_TRUE(rank.until([&] {
      viewer.poll(seen, 5ms);
      return seen.event_count() == count;
    }));
    viewer.keep(store::kRequested, 0, "the fan is loud");
    const auto answers = [](const Collector& collector) {
      std::string texts;
      collector.read([&](const store::Store& store) { texts = all_texts(store); });
      return texts;
    };
    // Each recorder acts once a second: the node's may act before the one that got the request.
    EXPECT_TRUE(rank.until([&] {
      viewer.poll(seen, 5ms);
      above.look();
      below.look();
      const std::string texts = answers(node);
      return texts.find("slow_step") != std::string::npos &&
             texts.find("the fan is loud") != std::string::npos &&
             answers(top).find("the fan is loud") != std::string::npos;
    })) << answers(node);
    rank.finish();
    EXPECT_TRUE(rank.until([&] { return node.status().finished; }));
    node.stop();
    top.stop();
  }
  for (const std::string& path : {path_, node_path_}) {
    const store::Store read = store::open_recording(path, nullptr);
    ASSERT_EQ(read.moments().size(), 2U) << path;
    const store::Moment &slow = read.moments()[0], &requested = read.moments()[1];
    EXPECT_EQ(slow.kind, "slow_step");
    EXPECT_EQ(slow.at_ns, read.steps()[20].begin_ns) << "one machine, one clock";
    EXPECT_EQ(requested.kind, store::kRequested);
    EXPECT_EQ(requested.text.find("the fan is loud, requested by "), 0U) << requested.text;
  }
}

/// Each node's recorder sees the ranks of its node only, and finds what they show all the same.
TEST_F(FlightRecorderTest, NodesFindTriggersInTheStepsOfTheirOwnRanks) {
  const std::string other_path = node_path_ + "-other.zscope";
  {
    Collector top(local());
    const auto at_node = [&](const std::string& path) {
      CollectorOptions options = with_limits(path);
      options.upstream = top.publish_endpoint();
      return options;
    };
    const CollectorOptions of_first = at_node(node_path_), of_second = at_node(other_path);
    Collector first(of_first), second(of_second);
    FlightRecorder finds(first, of_first, {}), finds_too(second, of_second, {});
    std::vector<std::unique_ptr<Rank>> ranks;
    for (std::uint32_t rank = 0; rank < 4; ++rank)
      ranks.push_back(std::make_unique<Rank>((rank < 2 ? first : second).publish_endpoint(), rank, 4));
    std::vector<MadeStep> steps = healthy(24);
    for (MadeStep& step : steps) step.ms *= 10;
    steps[20].ms = 3000;
    std::uint64_t count = 0;
    for (const auto& rank : ranks) count += push(*rank, steps);
    const auto all = [&](const std::function<bool()>& condition) {
      return eventually([&] {
        for (const auto& rank : ranks) rank->link->pump();
        return condition();
      });
    };
    EXPECT_TRUE(
        all([&] { return events_in(first) + events_in(second) == count && events_in(top) == count; }));
    finds.look();
    finds_too.look();
    for (const auto& rank : ranks) rank->finish();
    EXPECT_TRUE(all([&] { return top.status().finished; }));
    first.stop();
    second.stop();
    top.stop();
  }
  for (const std::string& path : {node_path_, other_path}) {
    const store::Store read = store::open_recording(path, nullptr);
    EXPECT_EQ(read.ranks().size(), 2U) << path;
    ASSERT_EQ(read.moments().size(), 1U) << path;
    EXPECT_EQ(read.moments()[0].kind, "slow_step");
    EXPECT_EQ(read.moments()[0].step, 20U);
    ASSERT_EQ(read.steps().size(), 24U);
    for (const store::StepRow& row : read.steps()) EXPECT_NE(row.end_ns, store::kOpen) << row.step;
  }
  std::filesystem::remove(other_path);
}

}  // namespace
}  // namespace shardscope::cli
