// State of the CUDA kernels of one stream: the stream, a cuBLASLt handle and a workspace. No CUDA type
// appears here, so that the rest of the project compiles without the toolkit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace shardscope::kernels::cuda {

/// One per stream. Kernels on a stream run in order, so they can share one workspace.
///
/// Data in the workspace is valid until the next call on the stream; nothing is kept there between
/// operations. A context is used by one thread at a time.
class Context {
 public:
  /// cuBLASLt's split-k products on Hopper use up to 32 MiB; reductions use the same memory.
  static constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

  /// `stream`: a cudaStream_t of the current device. `workspace`: kWorkspaceBytes of device memory, aligned
  /// to 256; both are owned by the caller and must outlive this object.
  Context(void* stream, void* workspace);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] void* stream() const noexcept { return stream_; }
  [[nodiscard]] void* workspace() const noexcept { return workspace_; }
  [[nodiscard]] int multiprocessors() const noexcept { return multiprocessors_; }
  /// Largest shared memory of a block, bytes.
  [[nodiscard]] std::size_t shared_bytes_limit() const noexcept { return shared_bytes_limit_; }
  /// Whether to fuse GELUs into the epilogues of products: on compute capability 9 and 10. Others measured a
  /// gain there (H100: karpathy/llm.c #653; H200 and B200: sgl-project/sglang #28168, #34350) and a loss on
  /// 8.9 (llm.c #338) and 12 (sglang #34350); nothing is known about 8.0.
  [[nodiscard]] bool gelu_in_products() const noexcept { return gelu_in_products_; }

  struct Products;  ///< linear.cpp: handle and the algorithm chosen for each shape
  [[nodiscard]] Products& products() const noexcept { return *products_; }

  /// Attention kernels for 16-bit types if both fit: environment variable SHARDSCOPE_ATTENTION when the
  /// context is made, `own` if it is not set.
  enum class Attention : std::uint8_t { own, cudnn };
  [[nodiscard]] Attention attention() const noexcept { return attention_; }
  struct CudnnAttention;  ///< cudnn_attention.h: handle and the plan of each shape
  /// Created on first use.
  [[nodiscard]] CudnnAttention& cudnn_attention() const;

 private:
  void* stream_;
  void* workspace_;
  int multiprocessors_ = 0;
  std::size_t shared_bytes_limit_ = 0;
  bool gelu_in_products_ = false;
  std::unique_ptr<Products> products_;
  Attention attention_ = Attention::own;
  mutable std::unique_ptr<CudnnAttention> cudnn_attention_;
};

}  // namespace shardscope::kernels::cuda
