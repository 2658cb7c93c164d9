// Where kernels/cuda/linear.cpp leaves a GELU to a product's epilogue, and where it must not: what only the
// cuBLASLt of host_cuda can be asked.
#include <cmath>

#include "tests/gpu/both.h"
#include "tests/gpu/host_cuda/cublas_lt.h"
#include "tests/gpu/host_cuda/runtime.h"

namespace shardscope::gpu {
namespace {

using host_cuda::products_with;

constexpr std::int64_t kRows = 5;
constexpr std::int64_t kIn = 16;

/// A layer with a GELU behind it, and one with a GELU before it, `width` wide where the GELU is.
struct Layers {
  Layers(device::Device& on, DType type, std::int64_t width_, int shift)
      : device(on),
        width(width_),
        x(on, random_doubles(kRows * kIn, 1), type),
        w(on, random_doubles(kIn * width, 2), type),
        bias(on, random_doubles(width, 3), type),
        y(on, kRows * width, type, shift),
        kept(on, kRows * width, type, shift),
        dx(on, kRows * width, type, shift) {}

  void together(bool with_bias = true) {
    device.compute().run([&](const Exec& e) {
      const ConstPtr b = with_bias ? ConstPtr(bias.on(e)) : ConstPtr(nullptr, x.on(e).type);
      kernels::linear_gelu_forward(e, y.on(e), kept.on(e), x.on(e), w.on(e), b, kRows, kIn, width);
      kernels::linear_gelu_backward_input(e, dx.on(e), x.on(e), w.on(e), kept.on(e), kRows, width, kIn);
    });
    device.compute().synchronize();
  }
  void one_after_the_other() {
    device.compute().run([&](const Exec& e) {
      kernels::linear_forward(e, kept.on(e), x.on(e), w.on(e), bias.on(e), kRows, kIn, width);
      kernels::gelu_forward(e, y.on(e), kept.on(e), kRows * width);
      kernels::linear_backward_input(e, dx.on(e), x.on(e), w.on(e), kRows, width, kIn, Write::set);
      kernels::gelu_backward(e, dx.on(e), dx.on(e), kept.on(e), kRows * width);
    });
    device.compute().synchronize();
  }

