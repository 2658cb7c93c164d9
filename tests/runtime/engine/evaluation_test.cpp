// Evaluation between steps: training goes on to the bit as if there was none, the loss is that of the data
// whatever the ranks, stage 3 fetches by a trace of evaluation's own, and nothing is kept for a backward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <mutex>

#include "runtime/data/stream.h"
#include "runtime/plan/scheduler.h"
#include "tests/runtime/engine/rank_events.h"

namespace shardscope::engine::testing::evaluation_test {
namespace {

using instrumentation::as;
using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::MemoryCategory;
using instrumentation::Phase;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Evaluates on the first `batches` of `data` after every step and notes the losses that ranks report.
class Evaluator {
 public:
  Evaluator(std::string data, std::int64_t batches) : data_(std::move(data)), batches_(batches) {}

  void operator()(Engine& engine, const Context& context, const StepResult& step) {
    data::StreamOptions options;
    options.path = data_;
    options.micro_batch = context.config.batch.micro_batch_size;
    options.rank = context.rank();
    options.world = context.world();
    const auto stream = data::open_stream(context.model.spec, options);
    const Evaluation result = engine.evaluate([&](data::HostBatch& batch) { stream->next(batch); }, batches_);
    const std::scoped_lock lock(mutex_);
    EXPECT_EQ(result.step, step.step);
    EXPECT_EQ(result.batches, batches_);
    losses_.push_back(result.loss);
  }
  [[nodiscard]] const std::vector<double>& losses() const { return losses_; }

