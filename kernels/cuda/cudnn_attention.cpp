#include "kernels/cuda/cudnn_attention.h"

#include <algorithm>
#include <limits>

#include "kernels/error.h"

namespace shardscope::kernels::cuda {
namespace {

using Tensor = CudnnGraph::Tensor;
using Shape = CudnnGraph::Shape;

constexpr std::int64_t kWidest = 128;  ///< head that cuDNN's kernels take forward and backward
// Alignment of the parts of the scratch memory, bytes.
constexpr std::size_t kAligned = 256;

/// The arrays of kernels/ops.h in cuDNN's layout: [B, H, T, C/H].
struct Shapes {
  explicit Shapes(const AttentionShape& s) : B(s.B), T(s.T), C(s.C), H(s.H), D(s.width()) {}
  /// One of q, k and v (or their gradients) in rows of 3C.
  [[nodiscard]] Shape packed() const { return {{B, H, T, D}, {T * 3 * C, D, 3 * C, 1}}; }
  /// Arrays [B,T,C].
  [[nodiscard]] Shape out() const { return {{B, H, T, D}, {T * C, D, C, 1}}; }
  /// A separate dense fp32 array [B,H,T,C/H].
  [[nodiscard]] Shape by_head() const { return {{B, H, T, D}, {H * T * D, T * D, D, 1}}; }
  /// One number per query: [B,H,T].
  [[nodiscard]] Shape rows() const { return {{B, H, T, 1}, {H * T, T, 1, 1}}; }
  /// T x T of a head: only between operations, never in memory.
  [[nodiscard]] Shape scores() const { return {{B, H, T, T}, {H * T * T, T * T, T, 1}}; }
  std::int64_t B, T, C, H, D;
};

cudnnDataType_t type_of(DType type) { return type == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF; }

/// Scores of keys after the query, which it does not see, become minus infinity. Of the possible
/// formulations, cuDNN's kernels support this one.
Tensor causal(CudnnGraph& graph, Tensor scores, const Shapes& s) {
  // Its exponential is 0: such keys add nothing to sum and result.
  const Tensor least = graph.number(-std::numeric_limits<float>::infinity());
  const Tensor row = graph.between(CUDNN_DATA_INT32, s.scores());
  const Tensor column = graph.between(CUDNN_DATA_INT32, s.scores());
  const Tensor seen = graph.between(CUDNN_DATA_BOOLEAN, s.scores());
  const Tensor masked = graph.between(CUDNN_DATA_FLOAT, s.scores());
  // seen = row >= column: axis 2 is the query, axis 3 the key.
  graph.index(row, scores, 2);
  graph.index(column, scores, 3);
  graph.pointwise(CUDNN_POINTWISE_CMP_GE, seen, row, column, CUDNN_DATA_BOOLEAN);
  graph.select(masked, scores, least, seen);
  return masked;
}

/// Never in memory, fp32.
Tensor pointwise(CudnnGraph& graph, cudnnPointwiseMode_t mode, const Shape& shape, Tensor x,
                 std::optional<Tensor> b = std::nullopt) {
  const Tensor y = graph.between(CUDNN_DATA_FLOAT, shape);
  graph.pointwise(mode, y, x, b);
  return y;
}

// The forward pass as single operations, in the form that cuDNN's engines recognize and fuse: scores = scale
// q k^T, masked; logsumexp = max + log(sum of exp(scores - max)); out = softmax(scores) v. Scores and softmax
// are fp32; its weights are rounded to 16 bits for the product with v.
void describe(Context::CudnnAttention::Forward& to, DType type, const AttentionShape& shape) {
  const Shapes s(shape);
  const cudnnDataType_t io = type_of(type);
  CudnnGraph& graph = to.graph;
  to.q = graph.array(io, s.packed());
  to.k = graph.array(io, s.packed().transposed());
  to.v = graph.array(io, s.packed());
  to.logsumexp = graph.array(CUDNN_DATA_FLOAT, s.rows());
  to.out = graph.array(io, s.out());
  const Tensor scale = graph.number(shape.scale());

  // q (T, C/H) times k transposed (C/H, T).
  const Tensor products = graph.between(CUDNN_DATA_FLOAT, s.scores());
  graph.multiply(products, to.q, to.k);
  const Tensor scores = causal(graph, pointwise(graph, CUDNN_POINTWISE_MUL, s.scores(), products, scale), s);

  // The softmax over each row.
  const Tensor most = graph.between(CUDNN_DATA_FLOAT, s.rows());
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, most, scores);
  const Tensor below = pointwise(graph, CUDNN_POINTWISE_SUB, s.scores(), scores, most);
  const Tensor powers = pointwise(graph, CUDNN_POINTWISE_EXP, s.scores(), below);
  const Tensor sum = graph.between(CUDNN_DATA_FLOAT, s.rows());
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, sum, powers);
  const Tensor logarithm = pointwise(graph, CUDNN_POINTWISE_LOG, s.rows(), sum);
  graph.pointwise(CUDNN_POINTWISE_ADD, to.logsumexp, most, logarithm);
  const Tensor weights = graph.between(io, s.scores());
  graph.pointwise(CUDNN_POINTWISE_DIV, weights, powers, sum);
  graph.multiply(to.out, weights, to.v);
}

