#include "kernels/cpu/gemm.h"

#include <omp.h>

#include <array>
#include <atomic>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>

#include "kernels/cpu/workspace.h"
#include "kernels/error.h"
#include "kernels/precision.h"

namespace shardscope::kernels::cpu {
namespace {

struct Hash {
  std::size_t operator()(const Gemm& g) const noexcept {
    std::size_t h = static_cast<std::size_t>(g.trans_a) | static_cast<std::size_t>(g.trans_b) << 1 |
                    static_cast<std::size_t>(g.add) << 2 | static_cast<std::size_t>(g.bias) << 3 |
                    static_cast<std::size_t>(g.threads) << 4;
    for (const std::int64_t x : {g.m, g.n, g.k, g.lda, g.ldb, g.ldc}) {
      h = (h ^ static_cast<std::size_t>(x)) * 0x9E3779B97F4A7C15ULL;
      h ^= h >> 29;
    }
    return h;
  }
};

/// A primitive with its memory objects, whose addresses are set at each call.
struct Prepared {
  dnnl::matmul primitive;
  dnnl::memory a, b, c, bias, scratch;
  std::size_t scratch_bytes = 0;
};

dnnl::memory::desc matrix(std::int64_t rows, std::int64_t cols, Trans trans, std::int64_t ld) {
  const dnnl::memory::dims strides =
      trans == Trans::no ? dnnl::memory::dims{ld, 1} : dnnl::memory::dims{1, ld};
  return {{rows, cols}, dnnl::memory::data_type::f32, strides};
}

class PrimitiveCache {
 public:
  void run(const Gemm& g, const float* a, const float* b, float* c, const float* bias) {
    // The calling thread's own limit; oneDNN opens no parallel region when it is 1.
    if (omp_get_max_threads() != g.threads) omp_set_num_threads(g.threads);
    auto found = primitives_.find(g);
    if (found == primitives_.end()) {
      // A run has a few dozen shapes; a caller with ever new ones (ragged batches) must not grow this for
      // ever.
      if (primitives_.size() >= kMostShapes) primitives_.clear();
      found = primitives_.emplace(g, prepare(g)).first;
    }
    Prepared& p = found->second;
    // oneDNN's interface takes no pointers to const; it does not write to its sources.
    p.a.set_data_handle(const_cast<float*>(a));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    p.b.set_data_handle(const_cast<float*>(b));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    p.c.set_data_handle(c);
    p.scratch.set_data_handle(workspace(Slot::primitive, p.scratch_bytes));
    // The C interface, because the C++ one builds a map of arguments on each call.
    std::array<dnnl_exec_arg_t, 5> arguments{{{DNNL_ARG_SRC, p.a.get()},
                                              {DNNL_ARG_WEIGHTS, p.b.get()},
                                              {DNNL_ARG_DST, p.c.get()},
                                              {DNNL_ARG_SCRATCHPAD, p.scratch.get()},
                                              {DNNL_ARG_BIAS, nullptr}}};
    int count = 4;
    if (g.bias) {
      p.bias.set_data_handle(const_cast<float*>(bias));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
      arguments[4].memory = p.bias.get();
      count = 5;
    }
    dnnl::error::wrap_c_api(dnnl_primitive_execute(p.primitive.get(), stream_.get(), count, arguments.data()),
                            "could not execute a matrix product");
  }

 private:
  static constexpr std::size_t kMostShapes = 1024;

  Prepared prepare(const Gemm& g) {
    const auto a = matrix(g.m, g.k, g.trans_a, g.lda);
    const auto b = matrix(g.k, g.n, g.trans_b, g.ldb);
    const auto c = matrix(g.m, g.n, Trans::no, g.ldc);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (g.add) {
      dnnl::post_ops sum;
      sum.append_sum(1.0F);
      attributes.set_post_ops(sum);
    }
    const dnnl::memory::desc bias({1, g.n}, dnnl::memory::data_type::f32, dnnl::memory::dims{g.n, 1});
    const auto desc = g.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    const dnnl::matmul::primitive_desc pd(desc, attributes, engine_);
    Prepared p;
    p.primitive = dnnl::matmul(pd);
    p.a = dnnl::memory(a, engine_, nullptr);
    p.b = dnnl::memory(b, engine_, nullptr);
    p.c = dnnl::memory(c, engine_, nullptr);
    if (g.bias) p.bias = dnnl::memory(bias, engine_, nullptr);
    p.scratch = dnnl::memory(pd.scratchpad_desc(), engine_, nullptr);
    p.scratch_bytes = pd.scratchpad_desc().get_size();
    return p;
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::unordered_map<Gemm, Prepared, Hash> primitives_;
};

std::atomic<bool> g_sum_in_double{false};

void sum_in_double(const Gemm& g, const float* a, const float* b, float* c, const float* bias) {
  const std::int64_t a_row = g.trans_a == Trans::no ? g.lda : 1;
  const std::int64_t a_col = g.trans_a == Trans::no ? 1 : g.lda;
  const std::int64_t b_row = g.trans_b == Trans::no ? g.ldb : 1;
  const std::int64_t b_col = g.trans_b == Trans::no ? 1 : g.ldb;
  for (std::int64_t i = 0; i < g.m; ++i) {
    for (std::int64_t j = 0; j < g.n; ++j) {
      float& out = c[i * g.ldc + j];
      double sum = g.add ? static_cast<double>(out) : 0.0;
      if (bias != nullptr) sum += static_cast<double>(bias[j]);
      for (std::int64_t k = 0; k < g.k; ++k) {
        sum += static_cast<double>(a[i * a_row + k * a_col]) * static_cast<double>(b[k * b_row + j * b_col]);
      }
      out = static_cast<float>(sum);
    }
  }
}

}  // namespace

void gemm(const Gemm& shape, const float* a, const float* b, float* c, const float* bias) {
  if (g_sum_in_double.load(std::memory_order_relaxed)) {
    sum_in_double(shape, a, b, c, bias);
    return;
  }
  // Per thread: a primitive's memory objects carry the addresses of the call in progress.
  thread_local PrimitiveCache cache;
  try {
    cache.run(shape, a, b, c, bias);
  } catch (const dnnl::error& e) {
    throw_bad_argument("gemm", "oneDNN: " + std::string(e.what()) + " (status " + std::to_string(e.status) +
                                   ") for m=" + std::to_string(shape.m) + " n=" + std::to_string(shape.n) +
                                   " k=" + std::to_string(shape.k));
  }
}

}  // namespace shardscope::kernels::cpu

namespace shardscope::kernels {

void set_matmul_precision(MatmulPrecision precision) noexcept {
  cpu::g_sum_in_double.store(precision == MatmulPrecision::highest);
}

}  // namespace shardscope::kernels
