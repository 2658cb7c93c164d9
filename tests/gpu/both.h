// Arguments of kernels that exist on the CPU and on the GPU, and their comparison.
#pragma once

#include <algorithm>
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
/// buffer. What lies before and behind it on the device must stay as it is.
class Both {
 public:
  Both(device::Device& device, const Doubles& values, DType type, int shift = 0)
      : type_(type),
        shift_(kGuard + static_cast<std::size_t>(shift) * size_of(type)),
        host_(values, type, 1),
        device_(device, shift_ + bytes() + kGuard) {
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
    std::vector<unsigned char> all(shift_ + bytes() + kGuard);
    device_.read(all.data(), 0, all.size());
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(shift_ + bytes());
    const auto guards =
        std::count(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shift_), kGuardByte) +
        std::count(end, all.end(), kGuardByte);
    EXPECT_EQ(static_cast<std::size_t>(guards), shift_ + kGuard) << "something was written outside the array";
    std::memcpy(result.data(), all.data() + shift_, bytes());
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
  static constexpr std::size_t kGuard = 256;  ///< keeps the alignment of what follows
  static constexpr unsigned char kGuardByte = 0xA5;
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(host_.size()) * size_of(type_); }
  void upload(device::Device& device) {
    std::vector<unsigned char> all(shift_ + bytes() + kGuard, kGuardByte);
    std::memcpy(all.data() + shift_, host_.data(), bytes());
    device.copy_async(device_.data(), all.data(), all.size(), device.compute());
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
