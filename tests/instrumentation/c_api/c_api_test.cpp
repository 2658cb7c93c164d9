// A C program plays a ZeRO-3 run through the C interface (samples/c-api/zero3_run.c); what the recording, the
// state at a time and the summary show is what the program emitted.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "app/analysis/summary.h"
#include "app/collector/collector.h"
#include "app/store/recording.h"
#include "shardscope/shardscope.h"

extern char** environ;

namespace shardscope {
namespace {

namespace ev = instrumentation;
constexpr std::uint32_t kWorld = 2, kSteps = 3;
constexpr std::int64_t kElems[3] = {65 * 16, 16 * 48, 48 * 65};
constexpr std::int64_t kS = kElems[0] + kElems[1] + kElems[2];
constexpr std::int64_t kFrozen = kElems[1];

pid_t start(std::vector<std::string> command) {
  std::vector<char*> argv;
  for (std::string& part : command) argv.push_back(part.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ), 0);
  return pid;
}

class CApi : public testing::Test {
 protected:
  /// Plays the run once; the tests look at its recording.
  static void SetUpTestSuite() {
    path_ = testing::TempDir() + "c_api_" + std::to_string(getpid()) + ".zscope";
    collector::CollectorOptions options;
    options.listen = "tcp://127.0.0.1:0";
    options.record_path = path_;
    collector::Collector collector(options);
    std::vector<pid_t> children;
    for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
      children.push_back(start({ZERO3_RUN, std::to_string(rank), std::to_string(kWorld),
                                collector.publish_endpoint(), std::to_string(kSteps), "played"}));
    }
    for (const pid_t child : children) {
      int status = -1;
      waitpid(child, &status, 0);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    // The programs have waited for the collector to confirm the end.
    collector.stop();
    EXPECT_TRUE(collector.status().finished);
    EXPECT_EQ(collector.status().rejected, 0U);
    store::RecordingInfo info;
    store_ = std::make_unique<store::Store>(store::open_recording(path_, &info));
    EXPECT_TRUE(info.complete);
    EXPECT_TRUE(info.problems.empty());
  }
  static void TearDownTestSuite() {
    store_.reset();
    std::filesystem::remove(path_);
  }

  static std::string path_;
  static std::unique_ptr<store::Store> store_;
};
std::string CApi::path_;
std::unique_ptr<store::Store> CApi::store_;

TEST_F(CApi, TablesAreWhatWasDescribed) {
  const ev::RunTables& t = store_->tables();
  EXPECT_EQ(t.run_id, "played");
  EXPECT_EQ(t.model, "three-layers");
  EXPECT_EQ(t.world, kWorld);
  EXPECT_EQ(t.stage, 3);
  EXPECT_EQ(t.elems, kS);
  ASSERT_EQ(t.modules.size(), 4U);
  EXPECT_EQ(t.modules[2].path, "hidden");
  EXPECT_EQ(t.modules[2].parent, 0U);
  ASSERT_EQ(t.params.size(), 3U);
  EXPECT_EQ(t.params[1].name, "hidden.weight");
  EXPECT_EQ(t.params[1].shape, (std::vector<std::int64_t>{16, 48}));
  EXPECT_EQ(t.params[1].modules, std::vector<std::uint32_t>{2});
  EXPECT_EQ(t.params[0].shard_elems, 520);
  for (const ev::ParamInfo& param : t.params)
    EXPECT_EQ(param.frozen, param.name == "hidden.weight") << param.name;
  std::int64_t owned = 0;
  for (const ev::SliceInfo& slice : t.slices) owned += slice.elems;
  EXPECT_EQ(owned, kS);
  EXPECT_EQ(store_->name(0, 0), "matmul_f32");
}

TEST_F(CApi, RanksAndTextsArrived) {
  ASSERT_EQ(store_->ranks().size(), kWorld);
  for (const store::RankRow& rank : store_->ranks()) {
    EXPECT_TRUE(rank.finished);
    EXPECT_EQ(rank.exit_code, 0);
    EXPECT_EQ(rank.exit_message, "played to the end");
    EXPECT_EQ(rank.dropped, 0U);
    EXPECT_EQ(rank.lost_messages, 0U);
  }
  EXPECT_EQ(std::count_if(
                store_->messages().begin(), store_->messages().end(),
                [](const store::Message& m) { return m.text == "a run described through the C interface"; }),
            kWorld);
}

TEST_F(CApi, StateAtATime) {
  for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
    for (std::uint32_t param = 0; param < 3; ++param) {
      const auto history = store_->status_history(rank, param);
      // In flight, available, released; forward and backward of each step.
      ASSERT_EQ(history.size(), 6 * kSteps);
      for (std::size_t i = 0; i < history.size(); ++i) {
        const std::uint8_t expected[] = {SHARDSCOPE_IN_FLIGHT, SHARDSCOPE_AVAILABLE,
                                         SHARDSCOPE_NOT_AVAILABLE};
        EXPECT_EQ(history[i].state.status, expected[i % 3]);
        EXPECT_EQ(store_->param_state(rank, param, history[i].at_ns).status, expected[i % 3]);
      }
      EXPECT_EQ(history[0].state.module, param + 1);
    }
    // Shards of parameters, gradients and two moments: 16 bytes per element, 4 of the frozen weight; beside
    // them the largest weight gathered with its full gradient.
    const std::int64_t shards = 16 * (520 + 1560) + 4 * 384;
    const auto end = store_->memory_at(rank, ev::MemoryPool::device, store_->end_ns());
    EXPECT_EQ(end.total(), shards);
    const auto peak = store_->memory_peak(rank, ev::MemoryPool::device);
    ASSERT_TRUE(peak.has_value());
    EXPECT_EQ(peak->total(), shards + 8 * 3120);
  }
}

