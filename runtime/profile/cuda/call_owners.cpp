#include "runtime/profile/cuda/call_owners.h"

#include <atomic>
#include <optional>

#include "runtime/profile/cuda/cupti_api.h"
#include "runtime/profile/open_spans.h"

namespace shardscope::profile::cuda {
namespace {

struct ThreadSpans {
  OpenSpans open;
  KernelSpans kernels;
  PushedOwner pushed;
  std::uint64_t period = 0;  ///< period of recording for which `pushed` is valid
};
thread_local ThreadSpans t_spans;

/// 0 while nothing is recorded, else the number of the period.
std::atomic<std::uint64_t> g_period{0};
std::atomic<std::uint64_t> g_periods{0};

}  // namespace

bool note_event(const instrumentation::Event& event) {
  ThreadSpans& spans = t_spans;
  const bool changed = spans.open.note(event);
  const std::uint64_t period = g_period.load(std::memory_order_acquire);
  // The driver records every kernel: two more CUDA events around each would be redundant.
  const bool emits = spans.kernels.emits(event, period != 0);
  if (period == 0) return emits;
  if (changed || spans.period != period) {
    spans.period = period;
    const CuptiApi& api = *CuptiApi::find().api;
    constexpr auto kKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    spans.pushed.replace_with(
        owner_id(spans.open.innermost()),
        [&]() -> std::optional<std::uint64_t> {
          std::uint64_t last = 0;
          if (api.ActivityPopExternalCorrelationId(kKind, &last) != CUPTI_SUCCESS) return std::nullopt;
          return last;
        },
        [&](std::uint64_t id) { return api.ActivityPushExternalCorrelationId(kKind, id) == CUPTI_SUCCESS; });
  }
  return emits;
}

void begin_period() noexcept { g_period = ++g_periods; }
void end_period() noexcept { g_period = 0; }

}  // namespace shardscope::profile::cuda
