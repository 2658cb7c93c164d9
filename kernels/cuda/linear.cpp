// Dense layers by cuBLASLt. Our arrays are row-major and its matrices column-major, so each product is
// computed transposed: our y[N,out] is its matrix of out rows and N columns.
//
//   ours, row-major           cuBLASLt's, column-major
//   y[N,out] = x w^T          y (out, N) = w^T x,  w stored as (in, out), x as (in, N)
//   dx[N,in] = dy w           dx (in, N) = w dy,   dy stored as (out, N)
//   dw[out,in] = dy^T x       dw (in, out) = x dy^T
//
// Sums are fp32 whatever the operands' type (CUBLAS_COMPUTE_32F), results are rounded once.
#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/cuda/check.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/products.h"

namespace shardscope::kernels::cuda {

Context::Products::Products() { check(cublasLtCreate(&handle), "context", "cublasLtCreate"); }
Context::Products::~Products() { cublasLtDestroy(handle); }

namespace {

cudaDataType_t type_of(const char* kernel, DType type) {
  switch (type) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    case DType::i8:
      break;
  }
  throw_bad_argument(kernel, "quantized values have no arithmetic; dequantize them first");
}

/// Largest power of two up to 16 that divides the address: the alignment for wide loads.
std::int64_t alignment_of(const void* p) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  std::int64_t unit = 16;
  while (address % static_cast<std::uintptr_t>(unit) != 0) unit /= 2;
  return unit;
}

/// D[m,n] = op(A)[m,k] op(B)[k,n] (+ D, or C if it has data), column-major; leading dimensions are the stored
/// rows.
struct Product {
  std::int64_t m, n, k;
  bool transpose_a, transpose_b;
  ConstPtr a, b;
  Ptr d;
  Write write;
  // Operation on the sums before they are rounded, and the vector that it adds to each column of D (with
  // CUBLASLT_EPILOGUE_BGRADB: to which it writes the sums of B over k).
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  Ptr bias{};
  ConstPtr c{};  ///< in the layout of d
  Ptr aux{};     ///< in the layout of d: the argument of a GELU in the epilogue, which writes or reads it
};

/// Owns a descriptor for the duration of a call.
template <class T, cublasStatus_t (*kDestroy)(T)>
struct Owned {
  T value = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (value != nullptr) kDestroy(value);
  }
};
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Description = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

template <class T>
void set(const char* kernel, cublasLtMatmulDesc_t to, cublasLtMatmulDescAttributes_t what, const T& value) {
  check(cublasLtMatmulDescSetAttribute(to, what, &value, sizeof value), kernel,
        "cublasLtMatmulDescSetAttribute");
}
template <class T>
void set(const char* kernel, cublasLtMatmulPreference_t to, cublasLtMatmulPreferenceAttributes_t what,
         const T& value) {
  check(cublasLtMatmulPreferenceSetAttribute(to, what, &value, sizeof value), kernel,
        "cublasLtMatmulPreferenceSetAttribute");
}

void make_layout(const char* kernel, Layout& layout, DType type, std::int64_t rows, std::int64_t cols) {
  check(cublasLtMatrixLayoutCreate(&layout.value, type_of(kernel, type), static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(cols), rows),
        kernel, "cublasLtMatrixLayoutCreate");
}

