// The C interface's hot path, and its gates.
#include <array>
#include <atomic>

#include "instrumentation/c_api/run.h"
#include "instrumentation/c_api/status.h"
#include "instrumentation/clock.h"
#include "instrumentation/emitter.h"

namespace shardscope::instrumentation::c_api {
namespace {

constexpr std::size_t kKinds = SHARDSCOPE_EVENT_LAST_ + 1;
static_assert(sizeof(shardscope_event) == 32);

std::atomic<std::uint64_t> g_invalid{0};
std::atomic_flag g_in_gate = ATOMIC_FLAG_INIT;
std::atomic<shardscope_observer> g_observer{nullptr};
std::atomic<bool> g_nccl_calls_reported{false};
thread_local std::uint32_t t_nccl_calls = SHARDSCOPE_NO_ID;

struct Levels {
  std::array<std::uint8_t, kKinds> of{};
  Levels() {
    for (std::size_t kind = 1; kind < kKinds; ++kind)
      of[kind] = static_cast<std::uint8_t>(detail_of(static_cast<EventKind>(kind)));
  }
};
const Levels g_levels;

/// Rejects events for which a collector would reject their whole batch; then checks the level of detail.
bool wanted(const shardscope_event& event) noexcept {
  const auto kind = static_cast<std::size_t>(event.kind);
  if (kind - 1 >= kKinds - 1 || event.lane >= kStreamCount) [[unlikely]] {
    g_invalid.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  return enabled(static_cast<Detail>(g_levels.of[kind]));
}

void require_gate(std::int32_t kind) {
  if (kind >= SHARDSCOPE_GATE_STEP && kind <= SHARDSCOPE_GATE_OPTIMIZER) return;
  throw Failure(SHARDSCOPE_INVALID_ARGUMENT,
                "gate kind is " + std::to_string(kind) + "; use a SHARDSCOPE_GATE_...");
}

/// Marks that a thread is in a gate; only one may be.
class InGate {
 public:
  InGate() {
    if (g_in_gate.test_and_set(std::memory_order_acquire))
      throw Failure(SHARDSCOPE_INVALID_STATE,
                    "another thread is in a gate: their order must be the same on every rank");
  }
  ~InGate() { g_in_gate.clear(std::memory_order_release); }
  InGate(const InGate&) = delete;
  InGate& operator=(const InGate&) = delete;
};

Event to_event(const shardscope_event& e) noexcept {
  return Event{
      0, static_cast<EventKind>(e.kind), static_cast<StreamId>(e.lane), e.code, e.a, e.b, e.c, e.v0, e.v1};
}

}  // namespace

std::uint64_t invalid_events() noexcept { return g_invalid.load(std::memory_order_relaxed); }
void count_invalid_event() noexcept { g_invalid.fetch_add(1, std::memory_order_relaxed); }

}  // namespace shardscope::instrumentation::c_api

using namespace shardscope::instrumentation;
using namespace shardscope::instrumentation::c_api;

extern "C" {

SHARDSCOPE_API int32_t shardscope_enabled(int32_t detail) {
  return detail >= SHARDSCOPE_DETAIL_STEPS && detail <= g_detail.load(std::memory_order_relaxed) ? 1 : 0;
}

SHARDSCOPE_API void shardscope_emit(const shardscope_event* event) {
  if (!wanted(*event)) return;
  if (const shardscope_observer observer = g_observer.load(std::memory_order_acquire)) observer(event);
  emit(to_event(*event));
}

SHARDSCOPE_API void shardscope_observe(shardscope_observer observer) {
  g_observer.store(observer, std::memory_order_release);
}

SHARDSCOPE_API void shardscope_nccl_calls(uint32_t sequence) {
  t_nccl_calls = sequence;
  if (!g_nccl_calls_reported.load(std::memory_order_relaxed))
    g_nccl_calls_reported.store(true, std::memory_order_release);
}

SHARDSCOPE_API int32_t shardscope_nccl_calls_of_thread(uint32_t* sequence) {
  if (!g_nccl_calls_reported.load(std::memory_order_acquire)) return 0;
  if (sequence != nullptr) *sequence = t_nccl_calls;
  return 1;
}

SHARDSCOPE_API void shardscope_emit_at(int64_t monotonic_ns, const shardscope_event* event) {
  // Nanoseconds since boot; 146 years suffice.
  if (monotonic_ns < 0 || monotonic_ns >= (std::int64_t{1} << 62)) {
    g_invalid.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (wanted(*event)) emit_at(monotonic_ns, to_event(*event));
}

SHARDSCOPE_API void shardscope_emit_many(const shardscope_event* events, const int64_t* monotonic_ns,
                                         size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (monotonic_ns != nullptr) {
      shardscope_emit_at(monotonic_ns[i], &events[i]);
    } else {
      shardscope_emit(&events[i]);
    }
  }
}

SHARDSCOPE_API int64_t shardscope_now_ns(void) { return monotonic_now_ns(); }

SHARDSCOPE_API shardscope_status shardscope_gate(int32_t kind, uint32_t id) {
  return guarded([&] {
    require_gate(kind);
    const InGate alone;
    GateKeeper::instance().pass(static_cast<GateKind>(kind), id);
  });
}

SHARDSCOPE_API int32_t shardscope_gate_pass(int32_t kind, uint32_t id, uint64_t* ticket) {
  bool armed = false;
  const shardscope_status status = guarded([&] {
    require_gate(kind);
    require(ticket != nullptr, "the place for the ticket is NULL");
    const InGate alone;
    const GateKeeper::Passed passed = GateKeeper::instance().count(static_cast<GateKind>(kind), id);
    *ticket = passed.number;
    armed = passed.armed;
  });
  return status == SHARDSCOPE_OK && armed ? 1 : 0;
}

SHARDSCOPE_API shardscope_status shardscope_gate_wait(int32_t kind, uint32_t id, uint64_t ticket) {
  return guarded([&] {
    require_gate(kind);
    const InGate alone;
    GateKeeper::instance().hold_or_go_on(ticket, static_cast<GateKind>(kind), id);
  });
}

SHARDSCOPE_API const volatile int32_t* shardscope_gate_flag(void) {
  return GateKeeper::instance().armed_flag();
}

}  // extern "C"
