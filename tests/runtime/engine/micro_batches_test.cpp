// Micro-batches of other sizes on every rank and in every micro-step: the same training in every stage, and
// what is recorded of it is true.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "instrumentation/event_fields.h"
#include "tests/runtime/engine/rank_events.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::micro_batches_test {
namespace {

namespace ev = instrumentation;
using ev::EventKind;

const Json kShapes{{4, 12}, {1, 5}, {3, 9}, {2, 1}, {4, 7}};

RunSpec shaped(int stage, int micro_steps, const Json& micro_batches, std::uint32_t world = 3) {
  RunSpec spec;
  spec.model = model_named("gpt");
  spec.config = make_config(stage, micro_steps);
  spec.config["shardscope"]["micro_batches"] = micro_batches;
  spec.world = world;
  spec.data = "golden:gpt";
  return spec;
}

/// A text of documents between 1 and 14 bytes long; the model's context is 12 and its vocabulary 59.
class Documents {
 public:
  Documents() : path_(std::filesystem::temp_directory_path() / ("documents_" + std::to_string(::getpid()))) {
    std::ofstream out(path_, std::ios::binary);
    for (int i = 0; i < 60; ++i) {
      for (int k = 0; k < 1 + i * 5 % 13; ++k) out << static_cast<char>(1 + (i * 7 + k * 3) % 50);
      out << static_cast<char>(55);
    }
  }
  Documents(const Documents&) = delete;
  Documents& operator=(const Documents&) = delete;
  ~Documents() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

class SizesChange : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] RunSpec spec(int stage, int micro_steps) const {
    if (GetParam() == "shapes") return shaped(stage, micro_steps, {{"shapes", kShapes}});
    RunSpec of_documents = shaped(stage, micro_steps, {{"packing", GetParam()}, {"separator", 55}});
    of_documents.data = documents_.path();
    return of_documents;
  }
  Documents documents_;
};

TEST_P(SizesChange, StagesAgreeBitwise) {
  const TrainingRun reference = train(spec(0, 1));
  ASSERT_EQ(reference.ranks[0].error, "");
  for (const int stage : {1, 2, 3}) {
    EXPECT_EQ(first_difference(reference, train(spec(stage, 1))), "") << "stage " << stage;
  }
  EXPECT_EQ(first_difference(train(spec(0, 3)), train(spec(1, 3))), "");
  EXPECT_EQ(first_difference(train(spec(2, 3)), train(spec(3, 3))), "");
}

/// What the host and compute threads decided of gathers and reductions, without sizes of activations.
std::vector<ev::Event> decisions(const ObservedRun& observed, std::uint32_t rank) {
  std::vector<ev::Event> found;
  for (ev::Event event : observed.lane(rank, ev::StreamId::host)) {
    switch (event.kind) {
      case EventKind::collective_submitted:
      case EventKind::collective_part:
      case EventKind::bucket_add:
      case EventKind::bucket_flush:
      case EventKind::trace_mode:
      case EventKind::trace_invalidated:
        event.ticks = 0;
        found.push_back(event);
        break;
      default:
        break;
    }
  }
  return found;
}

// Gathers, buckets and the trace go by modules and parameters: no size of a micro-batch changes them.
TEST_P(SizesChange, DecisionsAreThoseOfOneSize) {
  for (const int stage : {2, 3}) {
    const ObservedRun changing = train_observed(spec(stage, 2));
    const ObservedRun fixed = train_observed(shaped(stage, 2, Json::object()));
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      const auto a = decisions(changing, rank), b = decisions(fixed, rank);
      ASSERT_EQ(a.size(), b.size());
      ASSERT_GT(a.size(), 40U);
      for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(std::tie(a[i].kind, a[i].code, a[i].a, a[i].b, a[i].v0, a[i].v1),
                  std::tie(b[i].kind, b[i].code, b[i].a, b[i].b, b[i].v0, b[i].v1));
        EXPECT_NE(a[i].kind, EventKind::trace_invalidated);
      }
    }
  }
}

