// A graph of operations that cuDNN fuses: described tensor by tensor, planned for the device once, run as
// often as wanted (cuDNN manual, "Graph API"; its backend API, NVIDIA's C++ frontend is not needed).
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

/// Owns one of cuDNN's descriptors. Every call throws KernelError with what cuDNN says.
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

/// Not shared between threads.
class CudnnGraph {
 public:
  struct Shape {
    std::array<std::int64_t, 4> sizes, strides;  ///< strides in elements
    /// The same numbers with the last two dimensions exchanged.
    [[nodiscard]] Shape transposed() const {
      return {{sizes[0], sizes[1], sizes[3], sizes[2]}, {strides[0], strides[1], strides[3], strides[2]}};
    }
  };
  using Tensor = std::int64_t;  ///< its unique id in the graph

  /// `kernel`: for messages, a literal.
  explicit CudnnGraph(const char* kernel);

  /// In device memory, aligned to 16 bytes.
  Tensor array(cudnnDataType_t type, const Shape& shape);
  /// Between operations, never in device memory.
  Tensor between(cudnnDataType_t type, const Shape& shape);
  Tensor number(float value);

  void multiply(Tensor c, Tensor a, Tensor b);  ///< c = a b, sums in fp32
  /// y = x, or x and b, in the way of `mode`; fp32 unless given.
  void pointwise(cudnnPointwiseMode_t mode, Tensor y, Tensor x, std::optional<Tensor> b = std::nullopt,
                 cudnnDataType_t compute = CUDNN_DATA_FLOAT);
  void select(Tensor y, Tensor x, Tensor otherwise, Tensor where);  ///< x where `where`, else `otherwise`
  void index(Tensor y, Tensor like, std::int64_t axis);             ///< each element's place along `axis`
  void reduce(cudnnReduceTensorOp_t by, Tensor y, Tensor x);        ///< along the dimensions that are 1 in y
  void reshape(Tensor y, Tensor x);

  /// Chooses how the device does it; what is described later is not in it. Throws KernelError where cuDNN has
  /// no way on this device.
  void plan(cudnnHandle_t handle);
  /// Device memory that run() needs, in bytes; after plan().
  [[nodiscard]] std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }
  struct Given {
    Tensor tensor;
    void* data;
  };
  /// Queues it on the handle's stream. `arrays`: every array() there is.
  void run(cudnnHandle_t handle, std::span<const Given> arrays, void* workspace);

 private:
  CudnnDescriptor& describe(cudnnDataType_t type, const Shape& shape);
  CudnnDescriptor& operation(cudnnBackendDescriptorType_t type);
  [[nodiscard]] const CudnnDescriptor& of(Tensor tensor) const {
    return tensors_[static_cast<std::size_t>(tensor - 1)];
  }
  CudnnDescriptor begin_pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute);
  CudnnDescriptor& pointwise_operation(const CudnnDescriptor& what, Tensor y, Tensor x);
  /// The first of the engines that cuDNN proposes which it can also plan; none: false.
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
  // Declared after what they refer to, so destroyed before it.
  std::optional<CudnnDescriptor> graph_, engine_, plan_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace shardscope::kernels::cuda