  device::Device& device;
  std::int64_t width;
  Both x, w, bias, y, kept, dx;
};

std::int64_t gelus() {
  return products_with(CUBLASLT_EPILOGUE_GELU_AUX_BIAS) + products_with(CUBLASLT_EPILOGUE_GELU_AUX) +
         products_with(CUBLASLT_EPILOGUE_DGELU);
}

TEST_F(CudaKernels, GeluIsInTheEpilogueWhereItFits) {
  for (const DType type : {DType::bf16, DType::f16}) {
    Layers layers(*device, type, 24, 0);
    const std::int64_t with_bias = products_with(CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
    const std::int64_t without = products_with(CUBLASLT_EPILOGUE_GELU_AUX);
    const std::int64_t gradients = products_with(CUBLASLT_EPILOGUE_DGELU);
    layers.together(false);
    layers.together();
    EXPECT_EQ(products_with(CUBLASLT_EPILOGUE_GELU_AUX_BIAS), with_bias + 1);
    EXPECT_EQ(products_with(CUBLASLT_EPILOGUE_GELU_AUX), without + 1);
    EXPECT_EQ(products_with(CUBLASLT_EPILOGUE_DGELU), gradients + 2);

    // Rounded once, of the sum as it was: closer than a rounded argument would allow.
    const Doubles x = layers.x.host().doubles();
    const Doubles w = layers.w.host().doubles();
    const Doubles bias = layers.bias.host().doubles();
    const Doubles y = layers.y.from_device().doubles();
    const Doubles kept = layers.kept.from_device().doubles();
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t n = i / 24, o = i % 24;
      double u = bias[o];
      for (std::size_t k = 0; k < kIn; ++k) u += x[n * kIn + k] * w[o * kIn + k];
      const double gelu = 0.5 * u * (1 + std::tanh(0.7978845608028654 * (u + 0.044715 * u * u * u)));
      EXPECT_NEAR(kept[i], u, unit_roundoff(type) * std::fabs(u) + 1e-5);
      EXPECT_NEAR(y[i], gelu, unit_roundoff(type) * std::fabs(gelu) + 1e-5);
    }
  }
}

/// As one after the other, to the bit, and without an epilogue that has a GELU.
TEST_F(CudaKernels, GeluTakesItsOwnKernelElsewhere) {
  struct Case {
    const char* why;
    DType type;
    std::int64_t width;
    int shift;
    int capability;
    bool algorithm;
  };
  for (const Case& c : {Case{"fp32 keeps its precision", DType::f32, 24, 0, 9, true},
                        {"the width is not divisible by 8", DType::bf16, 20, 0, 9, true},
                        {"the argument is not aligned", DType::f16, 24, 4, 9, true},
                        {"slower on sm_80 and sm_89", DType::bf16, 24, 0, 8, true},
                        {"slower on sm_120", DType::bf16, 24, 0, 12, true},
                        {"cuBLASLt has no algorithm", DType::bf16, 24, 0, 9, false}}) {
    host_cuda::compute_capability = c.capability;
    host_cuda::no_gelu_algorithm = !c.algorithm;
    const auto fresh = device::make_cuda_device({});
    host_cuda::compute_capability = 9;
    Layers together(*fresh, c.type, c.width, c.shift);
    Layers separate(*fresh, c.type, c.width, c.shift);
    const std::int64_t before = gelus();
    const std::int64_t forbidden = host_cuda::forbidden_products();
    together.together();
    separate.one_after_the_other();
    host_cuda::no_gelu_algorithm = false;
    EXPECT_EQ(gelus(), before) << c.why;
    EXPECT_EQ(host_cuda::forbidden_products(), forbidden) << c.why;
    EXPECT_TRUE(together.y.from_device().same_bits(separate.y.from_device())) << c.why;
    EXPECT_TRUE(together.kept.from_device().same_bits(separate.kept.from_device())) << c.why;
    EXPECT_TRUE(together.dx.from_device().same_bits(separate.dx.from_device())) << c.why;
  }
}

/// cublasLt.h's rules for the argument's matrix, which host_cuda must hold linear.cpp to.
TEST(HostCublasLt, RefusesWhatTheManualForbids) {
  struct Asked {
    cudaDataType_t type = CUDA_R_16BF;
    std::int32_t aux_type = CUDA_R_16BF;
    std::int64_t aux_ld = 16;
    std::uintptr_t aux = 4096;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DGELU;
  };
  const auto answer = [](const Asked& asked) {
    cublasLtMatmulDesc_t what = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
    EXPECT_EQ(cublasLtMatmulDescCreate(&what, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    const auto set = [what](cublasLtMatmulDescAttributes_t attribute, auto value) {
      EXPECT_EQ(cublasLtMatmulDescSetAttribute(what, attribute, &value, sizeof value), CUBLAS_STATUS_SUCCESS);
    };
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, asked.epilogue);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, asked.aux);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, asked.aux_ld);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, asked.aux_type);
    for (auto* layout : {&a, &b, &d})
      EXPECT_EQ(cublasLtMatrixLayoutCreate(layout, asked.type, 16, 16, 16), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(nullptr, what, a, b, d, d, preference, 1, &result, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    for (auto* layout : {a, b, d}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(what);
    return status;
  };
  EXPECT_EQ(answer({}), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(answer({.aux_type = -1}), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(answer({.aux_type = CUDA_R_16F}), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(answer({.aux_ld = 20}), CUBLAS_STATUS_INVALID_VALUE) << "not divisible by 8";
  EXPECT_EQ(answer({.aux_ld = 8}), CUBLAS_STATUS_INVALID_VALUE) << "less than the rows";
  EXPECT_EQ(answer({.aux = 4096 + 8}), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(answer({.aux = 0}), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(answer({.type = CUDA_R_32F}), CUBLAS_STATUS_INVALID_VALUE) << "an argument of 16 bits with fp32";
  EXPECT_EQ(answer({.epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS}), CUBLAS_STATUS_INVALID_VALUE) << "no bias";
  EXPECT_EQ(answer({.epilogue = CUBLASLT_EPILOGUE_RELU}), CUBLAS_STATUS_NOT_SUPPORTED);
}

}  // namespace
}  // namespace shardscope::gpu