// The backward pass, with P = exp(scores - logsumexp) recomputed: dv = P^T dout, dP = dout v^T, dS = scale P
// (dP - delta), dk = dS^T q, dq = dS k. P and dS are rounded to 16 bits where they are transposed.
void describe(Context::CudnnAttention::Backward& to, DType type, const AttentionShape& shape) {
  const Shapes s(shape);
  const cudnnDataType_t io = type_of(type);
  // Scores with keys as rows. Sizes stay, since both are T; the strides of the last two dimensions are
  // swapped.
  const Shape scores_across{{s.B, s.H, s.T, s.T}, {s.H * s.T * s.T, s.T * s.T, 1, s.T}};
  CudnnGraph& graph = to.graph;
  to.q = graph.array(io, s.packed());
  // Both are right operands of products over a head's columns: C/H is their second to last dimension.
  to.k = graph.array(io, s.packed().transposed());
  to.v = graph.array(io, s.packed().transposed());
  to.out = graph.array(io, s.out());
  to.dout = graph.array(io, s.out());
  to.logsumexp = graph.array(CUDNN_DATA_FLOAT, s.rows());
  to.dq = graph.array(io, s.packed());
  to.dk = graph.array(io, s.packed());
  to.dv = graph.array(io, s.packed());
  to.delta = graph.array(CUDNN_DATA_FLOAT, s.rows());
  to.dq_sums = graph.array(CUDNN_DATA_FLOAT, s.by_head());
  const Tensor scale = graph.number(shape.scale());
  const Tensor one = graph.number(1);

  const Shape products{{s.B, s.H, s.T, s.D}, {s.H * s.T * s.D, s.T * s.D, s.H * s.D, 1}};
  // delta = sum over the head's columns of dout * out, in a separate array.
  const Tensor dout_out = pointwise(graph, CUDNN_POINTWISE_MUL, products, to.dout, to.out);
  const Tensor delta = graph.between(CUDNN_DATA_FLOAT, s.rows());
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, delta, dout_out);
  // The scale of dropout, here 1: cuDNN's kernels require the operation.
  graph.pointwise(CUDNN_POINTWISE_MUL, to.delta, delta, one);

  // P, from the masked and scaled scores.
  const Tensor unscaled = graph.between(CUDNN_DATA_FLOAT, s.scores());
  graph.multiply(unscaled, to.q, to.k);
  const Tensor scaled = pointwise(graph, CUDNN_POINTWISE_MUL, s.scores(), unscaled, scale);
  const Tensor logarithms = pointwise(graph, CUDNN_POINTWISE_SUB, s.scores(), scaled, to.logsumexp);
  const Tensor weights = pointwise(graph, CUDNN_POINTWISE_EXP, s.scores(), causal(graph, logarithms, s));
  const Tensor weights_across = graph.between(io, scores_across);
  graph.reshape(weights_across, weights);
  graph.multiply(to.dv, weights_across, to.dout);

  // dP, then dS.
  const Tensor dweights = graph.between(CUDNN_DATA_FLOAT, s.scores());
  graph.multiply(dweights, to.dout, to.v);
  const Tensor above = pointwise(graph, CUDNN_POINTWISE_SUB, s.scores(), dweights, to.delta);
  const Tensor dscaled = pointwise(graph, CUDNN_POINTWISE_MUL, s.scores(), above, weights);
  const Tensor dscores = pointwise(graph, CUDNN_POINTWISE_MUL, s.scores(), dscaled, scale);
  const Tensor dscores_across = graph.between(io, scores_across);
  graph.reshape(dscores_across, dscores);
  graph.multiply(to.dk, dscores_across, to.q);

  // k as the right operand of dq = dS k: the untransposed shape again.
  const Tensor keys = graph.between(CUDNN_DATA_FLOAT, s.packed());
  graph.reshape(keys, to.k);
  graph.multiply(to.dq_sums, dscores, keys);
  // Rounded once, after all blocks of keys have been added.
  graph.pointwise(CUDNN_POINTWISE_IDENTITY, to.dq, to.dq_sums);
}

std::size_t aligned(std::size_t bytes) { return (bytes + kAligned - 1) / kAligned * kAligned; }

