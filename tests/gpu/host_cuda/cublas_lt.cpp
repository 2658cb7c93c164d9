// The part of cuBLASLt that kernels/cuda/linear.cpp uses, as its manual describes it: column-major matrices,
// sums in fp32, one rounding, epilogues after the product. What linear.cpp must not rely on is refused: bias
// gradients in the epilogue of fp32 products, pointers less aligned than declared, a GELU's
// argument of another type, in place of the result or not aligned to 16 bytes.
#include "tests/gpu/host_cuda/cublas_lt.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "tests/gpu/host_cuda/numbers.h"
#include "tests/gpu/host_cuda/runtime.h"

using namespace shardscope;

namespace {

struct Description {
  std::int32_t bias_type = -1;  ///< a cudaDataType; -1: that of the result
  std::int32_t aux_type = -1;
  std::int64_t aux_ld = 0;
  void* aux = nullptr;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
};
struct Layout {
  cudaDataType_t type;
  std::uint64_t rows, cols;
  std::int64_t ld;
};
struct Preference {
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};

template <class T, class Handle>
T& as(Handle handle) {
  return *reinterpret_cast<T*>(handle);
}

kernels::DType of(cudaDataType_t type) {
  if (type == CUDA_R_32F) return kernels::DType::f32;
  return type == CUDA_R_16BF ? kernels::DType::bf16 : kernels::DType::f16;
}
float load(const void* at, cudaDataType_t type, std::int64_t i) { return host_cuda::load(at, of(type), i); }
void store(void* at, cudaDataType_t type, std::int64_t i, float x) { host_cuda::store(at, of(type), i, x); }
/// The stored matrix in fp32, its rows or its columns one after the other.
std::vector<float> lines(const void* x, const Layout& layout, bool by_rows) {
  const auto rows = static_cast<std::int64_t>(layout.rows);
  const auto cols = static_cast<std::int64_t>(layout.cols);
  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(rows * cols));
  for (std::int64_t i = 0; i < (by_rows ? rows : cols); ++i) {
    for (std::int64_t p = 0; p < (by_rows ? cols : rows); ++p)
      out.push_back(load(x, layout.type, by_rows ? i + p * layout.ld : p + i * layout.ld));
  }
  return out;
}

bool takes_bias(cublasLtEpilogue_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_BGRADB ||
         epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}
bool has_gelu(cublasLtEpilogue_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
         epilogue == CUBLASLT_EPILOGUE_DGELU;
}

/// Whether the epilogue can be done for results like `d`, by cublasLt.h's cublasLtMatmulDescAttributes_t.
cublasStatus_t check_epilogue(const Description& what, const Layout& d) {
  const auto same_type = [&d](std::int32_t type) { return type == -1 || type == d.type; };
  const bool bias = takes_bias(what.epilogue);
  const bool gelu = has_gelu(what.epilogue);
  if (what.epilogue != CUBLASLT_EPILOGUE_DEFAULT && !bias && !gelu) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (bias && (what.bias == nullptr || !same_type(what.bias_type))) return CUBLAS_STATUS_INVALID_VALUE;
  if (what.epilogue == CUBLASLT_EPILOGUE_BGRADB && d.type == CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!gelu) return CUBLAS_STATUS_SUCCESS;
  // Leading dimension: divisible by 8, not less than the result's rows.
  const bool fits = what.aux != nullptr && reinterpret_cast<std::uintptr_t>(what.aux) % 16 == 0 &&
                    same_type(what.aux_type) && what.aux_ld % 8 == 0 &&
                    what.aux_ld >= static_cast<std::int64_t>(d.rows);
  return fits ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

// Tanh form: 0.5 u (1 + t), t = tanh(a (u + b u^3)).
constexpr float kA = 0.7978845608F;
constexpr float kB = 0.044715F;
float gelu(float u) { return 0.5F * u * (1 + std::tanh(kA * (u + kB * u * u * u))); }
float gelu_slope(float u) {
  const float t = std::tanh(kA * (u + kB * u * u * u));
  return 0.5F * (1 + t) + 0.5F * u * (1 - t * t) * kA * (1 + 3 * kB * u * u);
}

std::array<std::atomic<std::int64_t>, 1024> queued;  ///< products by epilogue
std::atomic<std::int64_t> forbidden;

}  // namespace

namespace shardscope::host_cuda {
std::int64_t products_with(cublasLtEpilogue_t epilogue) { return queued.at(epilogue); }
std::int64_t forbidden_products() { return forbidden; }
}  // namespace shardscope::host_cuda

