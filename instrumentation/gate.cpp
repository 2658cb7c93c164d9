#include "instrumentation/gate.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "instrumentation/post.h"

namespace shardscope::instrumentation {

namespace {
using Clock = std::chrono::steady_clock;

/// Duration of a hold until a controller sets another.
constexpr std::chrono::seconds kFirstLease{10};

enum class Mode : std::uint8_t {
  free,       ///< no hold requested
  preparing,  ///< phase 1: wait at the next gate for phase 2
  hold_at,    ///< phase 2: hold at exactly `target`
  hold_step,  ///< phase 2 if ranks differ: hold at exactly this one of the gates between steps
  rule,       ///< hold at a gate that matches the rule
};

PauseCause cause_of(Mode mode, StopRule::Kind kind) noexcept {
  if (mode == Mode::hold_at || mode == Mode::hold_step) return PauseCause::user;
  switch (kind) {
    case StopRule::Kind::never:
    case StopRule::Kind::any_gate:
    case StopRule::Kind::module:
    case StopRule::Kind::micro_step:
    case StopRule::Kind::step:
      return PauseCause::step;
    case StopRule::Kind::run_to_module:
    case StopRule::Kind::run_to_param:
    case StopRule::Kind::run_to_step:
    case StopRule::Kind::run_to_bucket:
    case StopRule::Kind::gate_number:
      return PauseCause::breakpoint;
  }
  return PauseCause::user;
}
}  // namespace

struct GateKeeper::State {
  std::mutex mutex;
  std::condition_variable changed;
  Mode mode = Mode::free;
  std::uint64_t target = 0;
  StopRule rule;
  std::uint32_t to_let_through = 0;
  Clock::time_point lease_end{};
  bool shutdown = false;
  std::uint64_t commands = 0;  ///< number of resume, hold_at and shutdown commands, which end a hold
  Position position;
  std::atomic<std::uint64_t> lease_expirations{0};
  std::function<void()> on_hold;
  std::function<void()> on_change;
  std::function<bool(std::uint32_t, std::uint32_t)> uses;

  void notify() {
    if (on_change) on_change();
  }