/// Offsets of the arrays of the backward pass in its scratch memory, in bytes, in this order: delta fp32
/// [B,H,T], dq_sums fp32 [B,H,T,C/H], then the workspace.
struct Room {
  explicit Room(const AttentionShape& s)
      : dq_sums(aligned(static_cast<std::size_t>(s.B * s.H * s.T) * sizeof(float))),
        workspace(dq_sums + aligned(static_cast<std::size_t>(s.B * s.T * s.C) * sizeof(float))) {}
  std::size_t dq_sums, workspace;  ///< where they begin; delta is at 0
};

void* at(void* base, std::size_t bytes) { return static_cast<std::byte*>(base) + bytes; }
// Start of q (0), k (1) or v (2) in an array [B,T,3C].
void* third_of(Ptr packed, std::int64_t third, const AttentionShape& s) {
  return at(packed.data, static_cast<std::size_t>(third * s.C) * size_of(packed.type));
}
/// cuDNN's interface has no pointers to const.
Ptr writable(ConstPtr p) { return {const_cast<void*>(p.data), p.type}; }

}  // namespace

Context::CudnnAttention::CudnnAttention(void* stream) {
  constexpr const char* kName = "attention";
  const CudnnLibrary& library = cudnn_library(kName);
  library.check(library.create(&handle), kName, "cudnnCreate");
  library.check(library.set_stream(handle, static_cast<cudaStream_t>(stream)), kName, "cudnnSetStream");
}
Context::CudnnAttention::~CudnnAttention() {
  forward_.clear();  // plans are destroyed before the objects they refer to
  backward_.clear();
  if (handle != nullptr) (void)cudnn_library("attention").destroy(handle);
}

template <class Plan>
Plan& Context::CudnnAttention::planned(std::map<Key, std::unique_ptr<Plan>>& plans, DType type,
                                       const AttentionShape& s) {
  // The first call of a shape makes the plan, later ones reuse it. A failed plan is not stored: the next call
  // tries again.
  std::unique_ptr<Plan>& known = plans[{type, s.B, s.T, s.C, s.H}];
  if (known == nullptr) {
    auto made = std::make_unique<Plan>();
    describe(*made, type, s);
    made->graph.plan(handle);
    known = std::move(made);
  }
  return *known;
}
Context::CudnnAttention::Forward& Context::CudnnAttention::forward(DType type, const AttentionShape& s) {
  return planned(forward_, type, s);
}
Context::CudnnAttention::Backward& Context::CudnnAttention::backward(DType type, const AttentionShape& s) {
  return planned(backward_, type, s);
}

bool cudnn_attention_fits(DType type, const AttentionShape& s) {
  return (type == DType::bf16 || type == DType::f16) && s.width() <= kWidest && s.width() % 8 == 0;
}

std::size_t cudnn_attention_scratch_bytes(const Context& on, DType type, const AttentionShape& s) {
  Context::CudnnAttention& plans = on.cudnn_attention();
  // Both passes share the scratch memory: they never overlap on a stream.
  const std::size_t forward = plans.forward(type, s).graph.workspace_bytes();
  return std::max(forward, Room(s).workspace + plans.backward(type, s).graph.workspace_bytes());
}

void cudnn_attention_forward(const Context& on, Ptr out, float* logsumexp, ConstPtr qkv,
                             const AttentionShape& s, void* scratch) {
  Context::CudnnAttention& plans = on.cudnn_attention();
  Context::CudnnAttention::Forward& to = plans.forward(out.type, s);
  const Ptr in = writable(qkv);
  const CudnnGraph::Given arrays[] = {{to.q, third_of(in, 0, s)},
                                      {to.k, third_of(in, 1, s)},
                                      {to.v, third_of(in, 2, s)},
                                      {to.logsumexp, logsumexp},
                                      {to.out, out.data}};
  to.graph.run(plans.handle, arrays, scratch);
}

void cudnn_attention_backward(const Context& on, Ptr dqkv, ConstPtr dout, ConstPtr out, ConstPtr qkv,
                              const float* logsumexp, const AttentionShape& s, void* scratch) {
  Context::CudnnAttention& plans = on.cudnn_attention();
  Context::CudnnAttention::Backward& to = plans.backward(dqkv.type, s);
  const Room room(s);
  const Ptr in = writable(qkv);
  const CudnnGraph::Given arrays[] = {{to.q, third_of(in, 0, s)},
                                      {to.k, third_of(in, 1, s)},
                                      {to.v, third_of(in, 2, s)},
                                      {to.out, writable(out).data},
                                      {to.dout, writable(dout).data},
                                      {to.logsumexp, const_cast<float*>(logsumexp)},
                                      {to.dq, third_of(dqkv, 0, s)},
                                      {to.dk, third_of(dqkv, 1, s)},
                                      {to.dv, third_of(dqkv, 2, s)},
                                      {to.delta, scratch},
                                      {to.dq_sums, at(scratch, room.dq_sums)}};
  to.graph.run(plans.handle, arrays, at(scratch, room.workspace));
}

}  // namespace shardscope::kernels::cuda
