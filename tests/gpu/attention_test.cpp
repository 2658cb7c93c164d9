// Attention on CUDA against the CPU backend: our own kernels, and cuDNN's where the machine has it.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "kernels/error.h"
#include "tests/gpu/both.h"
#ifdef SHARDSCOPE_HOST_CUDA_KERNELS
#include "kernels/cuda/cudnn_library.h"
#include "tests/gpu/host_cuda/cudnn.h"
#endif

namespace shardscope::gpu {
namespace {

struct Shape {
  std::int64_t B, T, C, H;
};

class CudaAttention : public CudaKernels {
 protected:
  std::size_t scratch_bytes(const Shape& s, DType type) {
    std::size_t bytes = 0;
    device->compute().run(
        [&](const Exec& e) { bytes = kernels::attention_scratch_bytes(e, type, s.B, s.T, s.C, s.H); });
    device->compute().synchronize();
    return bytes;
  }
  void agrees_with_the_cpu(const Shape& s, DType type) {
    SCOPED_TRACE(::testing::Message() << s.B << ' ' << s.T << ' ' << s.C << ' ' << s.H);
    Both qkv(*device, random_doubles(s.B * s.T * 3 * s.C, 41, -1.5, 1.5), type);
    Both out(*device, s.B * s.T * s.C, type);
    Both sums(*device, s.B * s.H * s.T, DType::f32);
    Both dout(*device, random_doubles(s.B * s.T * s.C, 42), type);
    Both dqkv(*device, s.B * s.T * 3 * s.C, type);
    std::vector<std::byte> host_scratch(kernels::attention_scratch_bytes(Exec{}, type, s.B, s.T, s.C, s.H));
    DeviceArray scratch(*device, scratch_bytes(s, type));
    both([&](const Exec& e) {
      void* room = e.backend == kernels::Backend::cpu ? host_scratch.data() : scratch.data();
      kernels::attention_forward(e, out.on(e), sums.floats(e), qkv.on(e), s.B, s.T, s.C, s.H, room);
    });
    // Weights are rounded to 16 bits before they meet the values, which are below 1.5.
    const double rounding = type == DType::f32 ? 2e-6 : 1.5 * unit_roundoff(type);
    EXPECT_TRUE(sums.near(1e-5, 1e-5 + (type == DType::f32 ? 0 : 1e-5)));
    EXPECT_TRUE(out.near(2 * unit_roundoff(type), 2 * rounding));
    both([&](const Exec& e) {
      void* room = e.backend == kernels::Backend::cpu ? host_scratch.data() : scratch.data();
      kernels::attention_backward(e, dqkv.on(e), dout.on(e), out.on(e), qkv.on(e), sums.floats(e), s.B, s.T,
                                  s.C, s.H, room);
    });
    // Key gradients sum over up to T queries.
    const double length = std::sqrt(static_cast<double>(s.T));
    EXPECT_TRUE(dqkv.near(4 * unit_roundoff(type), 6 * rounding * length));
  }
};

TEST_F(CudaAttention, OwnKernels) {
  // Heads of 64 and 128 in 16 bits go to the tensor cores; lengths on both sides of their blocks of 64 and
  // 128.
  for (const Shape& s :
       {Shape{1, 1, 64, 1}, Shape{2, 63, 128, 2}, Shape{1, 64, 64, 1}, Shape{2, 65, 128, 1},
        Shape{1, 128, 192, 3}, Shape{1, 129, 256, 2}, Shape{2, 257, 128, 2}, Shape{1, 512, 128, 1},
        Shape{1, 33, 20, 2}, Shape{2, 100, 96, 3}, Shape{1, 70, 200, 1}, Shape{1, 40, 256, 1}}) {
    for (const DType type : kAllTypes) agrees_with_the_cpu(s, type);
  }
}

/// With devices whose contexts were made while SHARDSCOPE_ATTENTION was cudnn.
class CudnnAttention : public CudaAttention {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("SHARDSCOPE_ATTENTION", "cudnn", 1), 0);
    CudaAttention::SetUp();
    if (IsSkipped()) return;
    try {
      (void)scratch_bytes({1, 64, 64, 1}, DType::bf16);
    } catch (const kernels::KernelError& error) {
      const std::string why = error.what();
      if (why.find("cannot be loaded") == std::string::npos) throw;
      GTEST_SKIP() << why;
    }
  }
  void TearDown() override { ASSERT_EQ(unsetenv("SHARDSCOPE_ATTENTION"), 0); }
};

TEST_F(CudnnAttention, AgreesWithTheCpu) {
  for (const Shape& s :
       {Shape{1, 64, 64, 1}, Shape{2, 128, 192, 3}, Shape{2, 65, 128, 1}, Shape{1, 72, 192, 2}}) {
    for (const DType type : {DType::bf16, DType::f16}) agrees_with_the_cpu(s, type);
  }
}

TEST_F(CudnnAttention, LeavesTheRestToOwnKernels) {
  agrees_with_the_cpu({1, 33, 64, 1}, DType::f32);   // single precision
  agrees_with_the_cpu({1, 33, 20, 2}, DType::bf16);  // heads of 10
}

TEST_F(CudnnAttention, AnotherNameIsRefused) {
  ASSERT_EQ(setenv("SHARDSCOPE_ATTENTION", "fastest", 1), 0);
  try {
    (void)device::make_cuda_device({});
    FAIL() << "was taken";
  } catch (const kernels::KernelError& error) {
    EXPECT_NE(std::string(error.what()).find("\"fastest\""), std::string::npos) << error.what();
  }
}

#ifdef SHARDSCOPE_HOST_CUDA_KERNELS
TEST(CudnnLibrary, AVersionThatDoesNotClearItsSumsIsRefused) {
  try {
    kernels::cuda::check_cudnn_version(90599, "attention");
    FAIL() << "was taken";
  } catch (const kernels::KernelError& error) {
    EXPECT_NE(std::string(error.what()).find("cuDNN 9.5"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(kernels::cuda::check_cudnn_version(90600, "attention"));
}

/// Which engine cuDNN takes depends on how the graph is put: as NVIDIA's frontend does.
TEST_F(CudnnAttention, AsksAsNvidiasFrontendDoes) {
  std::ifstream golden(SHARDSCOPE_CUDNN_GOLDEN);
  std::vector<std::string> forward, backward, *to = nullptr;
  for (std::string line; std::getline(golden, line);) {
    if (line.starts_with('#')) continue;
    if (line == "forward") {
      to = &forward;
    } else if (line == "backward") {
      to = &backward;
    } else {
      ASSERT_NE(to, nullptr);
      to->push_back(line);
    }
  }
  ASSERT_EQ(forward.size(), 14);
  ASSERT_EQ(backward.size(), 22);
  const Shape shape{2, 128, 192, 3};
  (void)scratch_bytes(shape, DType::bf16);
  const std::vector<std::vector<std::string>> planned = host_cuda::planned_operations();
  ASSERT_GE(planned.size(), 2);
  EXPECT_EQ(planned.end()[-2], forward);
  EXPECT_EQ(planned.end()[-1], backward);
}
#endif

}  // namespace
}  // namespace shardscope::gpu
