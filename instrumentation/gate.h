// Gates: the places where a run can be paused. Every rank passes the same gates in the same order, so a gate
// number denotes the same place on all ranks.
//
// [Note: pausing without an open collective]
// A pause has two phases. First every rank is asked to hold at its next gate and answers with the number of
// gates it may have passed. The collector then names the gate after the largest of these numbers, which no
// rank has passed, and each rank continues to exactly that one. All ranks have then issued the same
// collectives, so those complete; the rank drains its streams (`on_hold`) before it reports that it holds.
//
// [Note: gates that differ]
// Stages of a pipeline, experts and an evaluation on rank 0 alone pass gates that other ranks do not: there a
// number has no common meaning. All ranks pass the gates between steps, which are therefore counted
// separately as well. If the collector finds that ranks differ, it names one of those instead; when the ranks
// resume from it, they renumber their gates equally.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "instrumentation/emitter.h"

namespace shardscope::instrumentation {

/// Where a resumed rank stops next, evaluated equally on every rank. `count` matching gates are passed before
/// it holds (0: at the first match).
struct StopRule {
  enum class Kind : std::uint8_t {
    never,
    any_gate,
    module,
    micro_step,
    step,
    run_to_module,
    run_to_param,
    run_to_step,
    run_to_bucket,
    gate_number
  };
  Kind kind = Kind::never;
  std::uint32_t id = 0;  ///< module, parameter, step, bucket or gate number of the run_to_* kinds
  std::uint32_t count = 0;
};

/// A plain class, so that a test can have many ranks; a training process uses instance().
class GateKeeper {
 public:
  GateKeeper();
  ~GateKeeper();
  GateKeeper(const GateKeeper&) = delete;
  GateKeeper& operator=(const GateKeeper&) = delete;
  static GateKeeper& instance();
  /// Set once: drains the device so that no work is in progress while the rank holds.
  void set_on_hold(std::function<void()> on_hold);
  /// Whether a module uses a parameter, for run_to_param. Set once before training.
  void set_module_params(std::function<bool(std::uint32_t module, std::uint32_t param)> uses);
  /// The hot path: one increment, two loads, and a `gate` event at detail `modules`. Blocks here while held.
  /// Always called from the same thread (the one that issues the run's collectives).
  void pass(GateKind kind, std::uint32_t id) {
    if (const Passed passed = count(kind, id); passed.armed) hold_or_go_on(passed.number, kind, id);
  }
  /// pass() in two halves: the first never waits; call the second if the first returns `armed`.
  struct Passed {
    std::uint64_t number = 0;
    bool armed = false;
  };
  [[nodiscard]] Passed count(GateKind kind, std::uint32_t id) {
    const std::uint64_t number = passed_.fetch_add(1, std::memory_order_seq_cst) + 1;
    if (kind == GateKind::step) steps_passed_.fetch_add(1, std::memory_order_seq_cst);
    if (enabled(Detail::modules)) emit_gate(number, kind, id);
    return {number, armed_.load(std::memory_order_seq_cst) != 0};
  }
  void hold_or_go_on(std::uint64_t number, GateKind kind, std::uint32_t id);
  [[nodiscard]] std::uint64_t passed() const noexcept { return passed_.load(); }
  /// Not 0 while the next gate may hold; for callers that read it without a function call.
  [[nodiscard]] const volatile std::int32_t* armed_flag() const noexcept {
    static_assert(std::atomic<std::int32_t>::is_always_lock_free &&
                  sizeof(std::atomic<std::int32_t>) == sizeof(std::int32_t));
    return reinterpret_cast<const volatile std::int32_t*>(&armed_);
  }

  // Control side (the publisher's control thread).
  /// Number of gates, and of gates between steps, that may have been passed.
  struct Counts {
    std::uint64_t gates = 0, steps = 0;
  };
  [[nodiscard]] Counts prepare_pause();     ///< phase 1
  void hold_at(std::uint64_t gate_number);  ///< phase 2
  void hold_at_step(std::uint64_t number);  ///< phase 2, if ranks differ: number of a gate between steps
  /// `renumber`, if not 0: new number of the gate at which this rank holds.
  void resume(StopRule rule, std::uint64_t renumber = 0);
  void renew_lease(double seconds);
  /// Releases a holding rank; no gate holds until enable(): the run is ending or failing.
  void release_for_shutdown();
  void enable();
  /// For a child of fork(): takes no lock, because a thread that does not exist here may hold it.
  void never_hold() noexcept;
  /// Called on either thread after position() changed. Must not call back into the gate keeper.
  void set_on_change(std::function<void()> on_change);
  /// How often this rank resumed because its lease expired.
  [[nodiscard]] std::uint64_t lease_expirations() const noexcept;
  struct Position {
    bool holding = false;
    std::uint64_t number = 0;
    GateKind kind{};
    std::uint32_t id = 0;
    std::uint64_t steps = 0;  ///< gates between steps passed so far, including this one
  };
  [[nodiscard]] Position position() const;

 private:
  static void emit_gate(std::uint64_t number, GateKind kind, std::uint32_t id) noexcept;
  std::atomic<std::uint64_t> passed_{0}, steps_passed_{0};
  std::atomic<std::int32_t> armed_{0};
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::instrumentation
