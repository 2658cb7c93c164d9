// The collector's side of [Note: pausing without an open collective] (instrumentation/gate.h): decides which
// command each rank gets. Pure: no socket, no clock; the collector passes in messages and times of arrival.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/collector/viewer.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

namespace wire = instrumentation::wire;

class PauseCoordinator {
 public:
  /// A rank not holding `gate_timeout_s` after another one began to hold may be waiting for that one.
  explicit PauseCoordinator(double lease_s, double gate_timeout_s = 10)
      : lease_s_(lease_s), gate_timeout_s_(gate_timeout_s) {}

  // What happened. `now_s`: a monotonic clock in seconds.
  void set_world(std::uint32_t world) { world_ = world; }
  void rank_up(std::uint32_t rank);
  void rank_down(std::uint32_t rank, const std::string& why, double now_s);
  void rank_finished(std::uint32_t rank, double now_s);
  void prepared(std::uint32_t rank, const wire::Prepared& answer, double now_s);
  void position(std::uint32_t rank, const wire::Position& position, double now_s);
  void command(std::uint64_t viewer, const wire::ViewCommand& command, double now_s);
  void heartbeat(std::uint64_t viewer, double now_s);
  void tick(double now_s);
  /// Names gates in texts; without this function texts give kind and number.
  void set_gate_names(std::function<std::string(instrumentation::GateKind, std::uint32_t id)> names) {
    gate_name_ = std::move(names);
  }
  /// Ranks have passed different gates (gate_comparison.h): the next pause is at a gate between steps.
  void ranks_differ(const std::string& how);
  /// Gates up to this number are not compared between ranks; 0: all are.
  [[nodiscard]] std::uint64_t alike_from() const noexcept { return alike_from_; }

  struct Outgoing {
    std::uint32_t rank = 0;
    wire::RankCommand command;
  };
  /// Returns and removes the commands to send now, in order.
  [[nodiscard]] std::vector<Outgoing> take_outgoing();
  [[nodiscard]] ControlState control(double now_s) const;
  /// Gives a command of the collector itself the next number in the same sequence.
  [[nodiscard]] wire::RankCommand numbered(wire::RankCommand command);

 private:
  enum class State : std::uint8_t {
    running,          ///< no rank has a reason to stop
    preparing,        ///< phase 1: waiting for every rank's count of gates
    moving,           ///< phase 2: ranks run to gate `target_`
    running_to_rule,  ///< resumed with a rule: ranks run to the gate that it selects
    paused,           ///< every rank holds at `gate_`
  };
  struct Rank {
    bool up = false, finished = false;
    std::string why_down;  ///< predicate of a sentence; empty: it has never been up
    std::optional<instrumentation::GateKeeper::Counts> prepared;
    instrumentation::GateKeeper::Position at;  ///< last known
    std::uint64_t lease_expirations = 0;
    bool seen = false;  ///< lease_expirations is known
  };

  [[nodiscard]] bool complete() const;  ///< every rank of the world is up and not finished
  [[nodiscard]] std::string missing_ranks() const;
  void broadcast(wire::RankCommand command);
  [[nodiscard]] static wire::RankCommand command_of(instrumentation::Detail detail);
  void start_pause(double now_s);
  void resume_all(const std::string& note);
  void resume_with(instrumentation::StopRule rule, double now_s);
  void check_holds(double now_s);
  /// Whether a rank holds at the gate of the last command.
  [[nodiscard]] bool holds(const Rank& rank) const;
  /// Text for the user where ranks hold at different gates; else empty.
  [[nodiscard]] std::string difference() const;
  /// Whether all ranks, which hold, are at one gate between steps. Gates with other numbers can be.
  [[nodiscard]] bool between_same_steps() const;
  void hold_all_at(std::uint64_t gate, double now_s);
  /// The ranks cannot be paused at the target: pauses them at the next gate between steps instead.
  void fall_back(const std::string& how, double now_s);
  [[nodiscard]] double lease_left(double now_s) const;

  double lease_s_, gate_timeout_s_;
  std::uint32_t world_ = 0;
  std::map<std::uint32_t, Rank> ranks_;
  State state_ = State::running;
  std::uint64_t last_id_ = 0;
  std::uint64_t prepare_id_ = 0;
  double phase_began_s_ = 0;
  std::uint64_t target_ = 0;
  std::uint64_t gate_ = 0;
  std::uint64_t floor_ = 0;       ///< holds at or before it are from before the last resume,
  std::uint64_t step_floor_ = 0;  ///< and likewise of gates between steps
  bool by_step_ = false;          ///< `target_` counts gates between steps [Note: gates that differ]
  bool differ_ = false;           ///< numbers of gates mean other places on other ranks
  std::string how_they_differ_;
  std::uint64_t alike_from_ = 0;
  double first_hold_s_ = 0;  ///< when the first rank held at the present target; 0: none holds yet
  std::function<std::string(instrumentation::GateKind, std::uint32_t)> gate_name_;
  std::optional<instrumentation::StopRule> after_pause_;
  std::uint64_t controller_ = 0;      ///< the viewer whose heartbeats keep the pause
  double last_heartbeat_s_ = -1e300;  ///< of the controller
  double renewed_s_ = -1e300;
  /// Last set by a viewer or the recorder, for ranks that connect later.
  std::optional<instrumentation::Detail> detail_;
  std::string note_;
  std::vector<Outgoing> outgoing_;
};

}  // namespace shardscope::collector