extern "C" {

const char* cublasLtGetStatusName(cublasStatus_t) { return "status of host_cuda"; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "status of host_cuda"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int one = 0;
  *handle = reinterpret_cast<cublasLtHandle_t>(&one);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* to, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *to = reinterpret_cast<cublasLtMatmulDesc_t>(new Description);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete &as<Description>(description);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t to, cublasLtMatmulDescAttributes_t what,
                                              const void* value, std::size_t bytes) {
  auto& d = as<Description>(to);
  const auto take = [&](auto& field, std::size_t size) {
    if (bytes != size) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&field, value, sizeof field);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (what) {  // sizes as cublasLt.h gives them
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(d.a, 4);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(d.b, 4);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(d.epilogue, 4);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(d.bias, 8);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return take(d.bias_type, 4);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return take(d.aux, 8);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return take(d.aux_ld, 8);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
      return take(d.aux_type, 4);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* to, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t cols, std::int64_t ld) {
  if (ld < static_cast<std::int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *to = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, cols, ld});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &as<Layout>(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* to) {
  *to = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete &as<Preference>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t to,
                                                    cublasLtMatmulPreferenceAttributes_t what,
                                                    const void* value, std::size_t bytes) {
  const auto& alignment = as<Preference>(to).alignment;
  const auto take = [&](int i) {
    if (bytes != 4) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(const_cast<std::uint32_t*>(&alignment[i]), value, 4);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (what) {
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return bytes == 4 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return bytes == 8 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return take(0);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return take(1);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return take(2);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return take(3);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  *found = 0;
  const auto& what = as<Description>(description);
  if (as<Layout>(a).type != as<Layout>(b).type) return CUBLAS_STATUS_NOT_SUPPORTED;
  const cublasStatus_t epilogue = check_epilogue(what, as<Layout>(d));
  if (epilogue == CUBLAS_STATUS_INVALID_VALUE) ++forbidden;
  if (epilogue != CUBLAS_STATUS_SUCCESS) return epilogue;
  if (has_gelu(what.epilogue) && shardscope::host_cuda::no_gelu_algorithm) return CUBLAS_STATUS_SUCCESS;
  results[0] = {};
  results[0].state = CUBLAS_STATUS_SUCCESS;
  // The alignments it was found for, as an algorithm of cuBLASLt's depends on them.
  for (int i = 0; i < 4; ++i) results[0].algo.data[i] = as<Preference>(preference).alignment[i];
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* A, cublasLtMatrixLayout_t a_layout, const void* B,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* C,
                              cublasLtMatrixLayout_t c_layout, void* D, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algo, void*, std::size_t, cudaStream_t stream) {
  const Description what = as<Description>(description);
  const Layout a = as<Layout>(a_layout);
  const Layout b = as<Layout>(b_layout);
  const Layout c = as<Layout>(c_layout);
  const Layout d = as<Layout>(d_layout);
  const auto m = static_cast<std::int64_t>(d.rows);
  const auto n = static_cast<std::int64_t>(d.cols);
  const auto k = static_cast<std::int64_t>(what.a == CUBLAS_OP_N ? a.cols : a.rows);
  const bool fits = static_cast<std::int64_t>(what.a == CUBLAS_OP_N ? a.rows : a.cols) == m &&
                    static_cast<std::int64_t>(what.b == CUBLAS_OP_N ? b.rows : b.cols) == k &&
                    static_cast<std::int64_t>(what.b == CUBLAS_OP_N ? b.cols : b.rows) == n &&
                    c.rows == d.rows && c.cols == d.cols;
  if (!fits) return CUBLAS_STATUS_INVALID_VALUE;
  const cublasStatus_t epilogue = check_epilogue(what, d);
  if (epilogue != CUBLAS_STATUS_SUCCESS) return epilogue;
  if (has_gelu(what.epilogue) && what.aux == D) return CUBLAS_STATUS_INVALID_VALUE;
  queued.at(what.epilogue) += 1;
  const void* pointers[] = {A, B, C, D};
  for (int i = 0; i < 4; ++i) {
    if (reinterpret_cast<std::uintptr_t>(pointers[i]) % algo->data[i] != 0)
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  const float scale = *static_cast<const float*>(alpha);
  const float add = *static_cast<const float*>(beta);
  const bool adds_bias = takes_bias(what.epilogue) && what.epilogue != CUBLASLT_EPILOGUE_BGRADB;
  shardscope::host_cuda::launch(stream, "gemm", [=] {
    const std::vector<float> left = lines(A, a, what.a == CUBLAS_OP_T);   // columns of op(A): k of m values
    const std::vector<float> right = lines(B, b, what.b == CUBLAS_OP_T);  // columns of op(B): n of k values
    std::vector<float> sums(static_cast<std::size_t>(m));
    for (std::int64_t j = 0; j < n; ++j) {
      std::fill(sums.begin(), sums.end(), 0.0F);
      for (std::int64_t p = 0; p < k; ++p) {
        const float factor = right[static_cast<std::size_t>(j * k + p)];
        const float* const column = left.data() + p * m;
        for (std::int64_t i = 0; i < m; ++i) sums[static_cast<std::size_t>(i)] += column[i] * factor;
      }
      for (std::int64_t i = 0; i < m; ++i) {
        float sum = sums[static_cast<std::size_t>(i)] * scale;
        if (add != 0) sum += add * load(C, c.type, i + j * c.ld);
        // The bias has a value for each row of D.
        if (adds_bias) sum += load(what.bias, d.type, i);
        if (what.epilogue == CUBLASLT_EPILOGUE_DGELU) {
          sum *= gelu_slope(load(what.aux, d.type, i + j * what.aux_ld));
        } else if (has_gelu(what.epilogue)) {
          store(what.aux, d.type, i + j * what.aux_ld, sum);
          sum = gelu(sum);
        }
        store(D, d.type, i + j * d.ld, sum);
      }
      // The gradient of a bias along the columns of D: sums of B over k.
      if (what.epilogue == CUBLASLT_EPILOGUE_BGRADB) {
        float sum = 0;
        for (std::int64_t p = 0; p < k; ++p) sum += right[static_cast<std::size_t>(j * k + p)];
        store(what.bias, d.type, j, sum);
      }
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}
}
