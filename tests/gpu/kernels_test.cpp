// Every CUDA kernel against the CPU backend on random inputs, whose own tests hold it to double-precision
// references. Element-wise steps that both take alike must agree bitwise; where sums are taken in another
// order or exp differs in its last bit, the bound is stated at the test. Here: what layers and losses do.
#include <array>
#include <cmath>

#include "tests/gpu/both.h"

namespace shardscope::gpu {
namespace {

TEST_F(CudaKernels, ElementWiseAgreeBitwise) {
  for (const std::int64_t n : {1, 7, 255, 4096, 100003}) {
    for (const DType type : kAllTypes) {
      for (const int shift : {0, 1, 3}) {
        Both a(*device, random_doubles(n, 1, -3, 3), type, shift);
        Both b(*device, random_doubles(n, 2, -3, 3), type, shift);
        Both y(*device, n, type, shift);
        both([&](const Exec& e) { kernels::add(e, y.on(e), a.on(e), b.on(e), n); });
        EXPECT_TRUE(y.same_bits()) << n;
        both([&](const Exec& e) { kernels::relu_forward(e, y.on(e), a.on(e), n); });
        EXPECT_TRUE(y.same_bits());
        both([&](const Exec& e) { kernels::relu_backward(e, y.on(e), b.on(e), a.on(e), n); });
        EXPECT_TRUE(y.same_bits());
        both([&](const Exec& e) { kernels::accumulate(e, y.on(e), b.on(e), n); });
        EXPECT_TRUE(y.same_bits());
        both([&](const Exec& e) { kernels::scale(e, y.on(e), 0.37F, n); });
        EXPECT_TRUE(y.same_bits());
        for (const DType other : kAllTypes) {
          Both z(*device, n, other, shift);
          both([&](const Exec& e) { kernels::cast(e, z.on(e), a.on(e), n); });
          EXPECT_TRUE(z.same_bits());
        }
      }
    }
  }
}

TEST_F(CudaKernels, GeluAgreesToTheLastBits) {
  // exp differs by up to 2 units in the last place between the backends.
  const std::int64_t n = 65537;
  for (const DType type : kAllTypes) {
    Both x(*device, random_doubles(n, 3, -14, 14), type);
    Both g(*device, random_doubles(n, 4, -2, 2), type);
    Both y(*device, n, type);
    both([&](const Exec& e) { kernels::gelu_forward(e, y.on(e), x.on(e), n); });
    EXPECT_TRUE(y.near(2 * unit_roundoff(type) + 8 * 0x1p-24, 1e-7));
    both([&](const Exec& e) { kernels::gelu_backward(e, y.on(e), g.on(e), x.on(e), n); });
    EXPECT_TRUE(y.near(2 * unit_roundoff(type) + 16 * 0x1p-24, 2e-6));
  }
}

TEST_F(CudaKernels, LayerNorm) {
  struct Shape {
    std::int64_t N, C;
  };
  // Teams of one to eight warps, a lane of which may have no column, or one pack; rows that none takes.
  for (const Shape& s : {Shape{1, 1}, Shape{3, 17}, Shape{40, 8}, Shape{130, 384}, Shape{1000, 768},
                         Shape{65, 1024}, Shape{33, 1288}, Shape{17, 4096}, Shape{70, 5000}}) {
    for (const DType type : kAllTypes) {
      Both x(*device, random_doubles(s.N * s.C, 5, -2, 3), type);
      Both w(*device, random_doubles(s.C, 6), type);
      Both b(*device, random_doubles(s.C, 7), type);
      Both y(*device, s.N * s.C, type);
      Both mean(*device, s.N, DType::f32);
      Both rstd(*device, s.N, DType::f32);
      both([&](const Exec& e) {
        kernels::layer_norm_forward(e, y.on(e), mean.floats(e), rstd.floats(e), x.on(e), w.on(e), b.on(e),
                                    s.N, s.C, 1e-5F);
      });
      // Sums of C numbers in another order: C * 2^-24 of the largest, far less in practice.
      EXPECT_TRUE(mean.near(1e-5, 1e-6));
      EXPECT_TRUE(rstd.near(1e-5, 1e-6));
      EXPECT_TRUE(y.near(2 * unit_roundoff(type), 2e-5)) << s.N << 'x' << s.C;
      Both dy(*device, random_doubles(s.N * s.C, 8), type);
      for (const Write write : {Write::set, Write::add}) {
        Both dx(*device, s.N * s.C, type);
        Both dw(*device, s.C, type);
        Both db(*device, s.C, type);
        both([&](const Exec& e) {
          kernels::layer_norm_backward(e, dx.on(e), dw.on(e), db.on(e), dy.on(e), x.on(e), w.on(e),
                                       mean.floats(e), rstd.floats(e), s.N, s.C, write, write);
        });
        const double sums = 1e-6 * std::sqrt(static_cast<double>(s.N)) * 10;
        EXPECT_TRUE(dx.near(2 * unit_roundoff(type), 2e-5));
        EXPECT_TRUE(dw.near(2 * unit_roundoff(type) + 1e-5, sums));
        EXPECT_TRUE(db.near(2 * unit_roundoff(type) + 1e-5, sums));
      }
    }
  }
}

// In which order rows are summed may not depend on where a stage of ZeRO keeps its parameters.
TEST_F(CudaKernels, LayerNormOfParametersThatAreNotAligned) {
  const std::int64_t N = 50, C = 768;
  for (const DType type : kAllTypes) {
    Both x(*device, random_doubles(N * C, 5, -2, 3), type);
    Both dy(*device, random_doubles(N * C, 8), type);
    std::vector<Array> results[2];
    for (const int shift : {0, 1}) {
      Both w(*device, random_doubles(C, 6), type, shift);
      Both b(*device, random_doubles(C, 7), type, shift);
      Both y(*device, N * C, type);
      Both mean(*device, N, DType::f32);
      Both rstd(*device, N, DType::f32);
      Both dx(*device, N * C, type);
      Both dw(*device, C, type, shift);
      Both db(*device, C, type, shift);
      both([&](const Exec& e) {
        kernels::layer_norm_forward(e, y.on(e), mean.floats(e), rstd.floats(e), x.on(e), w.on(e), b.on(e), N,
                                    C, 1e-5F);
        kernels::layer_norm_backward(e, dx.on(e), dw.on(e), db.on(e), dy.on(e), x.on(e), w.on(e),
                                     mean.floats(e), rstd.floats(e), N, C, Write::add, Write::add);
      });
      for (Both* result : {&y, &mean, &rstd, &dx, &dw, &db}) results[shift].push_back(result->from_device());
    }
    for (std::size_t i = 0; i < results[0].size(); ++i) {
      EXPECT_TRUE(results[0][i].same_bits(results[1][i])) << i;
    }
  }
}

// One parameter's gradient alone; dx where dy is, which is then not read again.
TEST_F(CudaKernels, LayerNormOfOneGradientInPlace) {
  const std::int64_t N = 50, C = 768;
  for (const DType type : kAllTypes) {
    for (const bool weight : {false, true}) {
      Both x(*device, random_doubles(N * C, 5, -2, 3), type);
      Both w(*device, random_doubles(C, 6), type);
      Both dy(*device, random_doubles(N * C, 8), type);
      Both mean(*device, random_doubles(N, 9), DType::f32);
      Both rstd(*device, random_doubles(N, 10, 0.5, 1), DType::f32);
      Both gradient(*device, C, type);
      both([&](const Exec& e) {
        kernels::layer_norm_backward(e, dy.on(e), weight ? gradient.on(e) : Ptr{},
                                     weight ? Ptr{} : gradient.on(e), dy.on(e), x.on(e), w.on(e),
                                     mean.floats(e), rstd.floats(e), N, C, Write::set, Write::set);
        if (weight) return;
        // Neither: dx alone, once more from what it is now.
        kernels::layer_norm_backward(e, dy.on(e), Ptr{}, Ptr{}, dy.on(e), x.on(e), w.on(e), mean.floats(e),
                                     rstd.floats(e), N, C, Write::set, Write::set);
      });
      EXPECT_TRUE(dy.near(8 * unit_roundoff(type), 1e-4 + 4 * unit_roundoff(type)));
      EXPECT_TRUE(gradient.near(2 * unit_roundoff(type) + 1e-5, 1e-4));
    }
  }
}

TEST_F(CudaKernels, Linear) {
  struct Shape {
    std::int64_t N, in, out;
    int shift;
  };
  for (const Shape& s : {Shape{1, 1, 1, 0}, Shape{5, 3, 7, 1}, Shape{256, 384, 1152, 0},
                         Shape{300, 768, 50, 1}, Shape{1024, 1536, 384, 0}}) {
    for (const DType type : kAllTypes) {
      Both x(*device, random_doubles(s.N * s.in, 21), type, s.shift);
      Both w(*device, random_doubles(s.in * s.out, 22, -0.1, 0.1), type, s.shift);
      Both b(*device, random_doubles(s.out, 23), type, s.shift);
      Both y(*device, s.N * s.out, type, s.shift);
      Both dy(*device, random_doubles(s.N * s.out, 24), type, s.shift);
      // Products of k numbers up to 0.1 in another order, in fp32.
      const auto bound = [&](std::int64_t k, double size) {
        return 4 * 0x1p-24 * static_cast<double>(k) * size + 2 * unit_roundoff(type) * size * 4;
      };
      both([&](const Exec& e) {
        kernels::linear_forward(e, y.on(e), x.on(e), w.on(e), b.on(e), s.N, s.in, s.out);
      });
      EXPECT_TRUE(y.near(2 * unit_roundoff(type), bound(s.in, 0.1))) << s.N << ' ' << s.in << ' ' << s.out;
      both([&](const Exec& e) {
        kernels::linear_forward(e, y.on(e), x.on(e), w.on(e), {nullptr, type}, s.N, s.in, s.out);
      });
      EXPECT_TRUE(y.near(2 * unit_roundoff(type), bound(s.in, 0.1)));
      both([&](const Exec& e) {
        kernels::linear_forward(e, y.on(e), x.on(e), w.on(e), b.on(e), s.N, s.in, s.out, dy.on(e));
      });
      EXPECT_TRUE(y.near(2 * unit_roundoff(type), bound(s.in, 0.1)));
      for (const Write write : {Write::set, Write::add}) {
        Both dx(*device, s.N * s.in, type, s.shift);
        Both dw(*device, s.in * s.out, type, s.shift);
        Both db(*device, s.out, type, s.shift);
        both([&](const Exec& e) {
          kernels::linear_backward_input(e, dx.on(e), dy.on(e), w.on(e), s.N, s.in, s.out, write);
          kernels::linear_backward_weight(e, dw.on(e), db.on(e), dy.on(e), x.on(e), s.N, s.in, s.out, write);
        });
        EXPECT_TRUE(dx.near(2 * unit_roundoff(type), bound(s.out, 0.1)));
        EXPECT_TRUE(dw.near(2 * unit_roundoff(type), bound(s.N, 1)));
        EXPECT_TRUE(db.near(2 * unit_roundoff(type), bound(s.N, 1)));
      }
    }
  }
}

TEST_F(CudaKernels, EmbeddingAgreesBitwise) {
  const std::int64_t rows = 301;
  const std::int64_t C = 100;
  // Few rows read often (more than fit a block's list), many read once or never.
  std::vector<std::int32_t> index(5000);
  std::mt19937 random(9);
  for (auto& i : index) i = random() % 3 == 0 ? 7 : static_cast<std::int32_t>(random() % 300);
  const auto N = static_cast<std::int64_t>(index.size());
  const DeviceArray device_index(*device, index.data(), index.size() * sizeof(index[0]));
  const auto at = [&](const Exec& e) {
    return e.backend == kernels::Backend::cpu ? index.data()
                                              : static_cast<const std::int32_t*>(device_index.data());
  };
  for (const DType type : kAllTypes) {
    Both table(*device, random_doubles(rows * C, 31), type);
    Both y(*device, N * C, type);
    Both dy(*device, random_doubles(N * C, 32), type);
    Both dtable(*device, rows * C, type);
    for (const Write write : {Write::set, Write::add}) {
      both([&](const Exec& e) { kernels::embedding_forward(e, y.on(e), table.on(e), at(e), N, C, write); });
      EXPECT_TRUE(y.same_bits());
      both([&](const Exec& e) {
        kernels::embedding_backward(e, dtable.on(e), dy.on(e), at(e), N, rows, C, write);
      });
      EXPECT_TRUE(dtable.same_bits());
    }
  }
}

TEST_F(CudaKernels, CrossEntropy) {
  struct Shape {
    std::int64_t N, V;
  };
  for (const Shape& s : {Shape{1, 2}, Shape{5, 1001}, Shape{64, 50257}, Shape{300, 4096}}) {
    for (const DType type : kAllTypes) {
      std::vector<std::int32_t> target(static_cast<std::size_t>(s.N));
      std::mt19937 random(4);
      for (auto& t : target) t = static_cast<std::int32_t>(random() % static_cast<unsigned>(s.V));
      const DeviceArray device_target(*device, target.data(), target.size() * sizeof(target[0]));
      Both logits(*device, random_doubles(s.N * s.V, 51, -6, 6), type);
      Both loss(*device, 1, DType::f32);
      both([&](const Exec& e) {
        const auto* t = e.backend == kernels::Backend::cpu
                            ? target.data()
                            : static_cast<const std::int32_t*>(device_target.data());
        kernels::cross_entropy(e, loss.floats(e), logits.on(e), t, s.N, s.V, 128);
      });
      EXPECT_TRUE(loss.near(1e-5, 1e-6));
      EXPECT_TRUE(logits.near(2 * unit_roundoff(type) + 1e-5, 1e-6)) << s.N << ' ' << s.V;
    }
  }
}

TEST_F(CudaKernels, CrossEntropyWithIgnoredTargets) {
  const std::int64_t N = 7, V = 1001;
  const std::vector<std::int32_t> target{3, -100, 1000, -1, 0, -100, 17};
  const DeviceArray device_target(*device, target.data(), target.size() * sizeof(target[0]));
  for (const DType type : kAllTypes) {
    Both logits(*device, random_doubles(N * V, 53, -6, 6), type);
    Both loss(*device, 1, DType::f32);
    both([&](const Exec& e) {
      const auto* t = e.backend == kernels::Backend::cpu
                          ? target.data()
                          : static_cast<const std::int32_t*>(device_target.data());
      kernels::cross_entropy(e, loss.floats(e), logits.on(e), t, N, V, 128, 3);
    });
    EXPECT_TRUE(loss.near(1e-5, 1e-6));
    EXPECT_TRUE(logits.near(2 * unit_roundoff(type) + 1e-5, 1e-6));
    EXPECT_EQ(logits.from_device().get(V + 5), 0.0);
  }
}

// What a thread sees first must not be forgotten when it sees more: not a NaN, and not that -inf adds
// nothing, be it all that a load brings.
TEST_F(CudaKernels, CrossEntropyOfLogitsThatAreNotFinite) {
  const std::int64_t V = 20000;
  const std::int32_t target = 100;
  const DeviceArray device_target(*device, &target, sizeof target);
  for (const DType type : kAllTypes) {
    for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      for (const std::int64_t place : {std::int64_t{0}, std::int64_t{4099}, V - 1}) {
        Doubles values = random_doubles(V, 52, -6, 6);
        for (std::int64_t i = place; i < std::min(place + 16, V); ++i) {
          values[static_cast<std::size_t>(i)] = value;
        }
        Both logits(*device, values, type);
        Both loss(*device, 1, DType::f32);
        both([&](const Exec& e) {
          const auto* t = e.backend == kernels::Backend::cpu
                              ? &target
                              : static_cast<const std::int32_t*>(device_target.data());
          kernels::cross_entropy(e, loss.floats(e), logits.on(e), t, 1, V, 128);
        });
        if (value == -HUGE_VAL) {
          EXPECT_TRUE(loss.near(1e-5, 1e-6)) << place;
          EXPECT_TRUE(logits.near(2 * unit_roundoff(type) + 1e-5, 1e-6)) << place;
        } else {
          EXPECT_FALSE(std::isfinite(loss.host().get(0))) << value << " at " << place;
          EXPECT_FALSE(std::isfinite(loss.from_device().get(0))) << value << " at " << place;
        }
      }
    }
  }
}

TEST_F(CudaKernels, SquaredError) {
  const std::int64_t n = 70001;
  for (const DType type : kAllTypes) {
    Both x(*device, random_doubles(n, 61), type);
    Both target(*device, random_doubles(n, 62), DType::f32);
    Both dx(*device, n, type);
    Both loss(*device, 1, DType::f32);
    both([&](const Exec& e) { kernels::mse(e, loss.floats(e), dx.on(e), x.on(e), target.floats(e), n, 2); });
    EXPECT_TRUE(loss.near(1e-6, 0));
    EXPECT_TRUE(dx.same_bits());
  }
}

}  // namespace
}  // namespace shardscope::gpu
