// ZenFlow's optimizer against an account in double of what every element's state and parameter must be, step
// by step: one state per element, on whichever rank.
#include "runtime/offload/zenflow_optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <set>

#include "tests/runtime/comm/thread_ranks.h"
#include "tests/runtime/engine/expected_zenflow.h"

namespace shardscope::engine::testing::zenflow_optimizer_test {
namespace {

using instrumentation::MemoryCategory;

constexpr std::int64_t kElems = 70;

/// A matrix of whole and broken rows, a bias, a matrix of which less than a row is here, padding.
std::vector<plan::ColumnSlice> slices() {
  return {{plan::ParamId{0}, 0, 41, 6, 2, 2},
          {plan::ParamId{1}, 41, 10, 0, 0, 0},
          {plan::ParamId{2}, 51, 5, 8, 6, 2}};
}
constexpr std::int64_t kReal = 56;

class Account {
 public:
  Account(const plan::ZenFlowSettings& settings, const std::vector<float>& weights)
      : settings_(settings),
        rule_{settings.topk_ratio, settings.select_interval, settings.update_interval, settings.warm_up_steps,
              settings.auto_ratio},
        votes_(rule_, 2) {
    for (const float weight : weights) state_.push_back({weight, 0, 0, weight, 0});
  }

  void step(const std::vector<float>& gradient, const kernels::AdamW& settings) {
    const std::int64_t now = step_++;
    if (rule_.selection_cause(now)) {
      publish();
      choose(gradient);
    }
    const bool update = rule_.update_cause(now, voted_).has_value();
    if (rule_.update_interval == 0 && !rule_.warms_up(now)) voted_ = vote(gradient, settings.grad_scale);
    ++in_sum_;
    for (std::size_t i = 0; i < state_.size(); ++i) {
      state_[i].sum += static_cast<double>(gradient[i]) * static_cast<double>(settings.grad_scale);
    }
    if (update) {
      publish();
      pending_.emplace();
      pending_->settings = settings;
      for (Element& element : state_) {
        pending_->gradient.push_back(element.sum / static_cast<double>(in_sum_));
        element.sum = 0;
      }
      in_sum_ = 0;
      if (!settings_.overlap_step || rule_.warms_up(now)) publish();
      ++updates;
    }
    for (const std::size_t i : chosen_) {
      adamw(state_[i], static_cast<double>(gradient[i]) * static_cast<double>(settings.grad_scale), settings);
      state_[i].param = state_[i].w;
    }
  }
  /// The update in flight is done, as read() says.
  void settle() {
    if (!pending_) return;
    for (std::size_t i = 0; i < state_.size(); ++i) {
      if (chosen_.count(i) == 0) adamw(state_[i], pending_->gradient[i], pending_->settings);
    }
    pending_.reset();
  }
  [[nodiscard]] double param(std::size_t i) const { return state_[i].param; }
  [[nodiscard]] double weight(std::size_t i) const { return state_[i].w; }
  [[nodiscard]] double momentum(std::size_t i) const { return state_[i].m; }

  int updates = 0;

 private:
  struct Element {
    double w, m, v, param, sum;
  };
  struct Pending {
    kernels::AdamW settings;
    std::vector<double> gradient;
  };

  static void adamw(Element& e, double g, const kernels::AdamW& s) {
    const double b1 = s.beta1, b2 = s.beta2, t = static_cast<double>(s.step), lr = s.lr;
    e.w *= 1 - lr * static_cast<double>(s.weight_decay);
    e.m = b1 * e.m + (1 - b1) * g;
    e.v = b2 * e.v + (1 - b2) * g * g;
    e.w -= lr * (e.m / (1 - std::pow(b1, t))) /
           (std::sqrt(e.v / (1 - std::pow(b2, t))) + static_cast<double>(s.epsilon));
  }

  void publish() {
    settle();
    for (Element& element : state_) element.param = element.w;
  }

