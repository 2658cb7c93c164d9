// Every CUDA kernel against the CPU backend on random inputs, whose own tests hold it to double-precision
// references. Element-wise steps that both take alike must agree bitwise; where sums are taken in another
// order or exp differs in its last bit, the bound is stated at the test. Here: what is done to shards and
// gradients.
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/columns.h"
#include "tests/gpu/both.h"

namespace shardscope::gpu {
namespace {

TEST_F(CudaKernels, SumOverRanksAgreesBitwise) {
  for (const DType type : kAllTypes) {
    for (const int shift : {0, 1}) {
      const std::int64_t n = 10007;
      std::vector<std::unique_ptr<Both>> inputs;
      for (unsigned k = 0; k < 5; ++k) {
        inputs.push_back(std::make_unique<Both>(*device, random_doubles(n, 10 + k), type, shift));
      }
      Both out(*device, n, type, shift);
      both([&](const Exec& e) {
        std::vector<const void*> at;
        for (const auto& input : inputs) at.push_back(input->on(e).data);
        kernels::reduce_sum(e, out.on(e), at.data(), 5, type, n, 0.2F);
      });
      EXPECT_TRUE(out.same_bits());
    }
  }
}

TEST_F(CudaKernels, AdamWAgreesBitwise) {
  for (const std::int64_t n : {1, 1000, 100001}) {
    for (const DType grad_type : kAllTypes) {
      for (const DType param_type : {DType::f32, DType::bf16, DType::f16}) {
        for (const int shift : {0, 1}) {
          Both w(*device, random_doubles(n, 71), DType::f32, shift);
          Both m(*device, random_doubles(n, 72, -0.1, 0.1), DType::f32, shift);
          Both v(*device, random_doubles(n, 73, 0, 0.01), DType::f32, shift);
          Both g(*device, random_doubles(n, 74), grad_type, shift);
          Both p(*device, n, param_type, shift);
          kernels::AdamW settings;
          settings.grad_scale = 0.5F;
          for (settings.step = 1; settings.step < 4; ++settings.step) {
            settings.decoupled = settings.step != 2;
            both([&](const Exec& e) {
              const Ptr copy = param_type == DType::f32 ? Ptr{} : p.on(e);
              kernels::adamw_step(e, w.floats(e), m.floats(e), v.floats(e), copy, g.on(e), n, settings);
            });
          }
          EXPECT_TRUE(w.same_bits());
          EXPECT_TRUE(m.same_bits());
          EXPECT_TRUE(v.same_bits());
          EXPECT_TRUE(p.same_bits());
        }
      }
    }
  }
}

// The same additions in the same order, and copies: no bit differs.
TEST_F(CudaKernels, ColumnsAgreeBitwise) {
  // Whole rows, cut rows at both ends, less than a row, one column; the last is a layer of GPT-2's size.
  const kernels::MatrixPart parts[] = {{70, 10, 0},
                                       {67, 10, 3},
                                       {4, 10, 2},
                                       {8, 10, 7},
                                       {3000, 37, 36},
                                       {5, 1, 0},
                                       {768 * 3000 + 11, 768, 700}};
  for (const kernels::MatrixPart& part : parts) {
    std::vector<std::int32_t> chosen;
    for (std::int32_t column = 0; column < part.columns; column += 3) chosen.push_back(column);
    const auto count = static_cast<std::int64_t>(chosen.size());
    const DeviceArray on_device(*device, chosen.data(), chosen.size() * sizeof(std::int32_t));
    const auto chosen_on = [&](const Exec& e) {
      return e.backend == kernels::Backend::cpu ? chosen.data()
                                                : static_cast<const std::int32_t*>(on_device.data());
    };
    const std::int64_t n = kernels::elems_in_columns(part, chosen.data(), count);
    for (const DType type : kAllTypes) {
      for (const int shift : {0, 1}) {
        Both x(*device, random_doubles(part.elems, 81, -3, 3), type, shift);
        Both sums(*device, part.columns, DType::f32);
        Both taken(*device, std::max<std::int64_t>(n, 1), type, shift);
        Both back(*device, part.elems, type);
        both([&](const Exec& e) {
          kernels::column_abs_sums(e, sums.floats(e), x.on(e), part);
          kernels::take_columns(e, taken.on(e), x.on(e), part, chosen_on(e), count);
          kernels::put_columns(e, back.on(e), taken.on(e), part, chosen_on(e), count);
        });
        EXPECT_TRUE(sums.same_bits());
        EXPECT_TRUE(taken.same_bits());
        EXPECT_TRUE(back.same_bits());
      }
    }
  }
}

TEST_F(CudaKernels, NormAndOverflow) {
  for (const std::int64_t n : {1, 8191, 1000003}) {
    for (const DType type : kAllTypes) {
      for (const bool overflow : {false, true}) {
        Doubles values = random_doubles(n, 81);
        if (overflow) values[static_cast<std::size_t>(n / 2)] = HUGE_VAL;
        Both x(*device, values, type, 1);
        double host_sum = 3;
        std::uint32_t host_bad = 0;
        kernels::squared_norm(Exec{}, &host_sum, &host_bad, x.on(Exec{}), n);
        const double zero = 3;
        DeviceArray sum(*device, &zero, sizeof zero);
        const std::uint32_t none = 0;
        DeviceArray bad(*device, &none, sizeof none);
        device->compute().run([&](const Exec& e) {
          kernels::squared_norm(e, static_cast<double*>(sum.data()), static_cast<std::uint32_t*>(bad.data()),
                                x.on(e), n);
        });
        std::uint32_t found = 0;
        bad.read(&found, 0, sizeof found);
        EXPECT_EQ(found != 0, overflow);
        EXPECT_EQ(host_bad != 0, overflow);
        if (overflow) continue;
        double total = 0;
        sum.read(&total, 0, sizeof total);
        EXPECT_NEAR(total, host_sum, 1e-12 * host_sum);
      }
    }
  }
}

// Infinities of both signs and NaNs, several of each: in one thread's elements, in one block's, in blocks far
// apart, and behind the last element, where nothing is looked at.
TEST_F(CudaKernels, CountsInfinitiesAndNansApart) {
  for (const std::int64_t n : {1, 8191, 1000003}) {
    std::vector<std::int64_t> places{0, 1, 31, 32, 255, 256, 1023, 1024, 4097, 8190};
    for (const std::int64_t apart : {100000, 500001, 999999, 1000002}) places.push_back(apart);
    std::erase_if(places, [n](std::int64_t place) { return place >= n; });
    for (const DType type : kAllTypes) {
      for (const int shift : {0, 1}) {
        for (std::size_t turn = 0; turn < 3; ++turn) {
          Doubles values = random_doubles(n + 1, 81);
          kernels::NotFiniteCount expected{2, 3};  // it adds to what is there
          for (std::size_t i = 0; i < places.size(); ++i) {
            const std::array kinds{HUGE_VAL, -HUGE_VAL, std::nan("")};
            const double value = kinds[(i + turn) % kinds.size()];
            values[static_cast<std::size_t>(places[i])] = value;
            ++(std::isnan(value) ? expected.nan : expected.infinite);
          }
          values[static_cast<std::size_t>(n)] = turn == 0 ? std::nan("") : HUGE_VAL;
          Both x(*device, values, type, shift);
          kernels::NotFiniteCount on_host{2, 3}, on_device{2, 3};
          kernels::count_not_finite(Exec{}, &on_host, x.on(Exec{}), n);
          DeviceArray counts(*device, &on_device, sizeof on_device);
          device->compute().run([&](const Exec& e) {
            kernels::count_not_finite(e, static_cast<kernels::NotFiniteCount*>(counts.data()), x.on(e), n);
          });
          counts.read(&on_device, 0, sizeof on_device);
          EXPECT_EQ(on_device.infinite, expected.infinite) << n;
          EXPECT_EQ(on_device.nan, expected.nan) << n;
          EXPECT_EQ(on_host.infinite, expected.infinite) << n;
          EXPECT_EQ(on_host.nan, expected.nan) << n;
        }
      }
    }
  }
}

TEST_F(CudaKernels, QuantizedValuesAgreeBitwise) {
  const std::int64_t n = 10000;
  for (const std::int64_t group : {64, 2048, 9998}) {
    const std::int64_t groups = (n + group - 1) / group;
    for (const DType type : kAllTypes) {
      Doubles values = random_doubles(n, 91, -5, 5);
      for (std::int64_t i = 0; i < std::min<std::int64_t>(group, 64); ++i)
        values[static_cast<std::size_t>(i)] = 0;
      Both x(*device, values, type);
      Both scales(*device, groups, DType::f32);
      Both back(*device, n, type);
      std::vector<std::int8_t> host8(static_cast<std::size_t>(n));
      DeviceArray device8(*device, host8.size());
      const auto bytes = [&](const Exec& e) {
        return e.backend == kernels::Backend::cpu ? host8.data() : static_cast<std::int8_t*>(device8.data());
      };
      both([&](const Exec& e) { kernels::quantize_int8(e, bytes(e), scales.floats(e), x.on(e), n, group); });
      EXPECT_TRUE(scales.same_bits());
      both([&](const Exec& e) {
        kernels::dequantize_int8(e, back.on(e), bytes(e), scales.floats(e), n, group);
      });
      EXPECT_TRUE(back.same_bits());

      // int4 with error feedback, then the sum of two such arrays.
      Both error_scales(*device, Doubles(static_cast<std::size_t>(groups), 0.0), DType::f32);
      std::vector<std::uint8_t> host4(static_cast<std::size_t>(n / 2));
      DeviceArray device4(*device, host4.size());
      const auto halves = [&](const Exec& e) {
        return e.backend == kernels::Backend::cpu ? host4.data() : static_cast<std::uint8_t*>(device4.data());
      };
      std::vector<std::int8_t> host_error(static_cast<std::size_t>(n));
      DeviceArray device_error(*device, host_error.data(), host_error.size());
      const auto error = [&](const Exec& e) {
        auto* at = e.backend == kernels::Backend::cpu ? host_error.data()
                                                      : static_cast<std::int8_t*>(device_error.data());
        return kernels::ErrorFeedback{at, error_scales.floats(e), 0.8F};
      };
      for (int round = 0; round < 3; ++round) {
        both([&](const Exec& e) {
          kernels::quantize_int4(e, halves(e), scales.floats(e), x.on(e), n, group, error(e));
        });
        EXPECT_TRUE(scales.same_bits());
        EXPECT_TRUE(error_scales.same_bits()) << "round " << round;
      }
      both([&](const Exec& e) {
        const std::array<kernels::Int4Source, 2> sources{
            {{halves(e), scales.floats(e)}, {halves(e), scales.floats(e)}}};
        kernels::dequantize_sum_int4(e, back.on(e), sources.data(), 2, n, group, 0.5F);
      });
      EXPECT_TRUE(back.same_bits());
      Both again(*device, groups, DType::f32);
      std::vector<std::uint8_t> host_again(host4.size());
      DeviceArray device_again(*device, host4.size());
      both([&](const Exec& e) {
        const std::array<kernels::Int4Source, 2> sources{
            {{halves(e), scales.floats(e)}, {halves(e), scales.floats(e)}}};
        auto* to = e.backend == kernels::Backend::cpu ? host_again.data()
                                                      : static_cast<std::uint8_t*>(device_again.data());
        kernels::requantize_int4(e, to, again.floats(e), sources.data(), 2, n, group, 0.5F, {});
      });
      EXPECT_TRUE(again.same_bits());
    }
  }
}

}  // namespace
}  // namespace shardscope::gpu
