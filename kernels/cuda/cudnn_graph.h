// A graph of operations that cuDNN fuses: described tensor by tensor, planned once for the device, run any
// number of times (cuDNN manual, "Graph API"; uses its backend API, without NVIDIA's C++ frontend).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cuda/cudnn_library.h"

namespace shardscope::kernels::cuda {

/// Owns one of cuDNN's descriptors. Every call throws KernelError with cuDNN's error text.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const CudnnLibrary&, const char* kernel, cudnnBackendDescriptorType_t);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t type) {
    set(name, CUDNN_TYPE_DATA_TYPE, 1, &type);
  }
  void set(cudnnBackendAttributeName_t name, std::int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
  void set(cudnnBackendAttributeName_t name, bool value) { set(name, CUDNN_TYPE_BOOLEAN, 1, &value); }
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& of);
  void finalize();
  [[nodiscard]] cudnnBackendDescriptor_t get() const noexcept { return descriptor_; }

 private:
  const CudnnLibrary& library_;
  const char* kernel_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

/// Not thread-safe.
class CudnnGraph {
 public:
  struct Shape {
    std::array<std::int64_t, 4> sizes, strides;  ///< strides in elements
    /// The same shape with the last two dimensions swapped.
    [[nodiscard]] Shape transposed() const {
      return {{sizes[0], sizes[1], sizes[3], sizes[2]}, {strides[0], strides[1], strides[3], strides[2]}};
    }
  };
  using Tensor = std::int64_t;  ///< its unique id in the graph

  /// `kernel`: a literal, used in messages.
  explicit CudnnGraph(const char* kernel);

  /// A tensor in device memory, aligned to 16 bytes.
  Tensor array(cudnnDataType_t type, const Shape& shape);
  /// A tensor between operations, never in device memory.
  Tensor between(cudnnDataType_t type, const Shape& shape);
  Tensor number(float value);

  void multiply(Tensor c, Tensor a, Tensor b);  ///< c = a b, sums in fp32
  /// y = mode(x), or mode(x, b); computed in fp32 by default.
  void pointwise(cudnnPointwiseMode_t mode, Tensor y, Tensor x, std::optional<Tensor> b = std::nullopt,
                 cudnnDataType_t compute = CUDNN_DATA_FLOAT);
  void select(Tensor y, Tensor x, Tensor otherwise, Tensor where);  ///< x where `where`, else `otherwise`
  void index(Tensor y, Tensor like, std::int64_t axis);             ///< each element's place along `axis`
  void reduce(cudnnReduceTensorOp_t by, Tensor y, Tensor x);        ///< along the dimensions that are 1 in y
  void reshape(Tensor y, Tensor x);

  /// Chooses an engine for the graph described so far. Throws KernelError if cuDNN has none on this
  /// device.
  void plan(cudnnHandle_t handle);
  /// Device memory for run(), in bytes; valid after plan().
  [[nodiscard]] std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }
  struct Given {
    Tensor tensor;
    void* data;
  };
  /// Queues the graph on the handle's stream. `arrays`: addresses of all array()s.
  void run(cudnnHandle_t handle, std::span<const Given> arrays, void* workspace);

 private:
  CudnnDescriptor& describe(cudnnDataType_t type, const Shape& shape);
  CudnnDescriptor& operation(cudnnBackendDescriptorType_t type);
  [[nodiscard]] const CudnnDescriptor& of(Tensor tensor) const {
    return tensors_[static_cast<std::size_t>(tensor - 1)];
  }
  CudnnDescriptor begin_pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute);
  CudnnDescriptor& pointwise_operation(const CudnnDescriptor& what, Tensor y, Tensor x);
  /// Uses the first engine proposed by cuDNN that can be planned; false if there is none.
  bool plan_one_of(cudnnBackendHeurMode_t mode);

  const char* kernel_;
  const CudnnLibrary& library_;
  std::deque<CudnnDescriptor> tensors_;  ///< by id - 1
  std::deque<CudnnDescriptor> parts_;    ///< what operations refer to
  std::deque<CudnnDescriptor> operations_;
  struct Number {
    Tensor tensor;
    float value;
  };
  std::deque<Number> numbers_;
  // Declared after the objects they refer to, so destroyed before them.
  std::optional<CudnnDescriptor> graph_, engine_, plan_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace shardscope::kernels::cuda