  [[nodiscard]] static std::size_t column_of(const plan::ColumnSlice& slice, std::int64_t i) {
    return static_cast<std::size_t>((slice.first_column + i) % slice.columns);
  }

  void choose(const std::vector<float>& gradient) {
    chosen_.clear();
    for (const plan::ColumnSlice& slice : slices()) {
      std::set<std::size_t> columns;
      if (slice.columns > 0) {
        std::vector<double> scores(static_cast<std::size_t>(slice.columns), -1);
        for (std::int64_t i = 0; i < slice.elems; ++i) {
          double& score = scores[column_of(slice, i)];
          score = std::max(score, 0.0) +
                  std::abs(static_cast<double>(gradient[static_cast<std::size_t>(slice.owned_offset + i)]));
        }
        for (std::int64_t k = 0; k < slice.choose; ++k) {
          const auto best = std::max_element(scores.begin(), scores.end());
          columns.insert(static_cast<std::size_t>(best - scores.begin()));
          *best = -2;
        }
      }
      for (std::int64_t i = 0; i < slice.elems; ++i) {
        if (slice.columns == 0 || columns.count(column_of(slice, i)) != 0) {
          chosen_.insert(static_cast<std::size_t>(slice.owned_offset + i));
        }
      }
    }
  }

  bool vote(const std::vector<float>& gradient, float factor) {
    std::vector<ExpectedVotes::Mass> masses(2);
    std::size_t matrix = 0;
    for (const plan::ColumnSlice& slice : slices()) {
      if (slice.columns == 0) continue;
      for (std::int64_t i = slice.owned_offset; i < slice.owned_offset + slice.elems; ++i) {
        const double mass = std::abs(static_cast<double>(gradient[static_cast<std::size_t>(i)])) *
                            static_cast<double>(factor);
        masses[matrix].all += mass;
        if (chosen_.count(static_cast<std::size_t>(i)) != 0) masses[matrix].chosen += mass;
      }
      ++matrix;
    }
    return votes_.decides(masses);
  }

  plan::ZenFlowSettings settings_;
  ExpectedZenFlow rule_;
  ExpectedVotes votes_;
  std::int64_t step_ = 0, in_sum_ = 0;
  bool voted_ = false;  ///< in the step before
  std::vector<Element> state_;
  std::set<std::size_t> chosen_;
  std::optional<Pending> pending_;
};

/// Parameters of a test, in device memory.
class Params final : public optim::ParamSink {
 public:
  explicit Params(device::Device& device)
      : device_(device),
        buffer_(device.memory().allocate(kElems * sizeof(float), {MemoryCategory::param_shard},
                                         device.compute())) {}
  [[nodiscard]] kernels::DType type() const noexcept override { return kernels::DType::f32; }
  [[nodiscard]] bool in_place() const noexcept override { return true; }
  [[nodiscard]] kernels::Ptr at(plan::Range range) override {
    return execution::advance(kernels::Ptr{buffer_.data(), kernels::DType::f32}, range.begin);
  }
  void put(plan::Range range, const void* from, std::uint32_t) override {
    device_.copy_async(static_cast<float*>(buffer_.data()) + range.begin, from,
                       static_cast<std::size_t>(range.size()) * sizeof(float), device_.copy());
  }
  [[nodiscard]] float get(std::size_t i) const { return static_cast<const float*>(buffer_.data())[i]; }