  [[nodiscard]] bool matches(std::uint64_t number, GateKind kind, std::uint32_t id) const {
    const bool module_start = kind == GateKind::pre_forward || kind == GateKind::pre_backward;
    switch (rule.kind) {
      case StopRule::Kind::never:
        return false;
      case StopRule::Kind::any_gate:
        return true;
      case StopRule::Kind::module:
        return module_start;
      case StopRule::Kind::micro_step:
        return kind == GateKind::micro_step;
      case StopRule::Kind::step:
        return kind == GateKind::step;
      case StopRule::Kind::run_to_module:
        return module_start && id == rule.id;
      case StopRule::Kind::run_to_param:
        return module_start && uses && uses(id, rule.id);
      case StopRule::Kind::run_to_step:
        return kind == GateKind::step && id >= rule.id;
      case StopRule::Kind::run_to_bucket:
        return kind == GateKind::bucket && id == rule.id;
      case StopRule::Kind::gate_number:
        return number >= rule.id;
    }
    return false;
  }
};

GateKeeper::GateKeeper() : state_(std::make_unique<State>()) {}
GateKeeper::~GateKeeper() = default;

GateKeeper& GateKeeper::instance() {
  static auto* keeper = new GateKeeper;  // never destroyed: gates may be passed until the process exits
  return *keeper;
}

void GateKeeper::set_on_hold(std::function<void()> on_hold) {
  const std::lock_guard lock(state_->mutex);
  state_->on_hold = std::move(on_hold);
}

void GateKeeper::set_module_params(std::function<bool(std::uint32_t, std::uint32_t)> uses) {
  const std::lock_guard lock(state_->mutex);
  state_->uses = std::move(uses);
}

void GateKeeper::set_on_change(std::function<void()> on_change) {
  const std::lock_guard lock(state_->mutex);
  state_->on_change = std::move(on_change);
}

void GateKeeper::emit_gate(std::uint64_t number, GateKind kind, std::uint32_t id) noexcept {
  emit(make<EventKind::gate>({.gate = kind, .number = static_cast<std::uint32_t>(number), .id = id}));
}

void GateKeeper::hold_or_go_on(std::uint64_t number, GateKind kind, std::uint32_t id) {
  if (armed_.load(std::memory_order_relaxed) == 0) return;  // disarmed; a forked child takes no lock
  State& s = *state_;
  const std::uint64_t steps = steps_passed_.load(std::memory_order_relaxed);
  std::unique_lock lock(s.mutex);

  // Ends every wait: no viewer has renewed the lease, so this rank resumes and reports it.
  const auto lease_over = [&] {
    s.mode = Mode::free;
    armed_.store(0, std::memory_order_seq_cst);
    s.lease_expirations.fetch_add(1);
    s.position.holding = false;
    s.notify();
    post_message(Severity::warning, "the pause's lease ran out at gate " + std::to_string(number) +
                                        ": this rank has resumed by itself");
  };

  bool counted = false;  // a gate of a rule is counted once, even if this loop repeats
  for (;;) {
    if (s.shutdown || s.mode == Mode::free) return;
    if (s.mode == Mode::preparing) {
      // Not a hold yet: collectives may be open, so nothing is drained or reported.
      if (s.changed.wait_until(lock, s.lease_end) == std::cv_status::timeout && s.mode == Mode::preparing &&
          Clock::now() >= s.lease_end) {
        return lease_over();
      }
      continue;
    }
    const bool between_steps = s.mode == Mode::hold_step;
    if (between_steps && kind != GateKind::step) return;
    if (const std::uint64_t at = between_steps ? steps : number;
        (s.mode == Mode::hold_at || between_steps) && at != s.target) {
      if (at > s.target) {
        s.mode = Mode::free;
        armed_.store(0, std::memory_order_seq_cst);
        post_message(Severity::error, "asked to hold at gate " + std::to_string(s.target) +
                                          " but already at gate " + std::to_string(at) + ": running on");
      }
      return;
    }
    if (s.mode == Mode::rule) {
      if (counted || !s.matches(number, kind, id)) return;
      counted = true;
      if (s.to_let_through > 0) {
        --s.to_let_through;
        return;
      }
    }
    break;
  }

  const PauseCause cause = cause_of(s.mode, s.rule.kind);
  const std::uint64_t commands = s.commands;
  const std::function<void()> drain = s.on_hold;
  emit<EventKind::paused_begin>({.cause = cause, .gate_number = static_cast<std::uint32_t>(number)});
  if (drain) {
    lock.unlock();
    drain();
    lock.lock();
  }
  s.position = {true, number, kind, id, steps};
  s.notify();
  ResumeCause resumed = ResumeCause::user;
  // A new phase 1 keeps the rank here; phase 2 or a resume lets it continue.
  while (s.commands == commands && !s.shutdown) {
    if (s.changed.wait_until(lock, s.lease_end) == std::cv_status::timeout && Clock::now() >= s.lease_end &&
        s.commands == commands && !s.shutdown) {
      resumed = ResumeCause::lease_expired;
      break;
    }
  }
  if (s.shutdown) resumed = ResumeCause::shutdown;
  if (resumed == ResumeCause::lease_expired) {
    lease_over();
  } else {
    s.position.holding = false;
    s.notify();
  }
  lock.unlock();
  emit<EventKind::paused_end>({.cause = resumed, .gate_number = static_cast<std::uint32_t>(number)});
}

GateKeeper::Counts GateKeeper::prepare_pause() {
  const auto passed = [this] {
    return Counts{passed_.load(std::memory_order_seq_cst), steps_passed_.load(std::memory_order_seq_cst)};
  };
  const std::lock_guard lock(state_->mutex);
  if (state_->shutdown) return passed();
  if (state_->lease_end <= Clock::now()) state_->lease_end = Clock::now() + kFirstLease;
  state_->mode = Mode::preparing;
  // Order matters: every gate numbered above the count read here is passed after `armed_` was set, so it
  // reads `armed_` and waits. Both are sequentially consistent, as are the two accesses in pass().
  armed_.store(1, std::memory_order_seq_cst);
  return passed();
}

void GateKeeper::hold_at(std::uint64_t gate_number) {
  const std::lock_guard lock(state_->mutex);
  if (state_->shutdown) return;
  if (state_->mode != Mode::preparing) return;  // the lease expired meanwhile, or the rank was resumed
  state_->mode = Mode::hold_at;
  state_->target = gate_number;
  ++state_->commands;
  state_->changed.notify_all();
}

void GateKeeper::hold_at_step(std::uint64_t number) {
  const std::lock_guard lock(state_->mutex);
  if (state_->shutdown || state_->mode != Mode::preparing) return;
  state_->mode = Mode::hold_step;
  state_->target = number;
  ++state_->commands;
  state_->changed.notify_all();
}

void GateKeeper::resume(StopRule rule, std::uint64_t renumber) {
  const std::lock_guard lock(state_->mutex);
  if (state_->shutdown) return;
  // The thread that increments the count is waiting in the gate.
  if (renumber != 0 && state_->position.holding) passed_.store(renumber, std::memory_order_seq_cst);
  state_->mode = rule.kind == StopRule::Kind::never ? Mode::free : Mode::rule;
  state_->rule = rule;
  state_->to_let_through = rule.count;
  armed_.store(state_->mode != Mode::free ? 1 : 0, std::memory_order_seq_cst);
  ++state_->commands;
  state_->changed.notify_all();
}

void GateKeeper::renew_lease(double seconds) {
  const std::lock_guard lock(state_->mutex);
  state_->lease_end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  state_->changed.notify_all();
}

void GateKeeper::release_for_shutdown() {
  const std::lock_guard lock(state_->mutex);
  state_->shutdown = true;
  state_->mode = Mode::free;
  armed_.store(0, std::memory_order_seq_cst);
  ++state_->commands;
  state_->changed.notify_all();
}

void GateKeeper::enable() {
  const std::lock_guard lock(state_->mutex);
  state_->shutdown = false;
}

void GateKeeper::never_hold() noexcept { armed_.store(0, std::memory_order_seq_cst); }

std::uint64_t GateKeeper::lease_expirations() const noexcept { return state_->lease_expirations.load(); }

GateKeeper::Position GateKeeper::position() const {
  const std::lock_guard lock(state_->mutex);
  return state_->position;
}

}  // namespace shardscope::instrumentation
