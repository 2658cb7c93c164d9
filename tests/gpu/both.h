// Arguments of kernels that exist on the CPU and on the GPU, and their comparison.
#pragma once

#include <cstring>
#include <functional>
#include <vector>

#include "tests/gpu/gpu.h"
#include "tests/kernels/support.h"

namespace shardscope::gpu {

using kernels::ConstPtr;
using kernels::DType;
using kernels::Exec;
using kernels::Ptr;
using kernels::Write;
using kernels::test::Array;
using kernels::test::close;
using kernels::test::Doubles;
using kernels::test::kAllTypes;
using kernels::test::random_doubles;
using kernels::test::unit_roundoff;

/// An argument that exists on both sides. `shift` elements away from any alignment, as parameters in a flat
/// buffer.
class Both {
 public:
  Both(device::Device& device, const Doubles& values, DType type, int shift = 0)
      : type_(type),
        shift_(static_cast<std::size_t>(shift) * size_of(type)),
        host_(values, type, 1),
        device_(device, shift_ + static_cast<std::size_t>(host_.size()) * size_of(type)) {
    upload(device);
  }
  Both(device::Device& device, std::int64_t n, DType type, int shift = 0)
      : Both(device, Doubles(static_cast<std::size_t>(n), 0.25), type, shift) {}

  [[nodiscard]] Ptr on(const Exec& exec) {
    if (exec.backend == kernels::Backend::cpu) return host_.ptr();
    return {static_cast<std::byte*>(device_.data()) + shift_, type_};
  }
  [[nodiscard]] float* floats(const Exec& exec) { return static_cast<float*>(on(exec).data); }
  [[nodiscard]] Array from_device() const {
    Array result(host_.size(), type_);
    device_.read(result.data(), shift_, static_cast<std::size_t>(host_.size()) * size_of(type_));
    return result;
  }
  [[nodiscard]] ::testing::AssertionResult same_bits() const {
    const Array got = from_device();
    if (got.same_bits(host_)) return ::testing::AssertionSuccess();
    for (std::int64_t i = 0; i < host_.size(); ++i) {
      if (std::memcmp(
              static_cast<const std::byte*>(got.data()) + static_cast<std::size_t>(i) * size_of(type_),
              static_cast<const std::byte*>(host_.data()) + static_cast<std::size_t>(i) * size_of(type_),
              size_of(type_)) != 0) {
        return ::testing::AssertionFailure()
               << "element " << i << ": CUDA " << got.get(i) << ", CPU " << host_.get(i);
      }
    }
    return ::testing::AssertionFailure();
  }
  [[nodiscard]] ::testing::AssertionResult near(double relative, double absolute) const {
    return close(from_device().doubles(), host_.doubles(), relative, absolute);
  }
  [[nodiscard]] const Array& host() const { return host_; }

 private:
  void upload(device::Device& device) {
    device.copy_async(static_cast<std::byte*>(device_.data()) + shift_, host_.data(),
                      static_cast<std::size_t>(host_.size()) * size_of(type_), device.compute());
    device.compute().synchronize();
  }
  DType type_;
  std::size_t shift_;
  Array host_;
  DeviceArray device_;
};

class CudaKernels : public OnGpu {
 protected:
  /// The operation on the CPU and on the GPU.
  void both(const std::function<void(const Exec&)>& operation) {
    operation(Exec{});
    device->compute().run(operation);
    device->compute().synchronize();
  }
};

}  // namespace shardscope::gpu