 private:
  device::Device& device_;
  device::Buffer buffer_;
};

void compare(const plan::ZenFlowSettings& zenflow, int steps, int least_updates) {
  const auto outcomes = shardscope::testing::run_ranks(1, {}, [&](comm::World&, device::Device& device) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> weights(kElems, 0.0F);
    for (std::int64_t i = 0; i < kReal; ++i) weights[static_cast<std::size_t>(i)] = normal(random);
    Params params(device);
    device::Buffer gradient =
        device.memory().allocate(kElems * sizeof(float), {MemoryCategory::grad_shard}, device.compute());
    const auto optimizer =
        offload::make_zenflow_optimizer({.device = device,
                                         .params = params,
                                         .type = kernels::DType::f32,
                                         .gradient = {gradient.data(), kernels::DType::f32},
                                         .elems = kElems,
                                         .slices = slices(),
                                         .settings = zenflow,
                                         .matrices = 2,
                                         .matrix_of = {0, 9, 1},
                                         .pin_memory = true,
                                         .piece_elems = 16,
                                         .sum_over_ranks = [](std::span<double>) {}});
    optimizer->write(base::StateKind::master, {0, kElems}, weights.data());
    optimizer->publish_params();
    Account account(zenflow, weights);
    std::vector<float> values(kElems, 0.0F);
    for (int step = 0; step < steps; ++step) {
      // Columns whose weight wanders, so that the choice changes.
      for (std::size_t i = 0; i < static_cast<std::size_t>(kReal); ++i) {
        values[i] = normal(random) *
                    (1.0F + 4.0F * static_cast<float>((i + static_cast<std::size_t>(step)) % 7 == 0));
      }
      std::memcpy(gradient.data(), values.data(), kElems * sizeof(float));
      kernels::AdamW settings;
      settings.lr = 1e-2F * (1.0F + 0.1F * static_cast<float>(step));
      settings.step = step + 1;
      settings.grad_scale = 0.5F + 0.01F * static_cast<float>(step);
      optimizer->begin_update();
      optimizer->update(0, static_cast<std::uint32_t>(step), settings);
      optimizer->finish_update();
      device.compute().synchronize();
      account.step(values, settings);
      // The same operations in fp32: a few roundings a step on weights of size 1.
      for (std::size_t i = 0; i < kElems; ++i) {
        ASSERT_NEAR(params.get(i), account.param(i), 2e-5) << "step " << step << ", element " << i;
      }
    }
    EXPECT_GE(account.updates, least_updates);
    account.settle();
    std::vector<float> out(kElems);
    optimizer->read(base::StateKind::master, {0, kElems}, out.data());
    for (std::size_t i = 0; i < kElems; ++i) ASSERT_NEAR(out[i], account.weight(i), 2e-5) << i;
    optimizer->read(base::StateKind::momentum, {10, 60}, out.data());
    for (std::size_t i = 10; i < 60; ++i) ASSERT_NEAR(out[i - 10], account.momentum(i), 1e-5) << i;
    device.synchronize();
  });
  EXPECT_EQ(outcomes[0].error, "");
}

TEST(ZenFlowOptimizer, UpdatesTheRestEveryFewSteps) {
  compare({.topk_ratio = 0.4, .select_interval = 6, .update_interval = 3}, 20, 6);
}
TEST(ZenFlowOptimizer, DefersTheUpdateBesideTheNextInterval) {
  compare({.topk_ratio = 0.4, .select_interval = 6, .update_interval = 3, .overlap_step = true}, 20, 6);
  compare({.topk_ratio = 0.4, .select_interval = 7, .update_interval = 3, .overlap_step = true}, 23, 6);
  compare({.topk_ratio = 0.4, .update_interval = 1, .overlap_step = true}, 8, 8);
}
TEST(ZenFlowOptimizer, WarmsUpWithEverything) {
  for (const bool overlap : {false, true}) {
    compare({.topk_ratio = 0.4,
             .select_interval = 5,
             .update_interval = 2,
             .warm_up_steps = 3,
             .overlap_step = overlap},
            16, 6);
  }
}
TEST(ZenFlowOptimizer, VotesForTheInterval) {
  for (const bool overlap : {false, true}) {
    compare({.topk_ratio = 0.4, .select_interval = 9, .auto_ratio = 1.0, .overlap_step = overlap}, 27, 4);
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::zenflow_optimizer_test