 private:
  std::string data_;
  std::int64_t batches_;
  std::mutex mutex_;
  std::vector<double> losses_;
};

RunSpec spec_of(const std::string& model, std::uint32_t world, Json config) {
  RunSpec spec;
  spec.model = model_named(model);
  spec.data = model.rfind("gpt", 0) == 0 ? "golden:gpt" : "golden:mlp";
  spec.config = std::move(config);
  spec.world = world;
  spec.steps = 4;
  return spec;
}

/// The run with an evaluation after every step, bitwise the run without.
void trains_alike(const RunSpec& spec) {
  const TrainingRun without = train(spec);
  Evaluator evaluate(spec.data, 3);
  RunSpec evaluated = spec;
  evaluated.between_steps = std::ref(evaluate);
  EXPECT_EQ(first_difference(without, train(evaluated)), "");
  ASSERT_EQ(evaluate.losses().size(), static_cast<std::size_t>(spec.steps) * spec.world);
  EXPECT_NE(evaluate.losses().back(), evaluate.losses().front()) << "of the weights that training changed";
}

struct Case {
  int stage;
  std::uint32_t world;
  int accumulation;
  std::string type;
};
class EveryStage : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, EveryStage,
                         ::testing::Values(Case{0, 2, 1, "fp32"}, Case{1, 2, 2, "fp32"},
                                           Case{2, 3, 2, "bf16"}, Case{3, 1, 1, "fp32"},
                                           Case{3, 2, 2, "fp32"}, Case{3, 3, 1, "bf16"},
                                           Case{3, 2, 1, "fp16"}),
                         [](const auto& c) {
                           return "stage" + std::to_string(c.param.stage) + "_world" +
                                  std::to_string(c.param.world) + "_gas" +
                                  std::to_string(c.param.accumulation) + "_" + c.param.type;
                         });

TEST_P(EveryStage, TrainingIsBitwiseTheSame) {
  const Case& c = GetParam();
  for (const char* model : {"mlp", "gpt_tied"}) {
    SCOPED_TRACE(model);
    Json config = make_config(c.stage, c.accumulation, c.type);
    if (c.type == "fp16") config["fp16"]["loss_scale"] = 256;  // no step is skipped
    trains_alike(spec_of(model, c.world, std::move(config)));
  }
}

TEST(Evaluation, TrainingIsBitwiseTheSameWithStatesElsewhere) {
  std::string folder = (std::filesystem::temp_directory_path() / "evaluation-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const Json cpu{{"device", "cpu"}};
  const Json nvme{{"device", "nvme"}, {"nvme_path", folder}, {"buffer_count", 6}};
  for (const Json& place :
       {Json{{"offload_optimizer", cpu}}, Json{{"offload_optimizer", cpu}, {"offload_param", cpu}},
        Json{{"offload_optimizer", nvme}, {"offload_param", nvme}}}) {
    SCOPED_TRACE(place.dump());
    RunSpec spec = spec_of("mlp", 2, make_config(3));
    spec.model = wide_model();
    spec.config["zero_optimization"]["stage3_prefetch_bucket_size"] = 1'000'000;
    spec.config["zero_optimization"]["stage3_max_live_parameters"] = 3'000'000;
    spec.config["zero_optimization"].update(place);
    trains_alike(spec);
  }
  std::filesystem::remove_all(folder);
}

// ZenFlow's CPU optimizer may be at work while the forward of an evaluation reads the parameters.
TEST(Evaluation, TrainingIsBitwiseTheSameWithDeferredUpdates) {
  for (const int stage : {1, 2, 3}) {
    SCOPED_TRACE(stage);
    RunSpec spec = spec_of("mlp", 2, make_config(stage, 1, "bf16"));
    spec.steps = 8;
    spec.config["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
    spec.config["zero_optimization"]["zenflow"] = {{"topk_ratio", 0.2},        {"select_strategy", "step"},
                                                   {"select_interval", 4},     {"update_interval", 2},
                                                   {"full_warm_up_rounds", 1}, {"overlap_step", true}};
    trains_alike(spec);
  }
}

TEST(Evaluation, TrainingIsBitwiseTheSameWithGroupsOfRanksAndInDeepSpeedsWay) {
  for (const Json& zero :
       {Json{{"zero_hpz_partition_size", 2}}, Json{{"zero_quantized_weights", true}},
        Json{{"mics_shard_size", 2}}, Json{{"stage3_param_persistence_threshold", 1000}}}) {
    for (const char* compat : {"shardscope", "deepspeed", "notes"}) {
      SCOPED_TRACE(zero.dump() + " " + compat);
      RunSpec spec = spec_of("mlp", 4, make_config(3, 2));
      spec.config["zero_optimization"].update(zero);
      spec.config["shardscope"] = {{"ranks_per_node", 2}, {"compat", compat}};
      trains_alike(spec);
    }
  }
}

/// All weights are 0, and stay: the loss has a closed form.
RunSpec of_zeros(const std::string& model, std::uint32_t world, int stage) {
  RunSpec spec = spec_of(model, world, make_config(stage));
  spec.steps = 1;
  spec.begin = [](const Context&, Engine& engine, data::BatchStream&) {
    engine.set_weights(
        [](plan::ParamId, plan::Range range, float* to) { std::fill_n(to, range.size(), 0.0F); });
  };
  spec.config["optimizer"]["params"]["lr"] = 0.0;
  return spec;
}

// A model of zeros predicts 0 and every token alike.
TEST(Evaluation, LossHasItsClosedForm) {
  for (const int stage : {0, 1, 2, 3}) {
    for (const std::uint32_t world : {1U, 2U, 3U}) {
      SCOPED_TRACE("stage " + std::to_string(stage) + ", world " + std::to_string(world));
      constexpr std::int64_t kBatches = 5;
      RunSpec spec = of_zeros("mlp", world, stage);
      double squares = 0;
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        const auto stream = data::open_stream(spec.model, {"golden:mlp", 4, 0, rank, world, 1});
        data::HostBatch batch;
        for (std::int64_t i = 0; i < kBatches; ++i) {
          stream->next(batch);
          for (const float label : batch.labels) squares += static_cast<double>(label) * label;
        }
      }
      Evaluator vectors("golden:mlp", kBatches);
      spec.between_steps = std::ref(vectors);
      EXPECT_EQ(train(spec).ranks[0].error, "");
      const double expected = squares / (4.0 * kBatches * world);
      ASSERT_EQ(vectors.losses().size(), world);
      for (const double loss : vectors.losses()) EXPECT_NEAR(loss, expected, 1e-6 * expected);

      RunSpec tokens = of_zeros("gpt", world, stage);
      Evaluator evaluate_tokens("golden:gpt", 2);
      tokens.between_steps = std::ref(evaluate_tokens);
      EXPECT_EQ(train(tokens).ranks[0].error, "");
      const double uniform = std::log(static_cast<double>(tokens.model.vocabulary));
      for (const double loss : evaluate_tokens.losses()) EXPECT_NEAR(loss, uniform, 1e-6 * uniform);
    }
  }
}

// The same samples on one, two, three and four ranks. The mean of means is the mean, since batches are alike.
TEST(Evaluation, LossDoesNotDependOnTheNumberOfRanks) {
  constexpr std::int64_t kGlobalBatch = 12;
  std::optional<double> alone;
  for (const std::uint32_t world : {1U, 2U, 3U, 4U}) {
    RunSpec spec = spec_of("mlp", world, make_config(3));
    spec.config["train_micro_batch_size_per_gpu"] = kGlobalBatch / world;
    spec.config["optimizer"]["params"]["lr"] = 0.0;  // training's sums are in another order
    spec.data.clear();                               // samples have numbers there
    spec.steps = 1;
    Evaluator evaluate("", 4);
    spec.between_steps = std::ref(evaluate);
    ASSERT_EQ(train(spec).ranks[0].error, "");
    ASSERT_EQ(evaluate.losses().size(), world);
    if (!alone) alone = evaluate.losses().front();
    // fp32 means over 3 to 12 samples.
    for (const double loss : evaluate.losses()) EXPECT_NEAR(loss, *alone, 1e-6 * *alone) << world;
  }
  EXPECT_GT(*alone, 0.01);
}

struct Observed {
  ObservedRun run;
  std::vector<double> losses;
};
Observed observe(const Json& zero, std::int64_t steps, std::int64_t batches) {
  RunSpec spec = spec_of("mlp", 2, make_config(3, 2));
  spec.config["zero_optimization"].update(zero);
  spec.steps = steps;
  Evaluator evaluate("golden:mlp", batches);
  if (batches > 0) spec.between_steps = std::ref(evaluate);
  Observed observed{train_observed(spec), {}};
  observed.losses = evaluate.losses();
  return observed;
}

TEST(Evaluation, StageThreeFollowsATraceOfItsOwn) {
  const Observed observed = observe(Json::object(), 3, 2);
  for (const auto& [rank, events] : observed.run.events) {
    SCOPED_TRACE(rank);
    std::vector<plan::TraceMode> training, evaluation;
    std::vector<std::uint64_t> prefetches;  // by batch
    std::vector<std::uint32_t> steps;
    bool evaluates = false;
    for (const Event& event : events) {
      EXPECT_NE(event.kind, EventKind::trace_invalidated);
      if (event.kind == EventKind::trace_mode) {
        training.push_back(as<EventKind::trace_mode>(event).mode);
        evaluates = false;
      } else if (event.kind == EventKind::eval_trace_mode) {
        evaluation.push_back(as<EventKind::eval_trace_mode>(event).mode);
        steps.push_back(as<EventKind::eval_trace_mode>(event).step);
        prefetches.push_back(0);
        evaluates = true;
      } else if (event.kind == EventKind::prefetch_issued && evaluates) {
        ++prefetches.back();
      }
    }
    constexpr auto record = plan::TraceMode::record, complete = plan::TraceMode::complete;
    EXPECT_THAT(training, ElementsAre(record, complete, complete, complete, complete, complete));
    EXPECT_THAT(evaluation, ElementsAre(record, complete, complete, complete, complete, complete));
    EXPECT_THAT(steps, ElementsAre(0, 0, 1, 1, 2, 2));
    ASSERT_EQ(prefetches.size(), 6U);
    EXPECT_EQ(prefetches[0], 0U) << "recorded first";
    EXPECT_GT(prefetches[1], 2U);
    for (std::size_t i = 2; i < prefetches.size(); ++i) EXPECT_EQ(prefetches[i], prefetches[1]);
  }
}

/// What the counters of training's micro-steps say, in order.
std::vector<std::tuple<std::uint8_t, std::uint32_t, std::int64_t>> counters(
    const std::vector<Event>& events) {
  std::vector<std::tuple<std::uint8_t, std::uint32_t, std::int64_t>> all;
  for (const Event& event : events) {
    if (event.kind == EventKind::fetch_counter) all.emplace_back(event.code, event.c, event.v0);
  }
  return all;
}

TEST(Evaluation, CountersOfTrainingAreThoseOfTraining) {
  for (const int persistent : {0, 1000}) {
    const Json zero{{"stage3_param_persistence_threshold", persistent}};
    const Observed with = observe(zero, 3, 2), without = observe(zero, 3, 0);
    for (const auto& [rank, events] : with.run.events) {
      EXPECT_EQ(counters(events), counters(without.run.events.at(rank))) << "rank " << rank;
      EXPECT_EQ(counters(events).size(), 3U * 2 * 8);
    }
  }
}

// One phase each between two steps, its loss once and alike on all ranks, modules of no micro-step.
TEST(Evaluation, IsAPhaseBetweenTwoSteps) {
  const Observed observed = observe(Json::object(), 2, 3);
  ASSERT_EQ(observed.losses.size(), 4U);
  for (const auto& [rank, events] : observed.run.events) {
    SCOPED_TRACE(rank);
    std::vector<std::uint32_t> phases, modules_in, waits_in;
    std::vector<double> losses;
    bool inside = false, step_open = false;
    for (const Event& event : events) {
      if (event.kind == EventKind::step_begin) step_open = true;
      if (event.kind == EventKind::step_end) step_open = false;
      if (event.kind == EventKind::phase_begin || event.kind == EventKind::phase_end) {
        const auto phase = as<EventKind::phase_begin>(event);
        if (phase.phase != Phase::evaluation) {
          // What a step queued on another stream may still go on.
          EXPECT_FALSE(inside && event.stream == instrumentation::StreamId::compute);
          continue;
        }
        EXPECT_FALSE(step_open);
        EXPECT_EQ(event.stream, instrumentation::StreamId::compute);
        EXPECT_EQ(phase.micro_step, instrumentation::kNoId);
        inside = event.kind == EventKind::phase_begin;
        if (inside) phases.push_back(phase.step);
      }
      if (event.kind == EventKind::module_begin && inside) {
        const auto module = as<EventKind::module_begin>(event);
        EXPECT_EQ(module.pass, instrumentation::Pass::forward);
        modules_in.push_back(module.micro_step);
      }
      if (event.kind == EventKind::data_wait_begin && inside) waits_in.push_back(event.a);
      EXPECT_FALSE(inside && event.kind == EventKind::micro_step_begin);
      if (event.kind != EventKind::eval_loss) continue;
      const auto loss = as<EventKind::eval_loss>(event);
      EXPECT_EQ(loss.batches, 3U);
      EXPECT_EQ(loss.step, losses.size());
      losses.push_back(loss.value);
    }
    EXPECT_THAT(phases, ElementsAre(0, 1));
    EXPECT_FALSE(modules_in.empty());
    EXPECT_THAT(modules_in, Each(instrumentation::kNoId));
    EXPECT_THAT(waits_in, Each(instrumentation::kNoId));
    EXPECT_EQ(waits_in.size(), 6U);
    for (const double loss : losses) EXPECT_THAT(observed.losses, ::testing::Contains(loss));
    EXPECT_EQ(losses.size(), 2U);
  }
}

/// Largest sum of one category while an evaluation was queued, and while it was not.
struct Peaks {
  std::int64_t evaluating = 0, training = 0;
};
Peaks peaks(const std::vector<Event>& events, MemoryCategory category) {
  Peaks peaks;
  std::int64_t bytes = 0;
  bool evaluates = false;
  for (const Event& event : events) {
    if (event.kind == EventKind::eval_trace_mode) evaluates = true;
    if (event.kind == EventKind::trace_mode) evaluates = false;
    if (event.kind != EventKind::memory_alloc && event.kind != EventKind::memory_free) continue;
    const auto memory = as<EventKind::memory_alloc>(event);
    if (memory.category != category || memory.pool != instrumentation::MemoryPool::device) continue;
    bytes += event.kind == EventKind::memory_alloc ? memory.bytes : -memory.bytes;
    std::int64_t& peak = evaluates ? peaks.evaluating : peaks.training;
    peak = std::max(peak, bytes);
  }
  return peaks;
}

TEST(Evaluation, KeepsNoActivationAndNoGradient) {
  RunSpec spec = spec_of("gpt", 2, make_config(3));
  Evaluator evaluate("golden:gpt", 2);
  std::vector<std::size_t> before, after;
  spec.between_steps = [&](Engine& engine, const Context& context, const StepResult& step) {
    engine.synchronize();
    const std::size_t used = context.device.memory().used_bytes() + context.device.host().used_bytes();
    evaluate(engine, context, step);
    engine.synchronize();
    if (step.step > 0) {  // the first one makes buffers that later ones find
      EXPECT_EQ(context.device.memory().used_bytes() + context.device.host().used_bytes(), used);
    }
  };
  const ObservedRun run = train_observed(spec);
  for (const auto& [rank, events] : run.events) {
    SCOPED_TRACE(rank);
    const Peaks activations = peaks(events, MemoryCategory::activation);
    EXPECT_GT(activations.evaluating, 0);
    EXPECT_LT(activations.evaluating, activations.training / 2)
        << "two blocks, of which one is held at a time";
    bool evaluates = false;
    for (const Event& event : events) {
      if (event.kind == EventKind::eval_trace_mode) evaluates = true;
      if (event.kind == EventKind::trace_mode) evaluates = false;
      if (!evaluates || event.kind != EventKind::memory_alloc) continue;
      const auto category = as<EventKind::memory_alloc>(event).category;
      EXPECT_NE(category, MemoryCategory::grad_full);
      EXPECT_NE(category, MemoryCategory::grad_shard);
      EXPECT_NE(category, MemoryCategory::reduce_bucket);
    }
  }
}

TEST(Evaluation, RefusesWhatHasNoMeaning) {
  RunSpec spec = spec_of("mlp", 1, make_config(0));
  spec.steps = 1;
  const auto next = [](data::HostBatch&) { ADD_FAILURE() << "nothing was to be read"; };
  spec.begin = [&](const Context&, Engine& engine, data::BatchStream&) {
    EXPECT_THROW((void)engine.evaluate(next, 1), std::logic_error);
  };
  spec.between_steps = [&](Engine& engine, const Context&, const StepResult&) {
    EXPECT_THROW((void)engine.evaluate(next, 0), std::invalid_argument);
  };
  EXPECT_EQ(train(spec).ranks[0].error, "");
}

}  // namespace
}  // namespace shardscope::engine::testing::evaluation_test
