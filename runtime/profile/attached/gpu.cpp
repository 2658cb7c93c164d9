#include "runtime/profile/attached/gpu.h"

#include <cuda.h>

#include <memory>
#include <mutex>
#include <optional>

#include "runtime/profile/cuda/call_owners.h"
#include "runtime/profile/cuda/record_thread.h"

namespace {

using namespace shardscope;
using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::StreamId;

shardscope_event to_c(const Event& e) noexcept {
  return {static_cast<std::uint16_t>(e.kind),
          static_cast<std::uint8_t>(e.stream),
          e.code,
          e.a,
          e.b,
          e.c,
          e.v0,
          e.v1};
}

/// Called on the emitting thread, before the event is stored.
void observe(const shardscope_event* e) {
  (void)profile::cuda::note_event(Event{0, static_cast<EventKind>(e->kind), static_cast<StreamId>(e->lane),
                                        e->code, e->a, e->b, e->c, e->v0, e->v1});
}

/// CUPTI's number of a stream of the current device.
std::optional<std::uint32_t> number_of(void* stream) {
  // The default stream of a context, whose number CUPTI does not return for the null handle (seen with 13.0).
  constexpr std::uint32_t kDefault = 7;
  const profile::cuda::CuptiApi* const api = profile::cuda::CuptiApi::find().api;
  std::uint32_t number = 0;
  if (api == nullptr) return std::nullopt;  // a period of recording says why
  if (stream == nullptr) stream = CU_STREAM_LEGACY;
  if (api->GetStreamIdEx(nullptr, static_cast<CUstream>(stream), 0, &number) == CUPTI_SUCCESS) return number;
  if (stream == CU_STREAM_LEGACY) return kDefault;
  return std::nullopt;
}

profile::cuda::RecordSink sink_of(shardscope_run* run) {
  return {.wanted = [] { return shardscope_enabled(SHARDSCOPE_DETAIL_KERNELS) != 0; },
          .emit_at =
              [](std::int64_t at_ns, const Event& event) {
                const shardscope_event record = to_c(event);
                shardscope_emit_at(at_ns, &record);
              },
          .message =
              [run](bool warning, const std::string& text) {
                shardscope_message(run, warning ? SHARDSCOPE_WARNING : SHARDSCOPE_INFO, text.c_str());
              },
          .name_id =
              [run](const std::string& name) {
                std::uint32_t id = SHARDSCOPE_NO_ID;
                shardscope_name_id(run, name.c_str(), &id);
                return id;
              }};
}

// Never destroyed: a process may end without stopping the thread.
std::mutex& mutex() {
  static auto* const one = new std::mutex;
  return *one;
}
std::unique_ptr<profile::cuda::RecordThread>& recorder() {
  static auto* const one = new std::unique_ptr<profile::cuda::RecordThread>;
  return *one;
}

}  // namespace

extern "C" {

SHARDSCOPE_API void shardscope_gpu_record(shardscope_run* run, void* compute) {
  const std::lock_guard lock(mutex());
  if (recorder() != nullptr || run == nullptr) return;
  const std::optional<std::uint32_t> number = number_of(compute);
  shardscope_observe(&observe);
  recorder() = std::make_unique<profile::cuda::RecordThread>(
      sink_of(run), [number](const profile::cuda::CuptiApi&, profile::GpuLanes& lanes) -> std::string {
        if (number) lanes.know(*number, StreamId::gpu_compute);
        return {};
      });
}

SHARDSCOPE_API void shardscope_gpu_suspend(void) {
  const std::lock_guard lock(mutex());
  if (recorder() != nullptr) recorder()->leave(true);
}

SHARDSCOPE_API void shardscope_gpu_resume(void) {
  const std::lock_guard lock(mutex());
  if (recorder() != nullptr) recorder()->leave(false);
}

SHARDSCOPE_API void shardscope_gpu_stop(void) {
  const std::lock_guard lock(mutex());
  if (recorder() == nullptr) return;
  shardscope_observe(nullptr);
  recorder().reset();
}

}  // extern "C"
