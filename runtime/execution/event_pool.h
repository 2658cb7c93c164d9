// A pool of device events: creating one may be a driver call, so returned events are reused.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/device/device.h"

namespace shardscope::execution {

class EventPool {
 public:
  enum class Kind : std::uint8_t { plain, timed };
  explicit EventPool(device::Device& device, Kind kind = Kind::plain) : device_(device), kind_(kind) {}

  [[nodiscard]] std::unique_ptr<device::Event> take() {
    if (free_.empty()) return kind_ == Kind::timed ? device_.make_timed_event() : device_.make_event();
    std::unique_ptr<device::Event> event = std::move(free_.back());
    free_.pop_back();
    return event;
  }
  /// `event` may still be waited for by streams: a wait refers to the recording at the time of the call.
  void give_back(std::unique_ptr<device::Event> event) { free_.push_back(std::move(event)); }

  /// Later work on `later` starts after everything queued on `earlier` so far.
  void order(device::Stream& earlier, device::Stream& later) {
    std::unique_ptr<device::Event> event = take();
    earlier.record(*event);
    later.wait(*event);
    give_back(std::move(event));
  }

 private:
  device::Device& device_;
  Kind kind_;
  std::vector<std::unique_ptr<device::Event>> free_;
};

}  // namespace shardscope::execution
