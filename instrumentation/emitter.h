// Emission, the cost that a training job pays: one wait-free push into the calling thread's ring, without
// lock, allocation, system call or string. A full ring counts the dropped event and returns.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "instrumentation/event_fields.h"
#include "instrumentation/ring.h"
#include "instrumentation/run_tables.h"

namespace shardscope::instrumentation {

/// Highest level of detail emitted now; relaxed read on the hot path. Below `steps`: nothing is emitted.
extern std::atomic<int> g_detail;

[[nodiscard]] inline bool enabled(Detail detail) noexcept {
  return static_cast<int>(detail) <= g_detail.load(std::memory_order_relaxed);
}

namespace detail {
/// The calling thread's ring; null before its first event. `__thread` and initial-exec: an access is one
/// instruction, without the wrapper call of an extern thread_local.
extern __thread Ring* t_ring __attribute__((tls_model("initial-exec")));
/// Registers the thread. Returns null if memory is short: the event counts as lost, the next one retries.
[[nodiscard]] Ring* ring_slow() noexcept;
}  // namespace detail

/// Pushes into this thread's ring with the current time. Registers the thread on its first call. Inline, so
/// that the event's fields are written straight into the ring: passed through memory, eight small stores
/// would have to be merged into wide loads, which costs more than everything else.
[[gnu::always_inline]] inline void emit(const Event& event) noexcept {
  Ring* ring = detail::t_ring;
  if (ring == nullptr) [[unlikely]] {
    ring = detail::ring_slow();
    if (ring == nullptr) return;
  }
  ring->push(event);
}
/// Same with a timestamp taken elsewhere (GPU streams), in nanoseconds of the monotonic clock.
inline void emit_at(std::int64_t monotonic_ns, const Event& event) noexcept {
  Ring* ring = detail::t_ring;
  if (ring == nullptr) [[unlikely]] {
    ring = detail::ring_slow();
    if (ring == nullptr) return;
  }
  ring->push_at(monotonic_ns, event);
}

/// emit() if the kind's level is enabled; `event` is constructed only then.
#define SHARDSCOPE_EMIT(detail, ...)                                                          \
  do {                                                                                        \
    if (::shardscope::instrumentation::enabled(detail)) {                                     \
      ::shardscope::instrumentation::emit(::shardscope::instrumentation::Event{__VA_ARGS__}); \
    }                                                                                         \
  } while (false)

/// Emits an event of a kind from its fields, if the kind's level is enabled.
template <EventKind kind>
[[gnu::always_inline]] inline void emit(const Fields<kind>& fields) noexcept {
  if (enabled(detail_of(kind))) emit(make<kind>(fields));
}
template <EventKind kind>
[[gnu::always_inline]] inline void emit(StreamId lane, const Fields<kind>& fields) noexcept {
  if (enabled(detail_of(kind))) emit(make<kind>(lane, fields));
}

// ---- the publisher ------------------------------------------------------------------------------------
/// Events emitted before a publisher existed, still in the rings: since when, and how many events the rings
/// had dropped by then.
struct PreattachBuffer {
  TickClock::Pair since;
  std::uint64_t dropped = 0;
};
struct PublisherOptions {
  std::string endpoint;  ///< collector, e.g. tcp://127.0.0.1:5711; empty: events are discarded
  std::string key_file;  ///< publishing key; empty: the file that SHARDSCOPE_KEY names, or none
  Detail detail = Detail::params;
  std::size_t ring_events = 1U << 16;   ///< per thread
  std::size_t queue_bytes = 64U << 20;  ///< limit of unsent batches while the collector is slow
  double linger_s = 5;                  ///< longest wait at the end for the collector to receive the rest
  std::optional<PreattachBuffer> kept;  ///< events already in the rings belong to this run
};

class GpuMonitor;

/// One per process: drains the rings, batches and sends events, answers the control channel (gate.h). The
/// destructor sends the remaining events within linger_s.
class Publisher {
 public:
  Publisher(const PublisherOptions& options, RunTables tables);
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  /// Replaces the tables, which may only grow. Any thread; not for the hot path.
  void tables(RunTables tables);
  /// Sends a message with a severity. Any thread; not for the hot path.
  void message(Severity severity, const std::string& text);
  /// Id of a kernel's name; equal names have equal ids.
  [[nodiscard]] std::uint32_t name_id(const std::string& name);
  /// The part of a name by which names are distinguished.
  [[nodiscard]] static std::string name_key(const std::string& name);
  /// Emits the state of this GPU when steps end, at most once a second; null: no longer. Any thread.
  void sample_gpu(std::unique_ptr<GpuMonitor> gpu);
  /// Reports the end of the run to the collector: exit code and last message.
  void finish(int exit_code, const std::string& text);
  [[nodiscard]] std::uint64_t dropped() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::instrumentation
