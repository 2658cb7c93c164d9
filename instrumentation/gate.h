// Gates: the places where a run can be paused. Every rank passes the same gates in the same order, so a
// gate number means the same place on all of them.
//
// [Note: pausing without an open collective]
// A pause is in two phases. First every rank is asked to hold at its next gate and answers with the number
// of gates it may have passed. The collector then names the gate after the largest of them, which no rank
// has passed, and each rank runs on to exactly that one. All ranks have then issued the same collectives,
// so those complete; the rank drains its streams (`on_hold`) before it reports that it holds.
//
// [Note: gates that differ]
// Stages of a pipeline, experts and an evaluation on rank 0 alone pass gates that others do not: there a
// number means nothing. Gates between steps are passed by all, so they are counted once more, apart. Where
// the collector finds that ranks differ it names one of those instead; and when the ranks go on from one,
// they number their gates alike again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "instrumentation/emitter.h"

namespace shardscope::instrumentation {

/// Where a resumed rank stops next, evaluated alike on every rank. `count` gates that match are let
/// through before it holds (0: at the first match).
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

/// A plain class so that tests can play many ranks; a training process uses instance().
class GateKeeper {
 public:
  GateKeeper();
  ~GateKeeper();
  GateKeeper(const GateKeeper&) = delete;
  GateKeeper& operator=(const GateKeeper&) = delete;
  static GateKeeper& instance();
  /// Called once: drains the device so that nothing is in progress while the rank holds.
  void set_on_hold(std::function<void()> on_hold);
  /// Parameters of a module, for run_to_param. Given once before training.
  void set_module_params(std::function<bool(std::uint32_t module, std::uint32_t param)> uses);
  /// The hot path: one increment, two loads, and a `gate` event at detail `modules`. Holds here when asked
  /// to. Always from the same thread (the one that issues the run's collectives).
  void pass(GateKind kind, std::uint32_t id) {
    if (const Passed passed = count(kind, id); passed.armed) hold_or_go_on(passed.number, kind, id);
  }
  /// pass() in two halves: the first never waits; the second is called where the first says `armed`.
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
  /// Not 0 while a gate that is passed may be held; for callers that read it without a call.
  [[nodiscard]] const volatile std::int32_t* armed_flag() const noexcept {
    static_assert(std::atomic<std::int32_t>::is_always_lock_free &&
                  sizeof(std::atomic<std::int32_t>) == sizeof(std::int32_t));
    return reinterpret_cast<const volatile std::int32_t*>(&armed_);
  }

  // Control side (the publisher's control thread).
  /// Gates, and gates between steps, that may have been passed.
  struct Counts {
    std::uint64_t gates = 0, steps = 0;
  };
  [[nodiscard]] Counts prepare_pause();     ///< phase 1
  void hold_at(std::uint64_t gate_number);  ///< phase 2
  void hold_at_step(std::uint64_t number);  ///< phase 2, where ranks differ: of the gates between steps
  /// `renumber`, if not 0: the gate at which this rank holds has this number from now on.
  void resume(StopRule rule, std::uint64_t renumber = 0);
  void renew_lease(double seconds);
  /// Lets a holding rank go and never holds again until enable(): the run is ending or failing.
  void release_for_shutdown();
  void enable();
  /// In a child of fork(): no lock is taken, for it may be held by a thread that is not here.
  void never_hold() noexcept;
  /// Called, from either side, whenever position() changed. Must not call back into the gate keeper.
  void set_on_change(std::function<void()> on_change);
  /// How often this rank has resumed by itself because its lease ran out.
  [[nodiscard]] std::uint64_t lease_expirations() const noexcept;
  struct Position {
    bool holding = false;
    std::uint64_t number = 0;
    GateKind kind{};
    std::uint32_t id = 0;
    std::uint64_t steps = 0;  ///< gates between steps passed by then, this one included
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
