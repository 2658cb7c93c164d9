// Gates: the places where a run can be paused. Every rank passes the same gates in the same order, so a
// gate number means the same place on all of them.
//
// [Note: pausing without an open collective]
// A pause is in two phases. First every rank is told to hold at its next gate and answers with the number
// of gates it may have passed. The collector then names the gate after the largest of them, which no rank
// has passed, and each rank runs on to exactly that one. All ranks have then issued the same collectives,
// so those complete; the rank drains its streams (`on_hold`) before it reports that it holds.
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
  /// The hot path: one increment, two loads, and a `gate` event at detail `modules`. Holds here when told
  /// to. Always from the same thread (the one that issues the run's collectives).
  void pass(GateKind kind, std::uint32_t id) {
    const std::uint64_t number = passed_.fetch_add(1, std::memory_order_seq_cst) + 1;
    if (enabled(Detail::modules)) emit_gate(number, kind, id);
    if (armed_.load(std::memory_order_seq_cst)) hold_or_pass(number, kind, id);
  }
  [[nodiscard]] std::uint64_t passed() const noexcept { return passed_.load(); }

  // Control side (the publisher's control thread).
  [[nodiscard]] std::uint64_t prepare_pause();  ///< phase 1; returns gates that may have been passed
  void hold_at(std::uint64_t gate_number);      ///< phase 2
  void resume(StopRule rule);
  void renew_lease(double seconds);
  /// Lets a holding rank go and never holds again until enable(): the run is ending or failing.
  void release_for_shutdown();
  void enable();
  /// Called, from either side, whenever position() changed. Must not call back into the gate keeper.
  void set_on_change(std::function<void()> on_change);
  /// How often this rank has resumed by itself because its lease ran out.
  [[nodiscard]] std::uint64_t lease_expirations() const noexcept;
  struct Position {
    bool holding = false;
    std::uint64_t number = 0;
    GateKind kind{};
    std::uint32_t id = 0;
  };
  [[nodiscard]] Position position() const;

 private:
  static void emit_gate(std::uint64_t number, GateKind kind, std::uint32_t id) noexcept;
  void hold_or_pass(std::uint64_t number, GateKind kind, std::uint32_t id);
  std::atomic<std::uint64_t> passed_{0};
  std::atomic<bool> armed_{false};
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::instrumentation