// Tokens of a step are those of all ranks, each with its own, without padding.
TEST_P(SizesChange, TokensAreCountedOnEveryRank) {
  const ObservedRun observed = train_observed(spec(3, 2));
  std::map<std::uint32_t, std::int64_t> of_step;  // the sums of what ranks say of their micro-batches
  std::map<std::uint32_t, std::map<std::uint32_t, std::int64_t>> of_rank;
  std::int64_t padding = 0;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    for (const ev::Event& event : observed.lane(rank, ev::StreamId::host)) {
      if (event.kind != EventKind::micro_batch) continue;
      const auto batch = ev::as<EventKind::micro_batch>(event);
      of_step[batch.step] += batch.tokens;
      of_rank[rank][batch.step] += batch.tokens;
      padding += batch.padding;
      EXPECT_EQ((batch.tokens + batch.padding) % batch.samples, 0);
      if (GetParam() != "shapes") continue;
      EXPECT_EQ(batch.samples, kShapes[(batch.micro_step + rank) % 5][0]);
      EXPECT_EQ(batch.tokens, batch.samples * kShapes[(batch.micro_step + rank) % 5][1].get<std::int64_t>());
    }
  }
  EXPECT_EQ(of_step.size(), 4U);
  EXPECT_EQ(padding > 0, GetParam() != "shapes");
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    for (const ev::Event& event : observed.lane(rank, ev::StreamId::host)) {
      if (event.kind == EventKind::tokens) {
        const auto tokens = ev::as<EventKind::tokens>(event);
        EXPECT_EQ(tokens.tokens, of_rank[rank][tokens.step]);
      }
      if (event.kind != EventKind::step_end) continue;
      const auto end = ev::as<EventKind::step_end>(event);
      EXPECT_EQ(end.tokens, of_step[end.step]);
      EXPECT_NE(end.tokens, 3 * of_rank[0][end.step]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SizesChange, ::testing::Values("shapes", "padded", "packed"),
                         [](const auto& c) { return c.param; });

// Four documents in one padded micro-batch have the mean over their tokens, as torch's
// cross_entropy(ignore_index=-100); each by itself, a mean over its own.
TEST(Padding, IsNoPartOfTheLoss) {
  const Documents documents;
  const auto losses = [&](int micro_batch, int micro_steps) {
    RunSpec spec = shaped(3, micro_steps, {{"packing", "padded"}, {"separator", 55}}, 1);
    spec.config["train_micro_batch_size_per_gpu"] = micro_batch;
    spec.data = documents.path();
    spec.steps = 1;
    return train_observed(spec);
  };
  const ObservedRun together = losses(4, 1), apart = losses(1, 4);
  double sum = 0;
  std::int64_t tokens = 0;
  std::vector<std::int64_t> of_micro;
  for (const ev::Event& event : apart.lane(0, ev::StreamId::host)) {
    if (event.kind == EventKind::micro_batch)
      of_micro.push_back(ev::as<EventKind::micro_batch>(event).tokens);
  }
  ASSERT_EQ(of_micro.size(), 4U);
  ASSERT_NE(*std::ranges::min_element(of_micro), *std::ranges::max_element(of_micro));
  for (std::size_t i = 0; i < 4; ++i) {
    sum += static_cast<double>(apart.run.ranks[0].steps[0].losses[i]) * static_cast<double>(of_micro[i]);
    tokens += of_micro[i];
  }
  EXPECT_EQ(together.run.ranks[0].steps[0].tokens, tokens);
  EXPECT_NEAR(together.run.ranks[0].steps[0].losses[0], sum / static_cast<double>(tokens), 2e-6);
}

// What is allocated for the largest micro-batch serves smaller ones: memory of states and the rest
// afterwards.
TEST(Sizes, LeaveNothingBehind) {
  const TrainingRun run = train(shaped(3, 2, {{"shapes", kShapes}}));
  for (const RankRun& rank : run.ranks) {
    EXPECT_EQ(rank.error, "");
    EXPECT_EQ(rank.used_after, 0U);
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::micro_batches_test
