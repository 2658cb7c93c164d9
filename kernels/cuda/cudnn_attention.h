// Attention by cuDNN's fused kernels: the plans of a context, one per shape.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/cudnn_graph.h"

namespace shardscope::kernels::cuda {

struct Context::CudnnAttention {
  /// The graph and the ids of its arrays; run() takes an address for each.
  struct Forward {
    CudnnGraph graph{"attention_forward"};
    CudnnGraph::Tensor q, k, v, out, logsumexp;
  };
  struct Backward {
    CudnnGraph graph{"attention_backward"};
    CudnnGraph::Tensor q, k, v, out, dout, logsumexp, dq, dk, dv;
    CudnnGraph::Tensor delta;    ///< sums of dout * out over a head's columns, fp32 [B,H,T]
    CudnnGraph::Tensor dq_sums;  ///< fp32 [B,H,T,C/H]: blocks of keys add to it as they come
  };

  /// Loads cuDNN and makes a handle on the stream. Throws KernelError if cuDNN is missing or too old.
  explicit CudnnAttention(void* stream);
  ~CudnnAttention();
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  /// The plan of a type and shape, made on first use; owned by this object. Throws KernelError if cuDNN has
  /// none.
  Forward& forward(DType type, const AttentionShape&);
  Backward& backward(DType type, const AttentionShape&);

  cudnnHandle_t handle = nullptr;

 private:
  // Type, B, T, C and H.
  using Key = std::tuple<DType, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  template <class Plan>
  Plan& planned(std::map<Key, std::unique_ptr<Plan>>& plans, DType type, const AttentionShape&);

  std::map<Key, std::unique_ptr<Forward>> forward_;
  std::map<Key, std::unique_ptr<Backward>> backward_;
};

}  // namespace shardscope::kernels::cuda
