// What the tests of the GPU's records share: a recorder of the device, and what it emits.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "instrumentation/emitter.h"
#include "instrumentation/ring.h"
#include "runtime/device/cuda/stream.h"
#include "runtime/profile/gpu_recorder.h"
#include "runtime/profile/open_spans.h"
#include "tests/gpu/gpu.h"

namespace shardscope::gpu {

using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::GpuOwner;
using instrumentation::GpuWork;
using instrumentation::StreamId;
using profile::GpuRecorder;

class GpuActivity : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    instrumentation::g_detail = static_cast<int>(instrumentation::Detail::params);
    recorder = make();
    (void)events();
  }
  void TearDown() override {
    recorder.reset();
    instrumentation::g_detail = -1;
    (void)events();
  }

  std::unique_ptr<GpuRecorder> make() {
    return profile::record_gpu(*device, [this](const std::string& name) {
      const std::lock_guard lock(names_mutex);
      return names.try_emplace(name, static_cast<std::uint32_t>(names.size())).first->second;
    });
  }
  void set_detail(instrumentation::Detail detail) {
    instrumentation::g_detail = static_cast<int>(detail);
    recorder->flush();
  }
  /// What was emitted since the last call, times in nanoseconds.
  static std::vector<Event> events() {
    std::vector<Event> out;
    (void)instrumentation::RingRegistry::instance().drain(out);
    for (Event& event : out)
      event.kind =
          static_cast<EventKind>(static_cast<std::uint16_t>(event.kind) & ~instrumentation::kTimeIsNs);
    return out;
  }
  static std::vector<Event> of(const std::vector<Event>& all, EventKind kind, StreamId lane) {
    std::vector<Event> out;
    std::copy_if(all.begin(), all.end(), std::back_inserter(out),
                 [&](const Event& event) { return event.kind == kind && event.stream == lane; });
    return out;
  }
  /// `count` squared norms of `elems` floats on the compute stream.
  void launch(int count, std::int64_t elems) {
    if (!input)
      input = std::make_unique<DeviceArray>(*device, static_cast<std::size_t>(elems) * sizeof(float));
    if (!sum) sum = std::make_unique<DeviceArray>(*device, sizeof(double) + sizeof(std::uint32_t));
    auto* bytes = static_cast<std::byte*>(sum->data());
    for (int i = 0; i < count; ++i) {
      device->compute().run([&](const kernels::Exec& exec) {
        kernels::squared_norm(exec, reinterpret_cast<double*>(bytes),
                              reinterpret_cast<std::uint32_t*>(bytes + sizeof(double)),
                              {input->data(), kernels::DType::f32}, elems);
      });
    }
  }
  void finish() {
    device->synchronize();
    recorder->flush();
    recorder->flush();  // work waits one flush for its launch
  }

  std::unique_ptr<GpuRecorder> recorder;
  std::unique_ptr<DeviceArray> input, sum;
  std::mutex names_mutex;
  std::map<std::string, std::uint32_t> names;
};

}  // namespace shardscope::gpu
