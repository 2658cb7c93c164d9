#include "kernels/cpu/gemm_bf16.h"

#include <omp.h>

#include <compare>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>

#include "kernels/cpu/isa.h"
#include "kernels/error.h"

namespace shardscope::kernels::cpu {
namespace {

/// All parameters of a primitive; the key of a thread's primitives.
struct Shape {
  std::int64_t m, n, k, lda, ldb, ldc;
  Trans trans_a, trans_b;
  bool add, biased;
  DType c_type;
  int threads;

  auto operator<=>(const Shape&) const = default;
};

// Describes op(X): a transposed matrix by its strides, without copying.
dnnl::memory::desc described(std::int64_t rows, std::int64_t columns, dnnl::memory::data_type type,
                             Trans trans, std::int64_t ld) {
  const dnnl::memory::dims strides =
      trans == Trans::no ? dnnl::memory::dims{ld, 1} : dnnl::memory::dims{1, ld};
  return {{rows, columns}, type, strides};
}

/// A primitive of one shape, made once per thread: creating it takes longer than a small product.
struct Product {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::memory::desc a, b, c, bias;
  dnnl::matmul primitive;

  explicit Product(const Shape& s)
      : a(described(s.m, s.k, dnnl::memory::data_type::bf16, s.trans_a, s.lda)),
        b(described(s.k, s.n, dnnl::memory::data_type::bf16, s.trans_b, s.ldb)),
        c(described(s.m, s.n,
                    s.c_type == DType::f32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16,
                    Trans::no, s.ldc)),
        bias(described(1, s.n, dnnl::memory::data_type::f32, Trans::no, s.n)) {
    dnnl::primitive_attr attributes;
    if (s.add) {
      // c = product + 1.0 * c.
      dnnl::post_ops sum;
      sum.append_sum(1.0F);
      attributes.set_post_ops(sum);
    }
    // oneDNN 3 has no operation descriptors between shapes and primitives.
#if DNNL_VERSION_MAJOR >= 3
    using Wanted = dnnl::matmul::primitive_desc;
    primitive = dnnl::matmul(s.biased ? Wanted(engine, a, b, bias, c, attributes)
                                      : Wanted(engine, a, b, c, attributes));
#else
    const dnnl::matmul::desc wanted =
        s.biased ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    primitive = dnnl::matmul({wanted, attributes, engine});
#endif
  }

  void run(const std::uint16_t* from_a, const std::uint16_t* from_b, void* to_c, const float* added) {
    // oneDNN's memory objects have no const; operands are only read.
    std::unordered_map<int, dnnl::memory> arguments{
        {DNNL_ARG_SRC, {a, engine, const_cast<std::uint16_t*>(from_a)}},
        {DNNL_ARG_WEIGHTS, {b, engine, const_cast<std::uint16_t*>(from_b)}},
        {DNNL_ARG_DST, {c, engine, to_c}}};
    if (added != nullptr) arguments.insert({DNNL_ARG_BIAS, {bias, engine, const_cast<float*>(added)}});
    // A CPU engine's stream: when wait() returns, the result is in c.
    primitive.execute(stream, arguments);
    stream.wait();
  }
};

/// Limit of cached shapes per thread: a run has one per kind of layer of its model, a test any number.
constexpr std::size_t kShapesKept = 256;

}  // namespace

bool bf16_products_pay() noexcept {
  static const bool fast = [] {
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") && __builtin_cpu_supports("avx512bf16") && isa_supported(Isa::avx512);
  }();
  return fast && &vector_kernels() == &avx512::kTable && !sums_in_double();
}

void gemm_bf16(const Gemm& g, const std::uint16_t* a, const std::uint16_t* b, Ptr c, const float* bias) {
  if (g.m <= 0 || g.n <= 0) return;
  const Shape shape{.m = g.m,
                    .n = g.n,
                    .k = g.k,
                    .lda = g.lda,
                    .ldb = g.ldb,
                    .ldc = g.ldc,
                    .trans_a = g.trans_a,
                    .trans_b = g.trans_b,
                    .add = g.add,
                    .biased = bias != nullptr,
                    .c_type = c.type,
                    .threads = g.threads};
  // The thread count of the calling thread; oneDNN starts no parallel region if it is 1.
  if (omp_get_max_threads() != g.threads) omp_set_num_threads(g.threads);
  // Per thread: primitives are used without a lock.
  thread_local std::map<Shape, Product> products;
  try {
    auto found = products.find(shape);
    if (found == products.end()) {
      // Clears all: no order of use is tracked.
      if (products.size() >= kShapesKept) products.clear();
      found = products.emplace(shape, shape).first;
    }
    found->second.run(a, b, c.data, bias);
  } catch (const dnnl::error& error) {
    throw_bad_argument("gemm", "oneDNN refuses it (status " + std::to_string(static_cast<int>(error.status)) +
                                   ") in bf16 for m=" + std::to_string(g.m) + " n=" + std::to_string(g.n) +
                                   " k=" + std::to_string(g.k));
  }
}

}  // namespace shardscope::kernels::cpu