TEST_F(CApi, SummarySaysWhatWasPlayed) {
  const analysis::Summary summary = analysis::summarize(*store_);
  EXPECT_EQ(summary.steps, kSteps);
  ASSERT_EQ(summary.loss.size(), kSteps);
  for (std::uint32_t step = 0; step < kSteps; ++step) EXPECT_DOUBLE_EQ(summary.loss[step], 4.0 / (step + 1));
  EXPECT_DOUBLE_EQ(summary.grad_norm[1], 1.0);
  ASSERT_TRUE(summary.elements_per_step.has_value());
  // Gathered in forward and in backward, reduced once where trained (nothing is padded with two ranks).
  EXPECT_DOUBLE_EQ(*summary.elements_per_step, 3.0 * kS - kFrozen);
  EXPECT_DOUBLE_EQ(summary.expected_elements_per_step, 3.0 * kS - kFrozen);
  // This runtime's buffers are as large as what is in them: no rounding is made up to explain them.
  ASSERT_TRUE(summary.memory_model.unexplained_bytes.has_value());
  EXPECT_EQ(*summary.memory_model.unexplained_bytes, 0);
  for (const analysis::MemoryPart& part : summary.memory_model.parts)
    EXPECT_NE(part.cause, analysis::MemoryCause::rounding) << part.bytes;
  EXPECT_TRUE(summary.tokens_per_s.has_value());
  for (const store::StepRow& step : store_->steps()) EXPECT_EQ(step.tokens, 128 * kWorld);
  std::uint64_t kernels = 0;
  for (std::uint8_t depth = 0; depth < store_->depth_count({0, ev::StreamId::compute}); ++depth) {
    for (const store::Span& span : store_->spans({0, ev::StreamId::compute}, depth)) {
      kernels += span.kind == ev::EventKind::kernel_begin && span.end_ns != store::kOpen;
    }
  }
  EXPECT_EQ(kernels, 6 * kSteps);
  EXPECT_EQ(store_->gates(0).size(), kSteps * (1 + 6 + 6 + 2 + 1));
}

TEST_F(CApi, NoRankIsThroughACollectiveBeforeAllHaveCome) {
  std::map<std::uint32_t, std::int64_t> last_came;  // by sequence number
  std::vector<store::Span> collectives;
  for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
    for (const ev::StreamId lane : {ev::StreamId::gather, ev::StreamId::reduce}) {
      for (const store::Span& span : store_->spans({rank, lane}, 0)) {
        if (span.kind != ev::EventKind::collective_begin) continue;
        collectives.push_back(span);
        std::int64_t& came = last_came.try_emplace(span.a, INT64_MIN).first->second;
        came = std::max(came, span.begin_ns);
      }
    }
  }
  EXPECT_EQ(collectives.size(), kWorld * kSteps * (6 + 2));
  // Both ranks have the collector's clock, so times compare to the nanosecond.
  for (const store::Span& span : collectives) {
    EXPECT_GE(span.mark_ns, last_came[span.a]) << "collective " << span.a;
    EXPECT_GE(span.end_ns, span.mark_ns);
  }
}

TEST(CApiSample, ARankEndsWhenAnotherIsGone) {
  collector::CollectorOptions options;
  options.listen = "tcp://127.0.0.1:0";
  collector::Collector collector(options);
  const auto play = [&](const char* rank) {
    return start({ZERO3_RUN, rank, "2", collector.publish_endpoint(), "1000000000",
                  "gone-" + std::to_string(getpid())});
  };
  const pid_t first = play("0"), second = play("1");
  const auto seen = [&] {
    bool both = false;
    collector.read([&](const store::Store& store) { both = store.steps().size() > 3; });
    return both;
  };
  while (!seen()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(second, SIGKILL);
  int status = -1;
  ASSERT_EQ(waitpid(second, &status, 0), second);
  ASSERT_EQ(waitpid(first, &status, 0), first);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_EQ(collector.status().exit_code, 1) << "and has reported it";
}

TEST_F(CApi, CollectivesSayAmongWhomTheyAre) {
  std::size_t seen = 0;
  for (const ev::StreamId lane : {ev::StreamId::gather, ev::StreamId::reduce}) {
    for (const store::Span& span : store_->spans({0, lane}, 0)) {
      if (span.kind != ev::EventKind::collective_begin) continue;
      EXPECT_EQ(span.c, ev::collective_code(SHARDSCOPE_F32, ev::CollectiveScope::world, kWorld));
      ++seen;
    }
  }
  EXPECT_EQ(seen, kSteps * (6 + 2));
}

}  // namespace
}  // namespace shardscope
