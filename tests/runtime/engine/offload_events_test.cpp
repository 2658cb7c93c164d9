// What a training run emits of its offloaded states, where a feature changes no number and only the events
// show that it is there: pipelined swapping, reading ahead from NVMe, ZenFlow.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "runtime/execution/events.h"
#include "tests/runtime/engine/expected_zenflow.h"
#include "tests/runtime/engine/rank_events.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::offload_events_test {
namespace {

using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::StreamId;
using instrumentation::TransferKind;

bool reads(const Event& event) { return event.code == static_cast<std::uint8_t>(TransferKind::nvme_read); }

// Three sub-groups of one tile each; "r1" reads the second, "w1" writes it.
TEST(PipelinedSwap, ReadsTheNextTileBeforeItWritesTheLast) {
  for (const bool pipelined : {false, true}) {
    RunSpec spec;
    spec.model = model_named("mlp");
    spec.config = make_config(3);
    spec.steps = 2;
    spec.config["zero_optimization"]["sub_group_size"] = 40000;
    spec.config["zero_optimization"]["offload_optimizer"] = {{"device", "nvme"},
                                                             {"nvme_path", ::testing::TempDir()},
                                                             {"pipeline_read", pipelined},
                                                             {"pipeline_write", pipelined},
                                                             {"buffer_count", 8}};
    std::string order;
    for (const Event& event : train_observed(spec).lane(0, StreamId::nvme)) {
      if (event.kind != EventKind::transfer_begin) continue;
      order += (reads(event) ? "r" : "w") + std::to_string(event.b) + ' ';
    }
    const std::string step = pipelined ? "r0 r1 w0 r2 w1 w2 " : "r0 w0 r1 w1 r2 w2 ";
    EXPECT_NE(order.find(step + step), std::string::npos) << order;
  }
}

// C12. A shard that is read only when its gather misses it is alone in the host buffers; one that is read
// ahead waits there while the next is read.
TEST(ReadAhead, FillsTheBuffersBeforeShardsAreMissed) {
  for (const int buffers : {1, 5}) {
    RunSpec spec;
    spec.model = wide_model();
    spec.world = 2;
    spec.steps = 3;
    spec.config = make_config(3);
    Json& zero = spec.config["zero_optimization"];
    zero["stage3_prefetch_bucket_size"] = 600000;
    zero["stage3_max_live_parameters"] = 2000000;
    zero["offload_param"] = {
        {"device", "nvme"}, {"nvme_path", ::testing::TempDir()}, {"buffer_count", buffers}};
    const ObservedRun observed = train_observed(spec);
    for (const std::uint32_t rank : {0U, 1U}) {
      std::int64_t most = 0, prefetched = 0;
      for (const Event& event : observed.lane(rank, StreamId::nvme)) {
        if (event.kind == EventKind::transfer_begin && reads(event)) most = std::max(most, event.v1);
      }
      for (const Event& event : observed.lane(rank, StreamId::host)) {
        if (event.kind == EventKind::prefetch_issued) prefetched += event.v0;
      }
      // The only buffer is the one that stays for what a gather misses.
      EXPECT_EQ(most > 1, buffers > 1) << most << " in use at most";
      EXPECT_LE(most, buffers);
      EXPECT_GT(prefetched, 0);
    }
  }
}

// ---- ZenFlow ---------------------------------------------------------------------------------------------

struct Shape {
  int stage;
  std::uint32_t world;
  bool overlap;
};
class ZenFlowEvents : public ::testing::TestWithParam<Shape> {};

/// step, cause and steps summed (kNoId where they are not said), state, elements.
using Deferred =
    std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, instrumentation::DeferredState, std::int64_t>;

// Every choice of columns and every deferred update, with what they are of, against expected_zenflow.h.
TEST_P(ZenFlowEvents, SayWhatIsChosenAndWhatIsDeferred) {
  const auto& [stage, world, overlap] = GetParam();
  RunSpec spec;
  spec.model = model_named("mlp");
  spec.world = world;
  spec.steps = 9;
  spec.config = make_config(stage);
  spec.config["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
  spec.config["zero_optimization"]["zenflow"] = {{"topk_ratio", 0.2},        {"select_strategy", "step"},
                                                 {"select_interval", 4},     {"update_interval", 2},
                                                 {"full_warm_up_rounds", 1}, {"overlap_step", overlap}};
  const ObservedRun observed = train_observed(spec);

  const ExpectedZenFlow rule{.topk = 0.2, .select_interval = 4, .update_interval = 2, .warm_up = 1};
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    SCOPED_TRACE(rank);
    const ExpectedShare share = expected_share(mlp_shapes(), stage, world, rank, sizeof(float));
    const std::int64_t owned = share.elems;
    // What should be said, step by step.
    std::vector<Deferred> deferred;
    std::vector<std::tuple<std::uint32_t, ExpectedPiece, std::uint8_t>> chosen;
    bool in_flight = false;
    std::uint32_t in_sum = 0;
    using State = instrumentation::DeferredState;
    for (std::uint32_t step = 0; step < spec.steps; ++step) {
      const auto publish = [&] {
        if (std::exchange(in_flight, false)) {
          deferred.push_back({step, instrumentation::kNoId, instrumentation::kNoId, State::published, owned});
        }
      };
      if (const auto cause = rule.selection_cause(step)) {
        publish();
        for (const ExpectedPiece& piece : share.pieces) {
          if (piece.columns > 0) chosen.emplace_back(step, piece, *cause);
        }
      }
      ++in_sum;
      const auto cause = rule.update_cause(step);
      if (!cause) continue;
      publish();
      deferred.push_back({step, *cause, std::exchange(in_sum, 0), State::begun, owned});
      in_flight = true;
      if (!overlap || rule.warms_up(step)) publish();
    }
    // Columns are chosen in steps 1, 4 and 8; the CPU steps in 0, 2, 3 (before 4 chooses anew), 4, 6, 7
    // and 8.
    ASSERT_GT(chosen.size(), 3U);
    ASSERT_EQ(deferred.size(), overlap ? 13U : 14U);

    std::vector<Deferred> said;
    std::size_t columns_said = 0;
    for (const Event& event : observed.lane(rank, StreamId::host)) {
      if (event.kind == EventKind::deferred_update) {
        said.push_back({event.b, event.a, event.c, static_cast<State>(event.code), event.v0});
      }
      if (event.kind != EventKind::columns_selected) continue;
      ASSERT_LT(columns_said, chosen.size());
      const auto& [step, piece, cause] = chosen[columns_said++];
      EXPECT_EQ(event.code, cause);
      EXPECT_EQ(event.a, piece.param);
      EXPECT_EQ(event.b, step);
      EXPECT_EQ(event.c, piece.chosen_columns(rule.topk));
      EXPECT_EQ(event.v1, piece.elems);
      // The same where the piece is whole rows.
      EXPECT_GE(event.v0, piece.fewest_in(event.c));
      EXPECT_LE(event.v0, piece.most_in(event.c));
    }
    EXPECT_EQ(columns_said, chosen.size());
    EXPECT_EQ(said, deferred);

    // The wait for a deferred update is on the compute lane, once for each that is published.
    std::vector<std::uint32_t> waits, published;
    std::int64_t open = 0;
    for (const Event& event : observed.lane(rank, StreamId::compute)) {
      if (event.kind == EventKind::deferred_wait_begin) {
        waits.push_back(event.b);
        EXPECT_EQ(event.v0, owned);
        ++open;
      }
      if (event.kind == EventKind::deferred_wait_end) --open;
      EXPECT_TRUE(open == 0 || open == 1);
    }
    for (const Deferred& update : deferred) {
      if (std::get<State>(update) == State::published) published.push_back(std::get<0>(update));
    }
    EXPECT_EQ(waits, published);
    EXPECT_EQ(open, 0);

    // After the warm-up the device steps what is chosen, and all that is no matrix, in every step.
    std::vector<std::int64_t> in_columns(spec.steps, 0);
    for (const Event& event : observed.lane(rank, StreamId::host)) {
      if (event.kind == EventKind::columns_selected) in_columns.at(event.b) += event.v0;
    }
    std::int64_t in_vectors = 0;
    for (const ExpectedPiece& piece : share.pieces) in_vectors += piece.columns == 0 ? piece.elems : 0;
    std::vector<std::pair<std::uint32_t, std::int64_t>> expected_steps, begins, ends;
    std::int64_t in_last_choice = 0;
    for (std::uint32_t step = 0; step < spec.steps; ++step) {
      if (rule.selection_cause(step)) in_last_choice = in_columns[step];
      if (!rule.warms_up(step)) expected_steps.emplace_back(step, in_vectors + in_last_choice);
    }
    for (const Event& event : observed.lane(rank, StreamId::compute)) {
      if (event.kind == EventKind::optimizer_begin) begins.emplace_back(event.b, event.v0);
      if (event.kind == EventKind::optimizer_end) ends.emplace_back(event.b, event.v0);
    }
    EXPECT_EQ(begins, expected_steps);
    EXPECT_EQ(ends, expected_steps);

    // The CPU steps every element once per deferred update, under the step that queued it.
    std::int64_t stepped = 0, begun = 0;
    for (const Event& event : observed.lane(rank, StreamId::worker)) {
      if (event.kind == EventKind::optimizer_begin) stepped += event.v0;
    }
    for (const Deferred& update : deferred) begun += std::get<State>(update) == State::begun ? 1 : 0;
    EXPECT_LE(stepped, begun * owned);
    EXPECT_GE(stepped, (begun - (overlap ? 1 : 0)) * owned);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ZenFlowEvents,
                         ::testing::Values(Shape{2, 1, false}, Shape{2, 3, true}, Shape{3, 2, false},
                                           Shape{3, 3, true}, Shape{1, 5, true}),
                         [](const auto& c) {
                           return "stage" + std::to_string(c.param.stage) + "_world" +
                                  std::to_string(c.param.world) + (c.param.overlap ? "_overlap" : "");
                         });

}  // namespace
}  // namespace shardscope::engine::testing::offload_events_test
