#include "tests/kernels/support.h"

namespace shardscope::kernels::test {
namespace {

using Loss = OnEveryIsa;
SHARDSCOPE_ON_EVERY_ISA(Loss);

double reference_cross_entropy(const Doubles& logits, const std::vector<std::int32_t>& target,
                               std::int64_t V) {
  double loss = 0;
  for (std::size_t r = 0; r < target.size(); ++r) {
    const double* row = logits.data() + static_cast<std::int64_t>(r) * V;
    const double top = *std::max_element(row, row + V);
    double sum = 0;
    for (std::int64_t i = 0; i < V; ++i) sum += std::exp(row[i] - top);
    loss += std::log(sum) + top - row[target[r]];
  }
  return loss / static_cast<double>(target.size());
}

TEST_P(Loss, CrossEntropyAgainstCentralDifferences) {
  for (const auto& [N, V] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 3}, {3, 7}, {2, 17}, {4, 30}, {2, 257}}) {
    for (const DType type : kAllTypes) {
      Array logits(random_doubles(N * V, 1, -5, 5), type);
      std::vector<std::int32_t> target;
      for (std::int64_t i = 0; i < N; ++i) target.push_back(static_cast<std::int32_t>((i * 7 + V - 1) % V));
      Doubles point = logits.doubles();
      const double want = reference_cross_entropy(point, target, V);
      const float grad_scale = 8.0F;
      Doubles gradient = central_differences(
          point, [&, width = V] { return reference_cross_entropy(point, target, width); });
      for (double& g : gradient) g *= static_cast<double>(grad_scale);
      float loss = -1;
      cross_entropy(exec, &loss, logits, target.data(), N, V, grad_scale);
      EXPECT_NEAR(loss, want, 2e-6 * std::fabs(want) + 1e-6);
      // f16 gradients may be subnormal: steps of 2^-24.
      EXPECT_TRUE(close(logits.doubles(), gradient, 1.01 * unit_roundoff(type) + 2e-6, 2e-6))
          << N << 'x' << V;
    }
  }
}

// As if the ignored rows were not there, to the bit; their gradients are 0.
TEST_P(Loss, IgnoredTargetsCountNowhere) {
  const std::int64_t V = 30;
  const std::vector<std::int32_t> target{3, -100, 29, -1, 0, -100};
  for (const DType type : kAllTypes) {
    const Doubles values = random_doubles(6 * V, 11, -5, 5);
    Doubles kept;
    for (const std::int64_t row : {0, 2, 4})
      kept.insert(kept.end(), values.begin() + row * V, values.begin() + row * V + V);
    Array all(values, type), alone(kept, type);
    float loss = -1, loss_alone = -2;
    const std::vector<std::int32_t> target_alone{3, 29, 0};
    cross_entropy(exec, &loss, all, target.data(), 6, V, 8.0F, 3);
    cross_entropy(exec, &loss_alone, alone, target_alone.data(), 3, V, 8.0F);
    EXPECT_EQ(loss, loss_alone);
    const Doubles gradient = all.doubles(), gradient_alone = alone.doubles();
    for (std::int64_t i = 0; i < 6 * V; ++i) {
      const std::int64_t row = i / V;
      EXPECT_EQ(gradient[static_cast<std::size_t>(i)],
                row % 2 == 1 ? 0.0 : gradient_alone[static_cast<std::size_t>(row / 2 * V + i % V)])
          << i;
    }
  }
}

TEST_P(Loss, OfNoTargetAtAllIsNan) {
  Array logits(random_doubles(10, 1), DType::f32);
  const std::vector<std::int32_t> target{-100, -100};
  float loss = 0;
  cross_entropy(exec, &loss, logits, target.data(), 2, 5, 1.0F, 2);
  EXPECT_TRUE(std::isnan(loss));  // as torch's mean of nothing
  for (const double g : logits.doubles()) EXPECT_EQ(g, 0.0);
}

TEST_P(Loss, LargeLogitsStayFinite) {
  Array logits({1000.0, -1000.0, 0.0, 999.0, 1000.0}, DType::f32);
  const std::int32_t target = 3;
  float loss = 0;
  cross_entropy(exec, &loss, logits, &target, 1, 5, 1.0F);
  EXPECT_NEAR(loss, std::log(2.0 + std::exp(-1.0)) + 1.0, 1e-5);
  double sum = 0;
  for (const double g : logits.doubles()) sum += g;
  EXPECT_NEAR(sum, 0.0, 1e-6);
}

TEST_P(Loss, ANanLogitMakesTheLossNan) {
  for (const std::int64_t where : {0, 3, 18}) {
    Array logits(random_doubles(19, 1), DType::f32);
    logits.set(where, std::nanf(""));
    const std::int32_t target = 1;
    float loss = 0;
    cross_entropy(exec, &loss, logits, &target, 1, 19, 1.0F);
    EXPECT_TRUE(std::isnan(loss)) << where;
  }
}

TEST_P(Loss, MeanSquaredErrorAgainstCentralDifferences) {
  for (const std::int64_t n : {1, 3, 17, 30, 1100}) {
    for (const DType type : kAllTypes) {
      const Array x(random_doubles(n, 2), type);
      const Array target(random_doubles(n, 3), DType::f32);
      Doubles point = x.doubles();
      const Doubles aim = target.doubles();
      const auto reference = [&] {
        double sum = 0;
        for (std::size_t i = 0; i < point.size(); ++i) sum += std::pow(point[i] - aim[i], 2);
        return sum / static_cast<double>(point.size());
      };
      Array dx(n, type);
      float loss = -1;
      mse(exec, &loss, dx, x, target.f32(), n, 4.0F);
      EXPECT_NEAR(loss, reference(), 1e-6);
      Doubles want(point.size());
      for (std::size_t i = 0; i < want.size(); ++i)
        want[i] = 8.0 * (point[i] - aim[i]) / static_cast<double>(n);
      EXPECT_TRUE(close(dx.doubles(), want, 1.01 * unit_roundoff(type) + 1e-6, 1e-7));
      if (n <= 30) {
        Doubles slope = central_differences(point, reference);
        for (double& g : slope) g *= 4.0;
        EXPECT_TRUE(close(dx.doubles(), slope, 1.01 * unit_roundoff(type) + 1e-6, 1e-6));
      }
    }
  }
}

}  // namespace
}  // namespace shardscope::kernels::test