/// Queues the product on the context's stream. False, with nothing queued, if cuBLASLt has no algorithm for
/// it (for example an epilogue that these types do not support). The heuristic is called once per key; later
/// calls only create their descriptors.
bool multiply(const Context& on, const char* kernel, const Product& p) {
  Description description;
  check(cublasLtMatmulDescCreate(&description.value, CUBLAS_COMPUTE_32F, CUDA_R_32F), kernel,
        "cublasLtMatmulDescCreate");
  set(kernel, description.value, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(kernel, description.value, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(kernel, description.value, CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
  if (p.bias.data != nullptr) {
    set(kernel, description.value, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias.data);
    set(kernel, description.value, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(kernel, p.bias.type));
  }
  if (p.aux.data != nullptr) {
    set(kernel, description.value, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.aux.data);
    set(kernel, description.value, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.m);
    set(kernel, description.value, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, type_of(kernel, p.aux.type));
  }
  Layout a;
  Layout b;
  Layout d;
  make_layout(kernel, a, p.a.type, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k);
  make_layout(kernel, b, p.b.type, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n);
  make_layout(kernel, d, p.d.type, p.m, p.n);

  const std::int64_t align_a = alignment_of(p.a.data);
  const std::int64_t align_b = alignment_of(p.b.data);
  const void* const c = p.c.data != nullptr ? p.c.data : p.d.data;
  const bool adds = p.c.data != nullptr || p.write == Write::add;
  const std::int64_t align_d = std::min(alignment_of(p.d.data), alignment_of(c));
  // Also of an epilogue's vector: the heuristic derives its alignment from its address in the description.
  // Its matrix is always aligned to 16 bytes (gelu_fits).
  const std::int64_t align_bias = alignment_of(p.bias.data);
  const auto types = static_cast<std::int64_t>(p.a.type) | static_cast<std::int64_t>(p.b.type) << 4 |
                     static_cast<std::int64_t>(p.d.type) << 8 | static_cast<std::int64_t>(p.bias.type) << 12;
  // Alignments are part of the key: an algorithm chosen for 16 bytes may load 16 bytes at a time, and would
  // fault on an address aligned to 4. C's is folded into D's, since both share a layout.
  const Context::Products::Key key{p.m,
                                   p.n,
                                   p.k,
                                   (p.transpose_a ? 1 : 0) | (p.transpose_b ? 2 : 0),
                                   types,
                                   static_cast<std::int64_t>(p.epilogue),
                                   align_a,
                                   align_b,
                                   align_bias << 8 | align_d << 1 | (adds ? 1 : 0)};
  Context::Products& products = on.products();
  auto found = products.chosen.find(key);
  if (found == products.chosen.end()) {
    Preference preference;
    check(cublasLtMatmulPreferenceCreate(&preference.value), kernel, "cublasLtMatmulPreferenceCreate");
    set(kernel, preference.value, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, Context::kWorkspaceBytes);
    // Partial sums are added in fp32: in the output's 16 bits each addition would round (seen on an H100: 5
    // units in the last place of fp16).
    set(kernel, preference.value, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    const auto bytes = [](std::int64_t unit) { return static_cast<std::uint32_t>(unit); };
    set(kernel, preference.value, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, bytes(align_a));
    set(kernel, preference.value, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, bytes(align_b));
    set(kernel, preference.value, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, bytes(align_d));
    set(kernel, preference.value, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, bytes(align_d));
    cublasLtMatmulHeuristicResult_t result{};
    int results = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(products.handle, description.value, a.value, b.value, d.value, d.value,
                                       preference.value, 1, &result, &results);
    const bool has = status == CUBLAS_STATUS_SUCCESS && results > 0 && result.state == CUBLAS_STATUS_SUCCESS;
    // For an unsupported epilogue it may also return "invalid value"; a plain product has no such case.
    if (p.epilogue == CUBLASLT_EPILOGUE_DEFAULT && status != CUBLAS_STATUS_NOT_SUPPORTED) {
      check(status, kernel, "cublasLtMatmulAlgoGetHeuristic");
    }
    // A missing algorithm is cached too.
    found = products.chosen.emplace(key, std::pair(has, result.algo)).first;
  }
  if (!found->second.first) return false;
  const float one = 1.0F;
  // beta = 0: D is not read, and may hold any values.
  const float beta = adds ? 1.0F : 0.0F;
  check(cublasLtMatmul(products.handle, description.value, &one, p.a.data, a.value, p.b.data, b.value, &beta,
                       c, d.value, p.d.data, d.value, &found->second.second, on.workspace(),
                       Context::kWorkspaceBytes, static_cast<cudaStream_t>(on.stream())),
        kernel, "cublasLtMatmul");
  return true;
}

/// For products without an epilogue, which have no fallback.
void multiply_or_throw(const Context& on, const char* kernel, const Product& p) {
  if (multiply(on, kernel, p)) return;
  throw_bad_argument(kernel, "cuBLASLt has no algorithm for a product of " + std::to_string(p.m) + " x " +
                                 std::to_string(p.n) + " x " + std::to_string(p.k) + " of these types");
}

/// Whether a GELU can be computed in the epilogue of a product of these types. For cuBLASLt its argument is a
/// matrix of `width` rows, whose leading dimension must be divisible by 8 (cublasLt.h,
/// CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD). cuBLASLt's GELU is the tanh form like ours, but its accuracy is not
/// documented: the GPU's tanh instruction has an error of 2^-11 (PTX, tanh.approx.f32), about the rounding of
/// fp16 and 2^13 times that of fp32. So fp32 uses our kernel, bitwise equal to the unfused operations.
bool gelu_fits(const Context& on, DType type, ConstPtr left, ConstPtr right, const void* argument,
               std::int64_t width) {
  return on.gelu_in_products() && (type == DType::bf16 || type == DType::f16) && left.type == type &&
         right.type == type && width % 8 == 0 && alignment_of(argument) == 16;
}

}  // namespace

void linear_forward(const Context& on, Ptr y, ConstPtr x, ConstPtr w, ConstPtr bias, std::int64_t N,
                    std::int64_t in, std::int64_t out, ConstPtr onto) {
  if (N == 0) return;
  Product p{out, N, in, true, false, w, x, y, Write::set};
  p.c = onto;
  if (bias.data != nullptr) {
    p.epilogue = CUBLASLT_EPILOGUE_BIAS;
    p.bias = {const_cast<void*>(bias.data), bias.type};  // only read by this epilogue
    if (multiply(on, "linear_forward", p)) return;
    // No such epilogue: y is first set to the bias (plus onto), rounded to its type, and the product added.
    p.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    p.bias = {};
    p.c = {};
    p.write = Write::add;  // to the rows set to the bias
    fill_rows(on, y, bias, N, out);
    if (onto.data != nullptr) add(on, y, y, onto, N * out);
  }
  multiply_or_throw(on, "linear_forward", p);
}

void linear_backward_input(const Context& on, Ptr dx, ConstPtr dy, ConstPtr w, std::int64_t N,
                           std::int64_t in, std::int64_t out, Write write) {
  if (N == 0 || dx.data == nullptr) return;
  multiply_or_throw(on, "linear_backward_input", {in, N, out, false, false, w, dy, dx, write});
}

void linear_gelu_forward(const Context& on, Ptr y, Ptr kept, ConstPtr x, ConstPtr w, ConstPtr bias,
                         std::int64_t N, std::int64_t in, std::int64_t out) {
  if (N == 0) return;
  if (gelu_fits(on, y.type, x, w, kept.data, out)) {
    Product p{out, N, in, true, false, w, x, y, Write::set};
    p.epilogue = bias.data != nullptr ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    p.bias = {const_cast<void*>(bias.data), bias.type};  // only read by these epilogues
    p.aux = kept;
    if (multiply(on, "linear_gelu_forward", p)) return;
  }
  linear_forward(on, kept, x, w, bias, N, in, out, {});
  gelu_forward(on, y, kept, N * out);
}

void linear_gelu_backward_input(const Context& on, Ptr dx, ConstPtr dy, ConstPtr w, ConstPtr kept,
                                std::int64_t N, std::int64_t in, std::int64_t out) {
  if (N == 0) return;
  if (dx.type == kept.type && gelu_fits(on, dx.type, dy, w, kept.data, in)) {
    Product p{in, N, out, false, false, w, dy, dx, Write::set};
    p.epilogue = CUBLASLT_EPILOGUE_DGELU;
    p.aux = {const_cast<void*>(kept.data), kept.type};  // only read by this epilogue
    if (multiply(on, "linear_gelu_backward_input", p)) return;
  }
  linear_backward_input(on, dx, dy, w, N, in, out, Write::set);
  // In place: an element of dx is read before it is written, by the same thread.
  gelu_backward(on, dx, dx, kept, N * in);
}

void linear_backward_weight(const Context& on, Ptr dw, Ptr dbias, ConstPtr dy, ConstPtr x, std::int64_t N,
                            std::int64_t in, std::int64_t out, Write write) {
  constexpr const char* kName = "linear_backward_weight";
  if (dw.data == nullptr && N > 0) {
    if (dbias.data != nullptr) column_sums(on, dbias, dy, N, out, write);
    return;
  }
  if (N == 0) {
    // A sum over no rows is 0.
    if (write == Write::add) return;
    if (dw.data != nullptr) fill_zero(on, dw.data, static_cast<std::size_t>(in * out) * size_of(dw.type));
    if (dbias.data != nullptr) fill_zero(on, dbias.data, static_cast<std::size_t>(out) * size_of(dbias.type));
    return;
  }
  // k is N: the sum over rows.
  Product p{in, out, N, false, true, x, dy, dw, write};
  // The epilogue sums dy during the product, but can only set: accumulation needs a separate pass.
  if (dbias.data != nullptr && write == Write::set) {
    p.epilogue = CUBLASLT_EPILOGUE_BGRADB;
    p.bias = dbias;
    if (multiply(on, kName, p)) return;
    p.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    p.bias = {};
  }
  multiply_or_throw(on, kName, p);
  if (dbias.data != nullptr) column_sums(on, dbias, dy, N, out, write);
}

}  // namespace shardscope::kernels::cuda
