// Events of a CUDA device. It has streams of both kinds, CUDA's and host threads, and an event may be
// recorded on either and waited for by either.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/device/cpu/stream.h"

namespace shardscope::device::cuda {

/// A pool of cudaEvent_t objects of one kind. Thread-safe; outlives its handles because they share it.
class EventPool : public std::enable_shared_from_this<EventPool> {
 public:
  /// `flags`: cudaEventDisableTiming and the like. `where` goes into errors.
  EventPool(unsigned flags, std::string where);
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  using Handle = std::shared_ptr<CUevent_st>;
  [[nodiscard]] Handle take();
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

 private:
  void give_back(cudaEvent_t event) noexcept;
  const unsigned flags_;
  const std::string where_;
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;
};

/// A recorded cudaEvent_t. It is never recorded again while it is referenced, so a waiter waits for exactly
/// this recording.
class CudaPoint final : public DevicePoint {
 public:
  /// `device`: the CUDA ordinal it was recorded on.
  CudaPoint(EventPool::Handle event, int device, std::string where)
      : event_(std::move(event)), device_(device), where_(std::move(where)) {}
  [[nodiscard]] bool reached() const override;
  void host_wait() const override;
  [[nodiscard]] cudaEvent_t event() const noexcept { return event_.get(); }

 private:
  EventPool::Handle event_;
  int device_;
  std::string where_;
};

class CudaEvent final : public CpuEvent {
 public:
  using CpuEvent::CpuEvent;
  [[nodiscard]] bool reached() const override { return point_ ? point_->reached() : CpuEvent::reached(); }
  void host_wait() override { return point_ ? point_->host_wait() : CpuEvent::host_wait(); }

 protected:
  [[nodiscard]] std::shared_ptr<const DevicePoint> device_point() const override { return point_; }
  void forget_device_point() override { point_.reset(); }

 private:
  friend class CudaStream;
  std::shared_ptr<const CudaPoint> point_;
};

}  // namespace shardscope::device::cuda
