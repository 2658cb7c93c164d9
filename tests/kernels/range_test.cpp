// Shards begin and end anywhere: an element's result must not depend on the range it is computed in, bit for
// bit.
#include <array>

#include "tests/kernels/support.h"

namespace shardscope::kernels::test {
namespace {

using Range = OnEveryIsa;
SHARDSCOPE_ON_EVERY_ISA(Range);

constexpr std::int64_t kN = 2500;
const std::vector<std::vector<std::int64_t>> kSplits{
    {0, 1, kN}, {0, 3, 10, 17, 1000, kN}, {0, 1023, 1025, kN}, {0, 7, 30, 61, 2047, kN - 1, kN}};

void* offset(Array& a, std::int64_t i, DType type) {
  return static_cast<char*>(a.data()) + i * static_cast<std::int64_t>(size_of(type));
}

TEST_P(Range, AdamWIsTheSameInAnyPartition) {
  for (const DType grad_type : kAllTypes) {
    for (const DType param_type : {DType::bf16, DType::f16}) {
      Array grad(random_doubles(kN, 1), grad_type);
      const Array w0(random_doubles(kN, 2), DType::f32);
      const Array m0(random_doubles(kN, 3), DType::f32);
      const Array v0(random_doubles(kN, 4, 0, 1), DType::f32);
      AdamW settings;
      settings.step = 3;
      Array w = w0;
      Array m = m0;
      Array v = v0;
      Array p(kN, param_type);
      adamw_step(exec, w.f32(), m.f32(), v.f32(), p, grad, kN, settings);
      for (const auto& cuts : kSplits) {
        for (const int shift : {0, 1, 5}) {
          Array ws(w0.doubles(), DType::f32, shift);
          Array ms(m0.doubles(), DType::f32, shift + 1);
          Array vs(v0.doubles(), DType::f32, shift + 2);
          Array ps(kN, param_type, shift);
          for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
            const std::int64_t i = cuts[c];
            adamw_step(exec, ws.f32() + i, ms.f32() + i, vs.f32() + i,
                       {offset(ps, i, param_type), param_type}, {offset(grad, i, grad_type), grad_type},
                       cuts[c + 1] - i, settings);
          }
          ASSERT_TRUE(ws.same_bits(w) && ms.same_bits(m) && vs.same_bits(v) && ps.same_bits(p));
        }
      }
    }
  }
}

TEST_P(Range, ReduceSumIsTheSameInAnyPartitionAndFollowsIndexOrder) {
  for (const DType type : kAllTypes) {
    for (const std::uint32_t count : {1U, 2U, 3U, 4U, 7U}) {
      std::vector<Array> inputs;
      for (std::uint32_t k = 0; k < count; ++k)
        inputs.emplace_back(random_doubles(kN, k), type, static_cast<int>(k));
      std::vector<const void*> pointers;
      for (const Array& a : inputs) pointers.push_back(a.data());
      Array whole(kN, type);
      const float factor = 1.0F / static_cast<float>(count);
      reduce_sum(exec, whole, pointers.data(), count, type, kN, factor);
      for (std::int64_t i = 0; i < kN; ++i) {
        float sum = static_cast<float>(inputs[0].get(i));
        for (std::uint32_t k = 1; k < count; ++k) sum += static_cast<float>(inputs[k].get(i));
        Array want(1, type);
        want.set(0, sum * factor);
        ASSERT_EQ(whole.get(i), want.get(0)) << "element " << i << " of " << count;
      }
      for (const auto& cuts : kSplits) {
        Array parts(kN, type, 2);
        for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
          std::vector<const void*> at;
          for (Array& a : inputs) at.push_back(offset(a, cuts[c], type));
          reduce_sum(exec, {offset(parts, cuts[c], type), type}, at.data(), count, type,
                     cuts[c + 1] - cuts[c], factor);
        }
        ASSERT_TRUE(parts.same_bits(whole));
      }
    }
  }
}

TEST_P(Range, ReduceSumMayWriteOverAnInput) {
  for (const DType type : kAllTypes) {
    std::vector<Array> inputs;
    for (unsigned k = 0; k < 3; ++k) inputs.emplace_back(random_doubles(kN, k), type);
    std::array<const void*, 3> pointers{inputs[0].data(), inputs[1].data(), inputs[2].data()};
    Array apart(kN, type);
    reduce_sum(exec, apart, pointers.data(), 3, type, kN, 1.0F);
    reduce_sum(exec, inputs[1], pointers.data(), 3, type, kN, 1.0F);
    EXPECT_TRUE(inputs[1].same_bits(apart));
  }
}

TEST_P(Range, ReduceSumFrom16BitToFloat) {
  const Array a(random_doubles(kN, 1), DType::bf16);
  const Array b(random_doubles(kN, 2), DType::bf16);
  std::array<const void*, 2> pointers{a.data(), b.data()};
  Array sum(kN, DType::f32);
  reduce_sum(exec, sum, pointers.data(), 2, DType::bf16, kN, 0.5F);
  for (std::int64_t i = 0; i < kN; ++i) {
    ASSERT_EQ(sum.get(i),
              static_cast<double>((static_cast<float>(a.get(i)) + static_cast<float>(b.get(i))) * 0.5F));
  }
}

TEST_P(Range, ElementwiseKernelsAreTheSameInAnyPartition) {
  for (const DType type : kAllTypes) {
    Array x(random_doubles(kN, 1, -6, 6), type);
    Array dy(random_doubles(kN, 2), type);
    Array y(kN, type);
    Array dx(kN, type);
    gelu_forward(exec, y, x, kN);
    gelu_backward(exec, dx, dy, x, kN);
    for (const auto& cuts : kSplits) {
      Array ys(kN, type, 3);
      Array ds(kN, type, 4);
      for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
        const std::int64_t i = cuts[c];
        const std::int64_t n = cuts[c + 1] - i;
        gelu_forward(exec, {offset(ys, i, type), type}, {offset(x, i, type), type}, n);
        gelu_backward(exec, {offset(ds, i, type), type}, {offset(dy, i, type), type},
                      {offset(x, i, type), type}, n);
      }
      ASSERT_TRUE(ys.same_bits(y) && ds.same_bits(dx));
    }
  }
}

}  // namespace
}  // namespace shardscope::kernels::test
