// Emission: what a training job pays. One wait-free push into the calling thread's own ring: no lock,
// allocation, system call or string. A full ring counts the drop and goes on.
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

/// Highest level emitted now; relaxed read on the hot path. Below `steps`: emission is off altogether.
extern std::atomic<int> g_detail;

[[nodiscard]] inline bool enabled(Detail detail) noexcept {
  return static_cast<int>(detail) <= g_detail.load(std::memory_order_relaxed);
}

namespace detail {
/// The calling thread's ring; none before its first event. `__thread` and initial-exec: an access is one
/// instruction, without the wrapper call that an extern thread_local has.
extern __thread Ring* t_ring __attribute__((tls_model("initial-exec")));
/// Registers the thread; once, or again and again when memory is short, which counts the event as lost.
[[nodiscard]] Ring* ring_slow() noexcept;
}  // namespace detail

/// Pushes into this thread's ring with the present time. Registers the thread on its first call. Inline,
/// so that the event's fields are written straight into the ring: through memory the processor would have
/// to join eight small writes into wide reads, which costs more than all the rest.
[[gnu::always_inline]] inline void emit(const Event& event) noexcept {
  Ring* ring = detail::t_ring;
  if (ring == nullptr) [[unlikely]] {
    ring = detail::ring_slow();
    if (ring == nullptr) return;
  }
  ring->push(event);
}
/// Same with a time taken elsewhere (GPU streams), in nanoseconds of the monotonic clock.
inline void emit_at(std::int64_t monotonic_ns, const Event& event) noexcept {
  Ring* ring = detail::t_ring;
  if (ring == nullptr) [[unlikely]] {
    ring = detail::ring_slow();
    if (ring == nullptr) return;
  }
  ring->push_at(monotonic_ns, event);
}

/// emit() if the kind's level is on. `event` is only built when it is.
#define SHARDSCOPE_EMIT(detail, ...)                                                          \
  do {                                                                                        \
    if (::shardscope::instrumentation::enabled(detail)) {                                     \
      ::shardscope::instrumentation::emit(::shardscope::instrumentation::Event{__VA_ARGS__}); \
    }                                                                                         \
  } while (false)

/// An event of a kind by its fields, if the kind's level is on.
template <EventKind kind>
[[gnu::always_inline]] inline void emit(const Fields<kind>& fields) noexcept {
  if (enabled(detail_of(kind))) emit(make<kind>(fields));
}
template <EventKind kind>
[[gnu::always_inline]] inline void emit(StreamId lane, const Fields<kind>& fields) noexcept {
  if (enabled(detail_of(kind))) emit(make<kind>(lane, fields));
}

// ---- the publisher ------------------------------------------------------------------------------------
/// What was emitted before there was a publisher and waits in the rings: since when, and how many events the
/// rings had dropped by then.
struct PreattachBuffer {
  TickClock::Pair since;
  std::uint64_t dropped = 0;
};
struct PublisherOptions {
  std::string endpoint;  ///< collector, e.g. tcp://127.0.0.1:5711; empty: events are discarded
  std::string key_file;  ///< publishing key; empty: the file that SHARDSCOPE_KEY names, or none
  Detail detail = Detail::params;
  std::size_t ring_events = 1U << 16;   ///< per thread
  std::size_t queue_bytes = 64U << 20;  ///< unsent batches kept when the collector is slow
  double linger_s = 5;                  ///< longest wait at the end for the collector to take the rest
  std::optional<PreattachBuffer> kept;  ///< what the rings hold is of this run
};

/// One per process: drains the rings, batches, sends; answers the control channel (gate.h). The
/// destructor sends what is left within linger_s.
class Publisher {
 public:
  Publisher(const PublisherOptions& options, RunTables tables);
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  /// What is known now; it continues what was. Any thread; not for the hot path.
  void tables(RunTables tables);
  /// A text with a severity, from any thread; not for the hot path.
  void message(Severity severity, const std::string& text);
  /// A name for kernel_begin; same text, same id.
  [[nodiscard]] std::uint32_t name_id(const std::string& name);
  /// The part of a name that distinguishes it from others.
  [[nodiscard]] static std::string name_key(const std::string& name);
  /// Ends the run for the collector: exit code and last message.
  void finish(int exit_code, const std::string& text);
  [[nodiscard]] std::uint64_t dropped() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::instrumentation
