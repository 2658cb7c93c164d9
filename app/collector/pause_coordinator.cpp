#include "app/collector/pause_coordinator.h"

#include <algorithm>
#include <utility>

namespace shardscope::collector {

using instrumentation::GateKeeper;
using instrumentation::GateKind;
using instrumentation::StopRule;
using Kind = wire::RankCommand::Kind;

namespace {
/// Answers to phase 1 are sent by a thread that never blocks: a rank without one after this time has failed.
constexpr double kPrepareTimeout_s = 5;
constexpr const char* kStoppedBetweenSteps = "; the run is stopped between steps";

std::string numbered_gate(instrumentation::GateKind kind, std::uint32_t id) {
  return "a gate of kind " + std::to_string(static_cast<int>(kind)) + " and id " + std::to_string(id);
}
}  // namespace

wire::RankCommand PauseCoordinator::numbered(wire::RankCommand command) {
  command.id = ++last_id_;
  return command;
}

void PauseCoordinator::broadcast(wire::RankCommand command) {
  for (const auto& [rank, state] : ranks_) {
    if (state.up && !state.finished) outgoing_.push_back({rank, numbered(command)});
  }
}

std::vector<PauseCoordinator::Outgoing> PauseCoordinator::take_outgoing() {
  return std::exchange(outgoing_, {});
}

bool PauseCoordinator::complete() const {
  return world_ > 0 &&
         static_cast<std::size_t>(std::count_if(ranks_.begin(), ranks_.end(), [](const auto& entry) {
           return entry.second.up && !entry.second.finished;
         })) == world_;
}

std::string PauseCoordinator::missing_ranks() const {
  for (std::uint32_t rank = 0; rank < std::max<std::uint32_t>(world_, 1); ++rank) {
    const auto it = ranks_.find(rank);
    if (it != ranks_.end() && it->second.finished) return "rank " + std::to_string(rank) + " has finished";
    if (it != ranks_.end() && it->second.up) continue;
    const bool known = it != ranks_.end() && !it->second.why_down.empty();
    return "rank " + std::to_string(rank) + " " + (known ? it->second.why_down : "is not connected");
  }
  return "no rank is connected";
}

double PauseCoordinator::lease_left(double now_s) const {
  return std::max(0.0, lease_s_ - (now_s - last_heartbeat_s_));
}

void PauseCoordinator::rank_up(std::uint32_t rank) {
  ranks_[rank].up = true;
  ranks_[rank].why_down.clear();
  // A process that was started again has the level of its configuration.
  if (detail_) outgoing_.push_back({rank, numbered(command_of(*detail_))});
}

wire::RankCommand PauseCoordinator::command_of(instrumentation::Detail detail) {
  wire::RankCommand command;
  command.kind = Kind::set_detail;
  command.detail = detail;
  return command;
}

void PauseCoordinator::rank_down(std::uint32_t rank, const std::string& why, double /*now_s*/) {
  Rank& state = ranks_[rank];
  const bool was_up = state.up;
  if (was_up) state = {};
  state.why_down = why;
  if (!was_up) return;
  if (state_ != State::running)
    resume_all("rank " + std::to_string(rank) + " " + why + ": the others were resumed");
}

void PauseCoordinator::rank_finished(std::uint32_t rank, double /*now_s*/) {
  Rank& state = ranks_[rank];
  if (state.finished) return;
  state.finished = true;
  if (state_ != State::running)
    resume_all("rank " + std::to_string(rank) + " has finished: the others were resumed");
}

void PauseCoordinator::resume_all(const std::string& note) {
  wire::RankCommand go;
  go.kind = Kind::resume;
  go.lease_s = lease_s_;
  broadcast(go);
  for (auto& [rank, state] : ranks_) {
    state.at.holding = false;
    floor_ = std::max(floor_, state.at.number);
    step_floor_ = std::max(step_floor_, state.at.steps);
  }
  state_ = State::running;
  after_pause_.reset();
  note_ = note;
}

void PauseCoordinator::ranks_differ(const std::string& how) {
  differ_ = true;
  how_they_differ_ = how;
  // Ranks may hold before the events arrive that say which gate was the first to differ.
  if (by_step_ && state_ != State::running) note_ = how + kStoppedBetweenSteps;
}

void PauseCoordinator::fall_back(const std::string& how, double now_s) {
  const std::optional<StopRule> after = after_pause_;
  resume_all({});
  ranks_differ(how_they_differ_.empty() ? how : how_they_differ_);
  // A rule that stops where gates differ would only fail in the same way again.
  if (after && (after->kind == StopRule::Kind::step || after->kind == StopRule::Kind::run_to_step))
    after_pause_ = after;
  start_pause(now_s);
}

void PauseCoordinator::start_pause(double now_s) {
  wire::RankCommand prepare;
  prepare.kind = Kind::prepare_pause;
  prepare.lease_s = lease_left(now_s);
  for (auto& [rank, state] : ranks_) state.prepared.reset();
  by_step_ = differ_;
  first_hold_s_ = 0;
  if (by_step_) note_ = how_they_differ_ + kStoppedBetweenSteps;
  prepare_id_ = last_id_;
  broadcast(prepare);
  renewed_s_ = now_s;
  phase_began_s_ = now_s;
  state_ = State::preparing;
}

void PauseCoordinator::prepared(std::uint32_t rank, const wire::Prepared& answer, double now_s) {
  // An answer to an earlier, abandoned pause does not count for this one.
  if (state_ != State::preparing || answer.command <= prepare_id_) return;
  ranks_[rank].prepared = instrumentation::GateKeeper::Counts{answer.gate, answer.steps};
  if (!complete()) return;
  std::uint64_t largest = 0;
  for (const auto& [id, state] : ranks_) {
    if (!state.prepared) return;
    largest = std::max(largest, by_step_ ? state.prepared->steps : state.prepared->gates);
  }
  target_ = largest + 1;
  wire::RankCommand hold;
  hold.kind = Kind::hold_at;
  hold.gate = target_;
  hold.by_step = by_step_;
  hold.lease_s = lease_left(now_s);
  broadcast(hold);
  renewed_s_ = now_s;
  phase_began_s_ = now_s;
  state_ = State::moving;
}

void PauseCoordinator::position(std::uint32_t rank, const wire::Position& position, double now_s) {
  Rank& state = ranks_[rank];
  // A position sent before the rank answered phase 1 (over the same connection, in order) is about an earlier
  // pause.
  const bool about_this = state.prepared.has_value() || state_ == State::paused;
  const bool expired = about_this && state.seen && position.lease_expirations > state.lease_expirations;
  state.seen = true;
  state.lease_expirations = position.lease_expirations;
  state.at = position.position;
  if (expired && state_ != State::running) {
    resume_all("rank " + std::to_string(rank) + " resumed by itself: no viewer renewed the pause");
    return;
  }
  // Only a hold can complete a pause: positions of running ranks, which connected ranks send every second, do
  // not cause an iteration over all ranks.
  if (state.at.holding) check_holds(now_s);
}

bool PauseCoordinator::holds(const Rank& rank) const {
  // A position sent before the rank received the last command is still of the hold before that: not above
  // the floor. In phase 2 only the target counts.
  if (!rank.at.holding) return false;
  const bool stepwise = by_step_ && state_ == State::moving;
  const std::uint64_t at = stepwise ? rank.at.steps : rank.at.number;
  if (at <= (stepwise ? step_floor_ : floor_)) return false;
  return state_ != State::moving || at == target_;
}

std::string PauseCoordinator::difference() const {
  const auto& [first, here] = *ranks_.begin();
  for (const auto& [rank, there] : ranks_) {
    // Equal numbers are not enough: where ranks pass different gates the same number is another place. For
    // gates between steps the numbers are not compared.
    const bool alike = there.at.kind == here.at.kind && there.at.id == here.at.id &&
                       (by_step_ || there.at.number == here.at.number);
    if (alike) continue;
    const auto place = [&](const instrumentation::GateKeeper::Position& at) {
      return (gate_name_ ? gate_name_(at.kind, at.id) : numbered_gate(at.kind, at.id)) + " (gate " +
             std::to_string(at.number) + ")";
    };
    return "ranks pass different gates: rank " + std::to_string(first) + " is at " + place(here.at) +
           ", rank " + std::to_string(rank) + " at " + place(there.at);
  }
  return {};
}

bool PauseCoordinator::between_same_steps() const {
  const GateKeeper::Position& here = ranks_.begin()->second.at;
  return here.kind == GateKind::step && std::all_of(ranks_.begin(), ranks_.end(), [&](const auto& entry) {
           const GateKeeper::Position& there = entry.second.at;
           return there.kind == here.kind && there.id == here.id && there.steps == here.steps;
         });
}

void PauseCoordinator::check_holds(double now_s) {
  if (state_ == State::preparing || state_ == State::paused || !complete()) return;
  std::uint64_t gate = 0;
  std::size_t holding = 0;
  for (const auto& [rank, state] : ranks_) {
    if (!holds(state)) continue;
    ++holding;
    gate = std::max(gate, state.at.number);
  }
  if (holding < ranks_.size()) {
    if (holding == 0) {
      first_hold_s_ = 0;
    } else if (first_hold_s_ == 0) {
      first_hold_s_ = now_s;
    }
    return;
  }
  if (const std::string how = difference(); !how.empty()) {
    if (!by_step_ && between_same_steps()) {
      // Here every rank is where a pause of ranks that differ would hold it, whatever their numbers.
      by_step_ = true;
      note_ = (how_they_differ_.empty() ? how : how_they_differ_) + kStoppedBetweenSteps;
      hold_all_at(gate, now_s);
    } else if (by_step_ || state_ == State::running) {
      resume_all(how + ": resumed");
    } else {
      fall_back(how, now_s);
    }
    return;
  }
  if (!by_step_) note_.clear();
  hold_all_at(gate, now_s);
}

void PauseCoordinator::hold_all_at(std::uint64_t gate, double now_s) {
  // Also from `running`: a restarted collector finds the run held by its predecessor.
  gate_ = gate;
  state_ = State::paused;
  if (after_pause_) {
    const StopRule rule = *after_pause_;
    resume_with(rule, now_s);
  }
}

void PauseCoordinator::resume_with(StopRule rule, double now_s) {
  wire::RankCommand go;
  go.kind = Kind::resume;
  go.rule = rule;
  go.lease_s = lease_left(now_s);
  // All ranks hold at one gate between steps: from here on they number gates alike.
  if (by_step_) {
    go.gate = alike_from_ = gate_;
    differ_ = by_step_ = false;
    how_they_differ_.clear();
  }
  broadcast(go);
  floor_ = gate_;
  for (auto& [rank, state] : ranks_) {
    state.at.holding = false;
    step_floor_ = std::max(step_floor_, state.at.steps);
  }
  first_hold_s_ = 0;
  after_pause_.reset();
  renewed_s_ = now_s;
  state_ = rule.kind == StopRule::Kind::never ? State::running : State::running_to_rule;
  note_.clear();
}

void PauseCoordinator::command(std::uint64_t viewer, const wire::ViewCommand& command, double now_s) {
  using Ask = wire::ViewCommand::Kind;
  if (command.kind == Ask::set_detail) {
    detail_ = command.detail;
    broadcast(command_of(command.detail));
    note_.clear();
    return;
  }
  if (command.kind == Ask::ask) {
    wire::RankCommand ask;
    ask.kind = Kind::ask;
    ask.request = command.request;
    broadcast(ask);
    return;
  }
  const bool stops = command.kind == Ask::pause || command.rule.kind != StopRule::Kind::never;
  if (stops && !complete()) {
    note_ = "cannot pause: " + missing_ranks();
    return;
  }
  controller_ = viewer;
  last_heartbeat_s_ = now_s;
  if (command.kind == Ask::pause) {
    if (state_ == State::running || state_ == State::running_to_rule) {
      after_pause_.reset();
      note_.clear();
      start_pause(now_s);
    }
    return;
  }
  switch (state_) {
    case State::paused:
      resume_with(command.rule, now_s);
      return;
    case State::preparing:
    case State::moving:
      if (stops) {
        after_pause_ = command.rule;
      } else {
        resume_all({});
      }
      return;
    case State::running:
    case State::running_to_rule:
      if (stops) {
        // A rule counts from the same gate on every rank, so the ranks are paused at one first.
        after_pause_ = command.rule;
        start_pause(now_s);
      } else if (state_ == State::running_to_rule) {
        resume_all({});
      }
      return;
  }
}

void PauseCoordinator::heartbeat(std::uint64_t viewer, double now_s) {
  if (viewer == controller_ && now_s - last_heartbeat_s_ <= lease_s_)
    last_heartbeat_s_ = std::max(last_heartbeat_s_, now_s);
}

void PauseCoordinator::tick(double now_s) {
  if (state_ == State::running) return;
  if (state_ == State::preparing && now_s - phase_began_s_ > kPrepareTimeout_s) {
    std::string silent;
    for (const auto& [rank, state] : ranks_) {
      if (!state.prepared) silent += (silent.empty() ? "" : ", ") + std::to_string(rank);
    }
    resume_all("the pause was cancelled: no answer from rank " + silent);
    return;
  }
  const bool awaits_ranks = state_ == State::running_to_rule || (state_ == State::moving && !by_step_);
  if (awaits_ranks && first_hold_s_ != 0 && now_s - first_hold_s_ > gate_timeout_s_ && complete()) {
    std::string holding, away;
    std::size_t counts[2]{};
    for (const auto& [rank, state] : ranks_) {
      std::string& list = holds(state) ? holding : away;
      ++counts[holds(state) ? 0 : 1];
      if (list.size() < 64) list += (list.empty() ? "" : ", ") + std::to_string(rank);
    }
    holding = counts[0] == 1 ? "rank " + holding + " holds" : "ranks " + holding + " hold";
    away = (counts[1] == 1 ? "rank " : "ranks ") + away;
    fall_back(holding + " and " + away + " did not come there", now_s);
    return;
  }
  const double left = lease_left(now_s);
  if (left <= 0) {
    // Ranks resume by themselves when their lease ends; this also resumes those with a little left.
    if (controller_ != 0) resume_all("resumed: the viewer that paused the run has gone");
    return;
  }
  // Leases count from the viewer's last heartbeat, so that its silence costs one lease, not two.
  if (now_s - renewed_s_ >= lease_s_ / 8 && last_heartbeat_s_ > renewed_s_) {
    wire::RankCommand renew;
    renew.kind = Kind::renew_lease;
    renew.lease_s = left;
    broadcast(renew);
    renewed_s_ = now_s;
  }
}

ControlState PauseCoordinator::control(double now_s) const {
  ControlState out;
  out.pausing = state_ == State::preparing || state_ == State::moving;
  out.paused = state_ == State::paused;
  out.gate = out.paused ? gate_ : 0;
  out.lease_left_s = state_ == State::running ? 0 : lease_left(now_s);
  out.note = note_;
  return out;
}

}  // namespace shardscope::collector
