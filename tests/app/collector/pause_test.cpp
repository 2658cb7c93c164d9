// The two-phase pause between real gate keepers on threads and the coordinator, over a network that delays
// every message at random: no rank may stop with a collective half-open, all stop at the same gate, and
// every rule is carried out alike.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "app/collector/pause_coordinator.h"

namespace shardscope::collector {
namespace {

using namespace std::chrono_literals;
using instrumentation::GateKeeper;
using instrumentation::GateKind;
using instrumentation::StopRule;
using Clock = std::chrono::steady_clock;

double now_s() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

/// `world` ranks that run the same program: gates, and collectives that need everybody.
class SimulatedRun {
 public:
  SimulatedRun(std::uint32_t world, unsigned seed, double lease_s, double meet_s = 10)
      : pauses(lease_s, meet_s),
        world_(world),
        random_(seed),
        collective_(static_cast<std::ptrdiff_t>(world), Completion{this}) {
    pauses.set_world(world);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      gates.push_back(std::make_unique<GateKeeper>());
      pauses.rank_up(rank);
      to_rank_.emplace_back();
      from_rank_.emplace_back();
      reported_.push_back({});
    }
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      threads_.emplace_back([this, rank, seed] { train(rank, seed); });
    }
  }
  ~SimulatedRun() {
    end_ = true;
    for (auto& gate : gates) gate->release_for_shutdown();
    for (auto& thread : threads_) thread.join();
  }

  /// Delivers messages whose delay has passed.
  void pump() {
    const double now = now_s();
    for (auto& out : pauses.take_outgoing()) {
      const GateKeeper* gate = gates[out.rank].get();
      (void)gate;
      to_rank_[out.rank].push_back({now + delay(), [this, out] { execute(out); }});
    }
    for (std::uint32_t rank = 0; rank < world_; ++rank) {
      wire::Position position;
      position.position = gates[rank]->position();
      position.lease_expirations = gates[rank]->lease_expirations();
      const auto key =
          std::tuple(position.position.holding, position.position.number, position.lease_expirations);
      // On every change, and now and then unchanged: a stale one must not confuse anybody.
      if (key != reported_[rank] || random_() % 50 == 0) {
        reported_[rank] = key;
        from_rank_[rank].push_back(
            {now + delay(), [this, rank, position] { pauses.position(rank, position, now_s()); }});
      }
      deliver(to_rank_[rank], now);
      deliver(from_rank_[rank], now);
    }
    if (heartbeats) pauses.heartbeat(kViewer, now);
    pauses.tick(now);
  }

  bool wait_until(const std::function<bool()>& condition, std::chrono::milliseconds limit = 20s) {
    const auto end = Clock::now() + limit;
    while (Clock::now() < end) {
      pump();
      if (condition()) return true;
      std::this_thread::sleep_for(200us);
    }
    return false;
  }

  void command(wire::ViewCommand::Kind kind, StopRule rule = {}) {
    wire::ViewCommand command;
    command.kind = kind;
    command.rule = rule;
    pauses.command(kViewer, command, now_s());
  }
  [[nodiscard]] bool paused() const { return pauses.control(now_s()).paused; }
  [[nodiscard]] std::uint64_t gate() const { return pauses.control(now_s()).gate; }

  /// All ranks have passed exactly `number` gates, and stay so.
  void expect_all_at(std::uint64_t number) {
    for (int look = 0; look < 3; ++look) {
      for (std::uint32_t rank = 0; rank < world_; ++rank) {
        ASSERT_EQ(gates[rank]->passed(), number) << "rank " << rank;
        ASSERT_TRUE(gates[rank]->position().holding);
      }
      EXPECT_EQ(open_collective_.load(), 0) << "a rank waits in a collective for others that hold";
      std::this_thread::sleep_for(1ms);
      pump();
    }
  }

  static constexpr std::uint64_t kViewer = 77;
  PauseCoordinator pauses;
  std::vector<std::unique_ptr<GateKeeper>> gates;
  bool heartbeats = true;
  std::atomic<bool> evaluates{false};  ///< rank 0, in each step
  std::atomic<int> evaluations{0};

 private:
  struct Delayed {
    double at = 0;
    std::function<void()> what;
  };
  struct Completion {
    SimulatedRun* run;
    void operator()() noexcept { run->stop_ = run->end_.load(); }
  };

  double delay() { return static_cast<double>(random_() % 3000) * 1e-6; }
  static void deliver(std::deque<Delayed>& queue, double now) {
    while (!queue.empty() && queue.front().at <= now) {  // in order, as on one connection
      const auto what = std::move(queue.front().what);
      queue.pop_front();
      what();
    }
  }
  void execute(const PauseCoordinator::Outgoing& out) {
    GateKeeper& gate = *gates[out.rank];
    using Kind = wire::RankCommand::Kind;
    gate.renew_lease(out.command.lease_s);
    if (out.command.kind == Kind::prepare_pause) {
      const GateKeeper::Counts passed = gate.prepare_pause();
      const wire::Prepared answer{out.command.id, passed.gates, passed.steps};
      const std::uint32_t rank = out.rank;
      from_rank_[rank].push_back(
          {now_s() + delay(), [this, rank, answer] { pauses.prepared(rank, answer, now_s()); }});
    } else if (out.command.kind == Kind::hold_at && out.command.by_step) {
      gate.hold_at_step(out.command.gate);
    } else if (out.command.kind == Kind::hold_at) {
      gate.hold_at(out.command.gate);
    } else if (out.command.kind == Kind::resume) {
      gate.resume(out.command.rule, out.command.gate);
    }
  }

  void train(std::uint32_t rank, unsigned seed) {
    std::mt19937 random(seed * 1000 + rank);
    for (std::uint32_t step = 0;; ++step) {
      gates[rank]->pass(GateKind::step, step);
      // An evaluation, which the other ranks know nothing of.
      if (rank == 0 && evaluates) {
        gates[rank]->pass(GateKind::pre_forward, 99);
        ++evaluations;
      }
      for (std::uint32_t m = 0; m < 7; ++m) {
        gates[rank]->pass(GateKind::pre_forward, m);
        if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
        if (m % 3 == 1) {
          ++open_collective_;
          collective_.arrive_and_wait();
          --open_collective_;
        }
        gates[rank]->pass(GateKind::post_forward, m);
      }
      gates[rank]->pass(GateKind::optimizer, step);
      collective_.arrive_and_wait();
      if (stop_) return;
    }
  }

  std::uint32_t world_;
  std::mt19937 random_;
  std::atomic<bool> end_{false};
  bool stop_ = false;  // written between two phases of the barrier
  std::atomic<int> open_collective_{0};
  std::barrier<Completion> collective_;
  std::vector<std::deque<Delayed>> to_rank_, from_rank_;
  std::vector<std::tuple<bool, std::uint64_t, std::uint64_t>> reported_;
  std::vector<std::thread> threads_;
};

using Ask = wire::ViewCommand::Kind;

class PauseProperty : public testing::TestWithParam<unsigned> {};

TEST_P(PauseProperty, AllRanksStopAtTheSameGateWithNoCollectiveOpen) {
  const unsigned seed = GetParam();
  SimulatedRun run(2 + seed % 4, seed, 30);
  std::mt19937 random(seed);
  for (int round = 0; round < 12; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    run.command(Ask::pause);
    ASSERT_TRUE(run.wait_until([&] { return run.paused(); })) << run.pauses.control(now_s()).note;
    const std::uint64_t held = run.gate();
    run.expect_all_at(held);
    // Single steps from here: one gate each, on every rank.
    for (std::uint64_t i = 1; i <= 3; ++i) {
      run.command(Ask::resume, {StopRule::Kind::any_gate, 0, 0});
      ASSERT_TRUE(run.wait_until([&] { return run.paused() && run.gate() == held + i; }))
          << run.gate() << " " << held;
      run.expect_all_at(held + i);
    }
    // A whole step.
    run.command(Ask::resume, {StopRule::Kind::step, 0, static_cast<std::uint32_t>(random() % 2)});
    ASSERT_TRUE(run.wait_until([&] { return run.paused() && run.gate() > held + 3; }));
    EXPECT_EQ(run.gates[0]->position().kind, GateKind::step);
    run.expect_all_at(run.gate());
    run.command(Ask::resume);
    ASSERT_FALSE(run.paused());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PauseProperty, testing::Range(1U, 7U));

TEST(Pause, ARuleGivenWhileRunningIsCarriedOutAlike) {
  SimulatedRun run(3, 42, 30);
  for (int round = 0; round < 5; ++round) {
    run.command(Ask::resume, {StopRule::Kind::run_to_module, 5, 0});
    const std::uint64_t before = run.gates[0]->passed();
    ASSERT_TRUE(run.wait_until(
        [&] { return run.paused() && run.gate() > before && run.gates[0]->position().id == 5; }));
    EXPECT_EQ(run.gates[0]->position().kind, GateKind::pre_forward);
    run.expect_all_at(run.gate());
    run.command(Ask::resume);
    std::this_thread::sleep_for(3ms);
  }
}

TEST(Pause, ResumedWhileThePauseIsOnItsWayNothingStays) {
  SimulatedRun run(4, 5, 30);
  for (int round = 0; round < 20; ++round) {
    run.command(Ask::pause);
    for (int i = 0; i < round % 5; ++i) run.pump();
    run.command(Ask::resume);
    const std::uint64_t at = run.gates[0]->passed();
    ASSERT_TRUE(run.wait_until([&] { return run.gates[0]->passed() > at + 50; }));
  }
}

TEST(Pause, EndsWithTheLeaseWhenTheViewerFallsSilent) {
  SimulatedRun run(3, 9, 1.0);  // a busy machine keeps no heartbeat back for as long
  run.command(Ask::pause);
  ASSERT_TRUE(run.wait_until([&] { return run.paused(); }));
  const std::uint64_t held = run.gate();
  // Kept for more than two leases while the viewer sends heartbeats.
  const auto kept = Clock::now();
  ASSERT_FALSE(run.wait_until([&] { return run.gates[0]->passed() != held; }, 2500ms));
  EXPECT_GE(Clock::now() - kept, 2500ms);
  run.heartbeats = false;
  const auto silent = Clock::now();
  ASSERT_TRUE(run.wait_until([&] {
    return run.gates[0]->passed() > held + 30 && run.gates[1]->passed() > held + 30 &&
           run.gates[2]->passed() > held + 30;
  }));
  EXPECT_GE(Clock::now() - silent, 600ms);
  ASSERT_TRUE(run.wait_until([&] { return !run.paused(); }));
  EXPECT_FALSE(run.pauses.control(now_s()).note.empty());
  // And it can be paused again.
  run.heartbeats = true;
  run.command(Ask::pause);
  ASSERT_TRUE(run.wait_until([&] { return run.paused(); }));
  run.expect_all_at(run.gate());
}

TEST(Pause, WhereRanksPassOtherGatesTheRunIsHeldBetweenSteps) {
  SimulatedRun run(3, 21, 30, 2);
  run.pauses.set_gate_names([](GateKind kind, std::uint32_t id) {
    return kind == GateKind::pre_forward && id == 99 ? std::string("the evaluation") : std::string("a gate");
  });
  run.evaluates = true;
  ASSERT_TRUE(run.wait_until([&] { return run.evaluations >= 3; }));
  for (int round = 0; round < 3; ++round) {
    // The first pause names a number that is another place on rank 0; from there to the next step.
    run.command(Ask::pause);
    ASSERT_TRUE(run.wait_until([&] { return run.paused(); })) << run.pauses.control(now_s()).note;
    const auto held = run.gates[0]->position();
    EXPECT_EQ(held.kind, GateKind::step);
    for (const auto& gate : run.gates) {
      EXPECT_EQ(gate->position().kind, GateKind::step);
      EXPECT_EQ(gate->position().id, held.id);
    }
    const std::string note = run.pauses.control(now_s()).note;
    EXPECT_NE(note.find("rank 0"), std::string::npos) << note;
    EXPECT_NE(note.find("between steps"), std::string::npos) << note;
    // They number alike from here on: with the evaluation over, gates inside the step can be stopped at
    // again.
    run.evaluates = round == 0;
    run.command(Ask::resume, {StopRule::Kind::any_gate, 0, 0});
    ASSERT_TRUE(run.wait_until([&] { return run.paused() && run.gates[0]->position().id != held.id; }))
        << run.pauses.control(now_s()).note;
    if (round == 0) {
      EXPECT_EQ(run.gates[0]->position().kind, GateKind::step) << "rank 0 stood in its evaluation";
    } else {
      run.expect_all_at(run.gate());
      EXPECT_EQ(run.gates[0]->position().kind, GateKind::pre_forward);
      EXPECT_TRUE(run.pauses.control(now_s()).note.empty()) << run.pauses.control(now_s()).note;
      break;
    }
    run.command(Ask::resume);
  }
}

TEST(Pause, AStepOfRanksThatPassOtherGatesIsOneStep) {
  SimulatedRun run(3, 33, 30, 2);
  run.evaluates = true;
  ASSERT_TRUE(run.wait_until([&] { return run.evaluations >= 3; }));
  run.command(Ask::pause);
  ASSERT_TRUE(run.wait_until([&] { return run.paused(); })) << run.pauses.control(now_s()).note;
  for (int round = 0; round < 4; ++round) {
    const auto held = run.gates[0]->position();
    run.command(Ask::resume, {StopRule::Kind::step, 0, 0});
    ASSERT_TRUE(run.wait_until([&] { return run.paused() && run.gates[0]->position().id != held.id; }))
        << run.pauses.control(now_s()).note;
    for (const auto& gate : run.gates) {
      EXPECT_EQ(gate->position().kind, GateKind::step);
      EXPECT_EQ(gate->position().id, held.id + 1);
    }
    const std::string note = run.pauses.control(now_s()).note;
    EXPECT_NE(note.find("rank 0"), std::string::npos) << note;
    EXPECT_NE(note.find("the run is stopped between steps"), std::string::npos) << note;
  }
  // Numbered alike since: a gate within the step, after the evaluation is over, is reached exactly.
  run.evaluates = false;
  run.command(Ask::resume, {StopRule::Kind::any_gate, 0, 0});
  ASSERT_TRUE(run.wait_until([&] { return run.paused(); }));
  run.expect_all_at(run.gate());
  EXPECT_EQ(run.gates[0]->position().kind, GateKind::pre_forward);
}

TEST(Pause, TheFirstGateThatDifferedIsNamedAlsoWhereItIsKnownLate) {
  SimulatedRun run(2, 8, 30, 2);
  run.evaluates = true;
  ASSERT_TRUE(run.wait_until([&] { return run.evaluations >= 3; }));
  run.command(Ask::pause);
  ASSERT_TRUE(run.wait_until([&] { return run.paused(); })) << run.pauses.control(now_s()).note;
  run.pauses.ranks_differ("as gate 2 rank 0 evaluated");
  EXPECT_EQ(run.pauses.control(now_s()).note, "as gate 2 rank 0 evaluated; the run is stopped between steps");
  run.command(Ask::resume, {StopRule::Kind::step, 0, 0});
  ASSERT_TRUE(run.wait_until([&] { return run.paused(); }));
  EXPECT_EQ(run.pauses.control(now_s()).note.find("as gate 2"), std::string::npos)
      << "that was before the resume";
  run.command(Ask::resume);
  run.pauses.ranks_differ("as gate 80 rank 0 evaluated");
  EXPECT_EQ(run.pauses.control(now_s()).note, "") << "a running run is not stopped";
}

TEST(Pause, AChangeOfDetailTakesTheNoteOfARefusalAway) {
  PauseCoordinator pauses(10);
  pauses.set_world(2);
  pauses.rank_up(0);
  pauses.command(1, {}, 100);
  ASSERT_NE(pauses.control(100).note, "");
  wire::ViewCommand detail;
  detail.kind = wire::ViewCommand::Kind::set_detail;
  pauses.command(1, detail, 101);
  EXPECT_EQ(pauses.control(101).note, "");
}

TEST(Pause, TheDetailLastSetIsSentToARankThatComesLater) {
  using Kind = wire::RankCommand::Kind;
  PauseCoordinator pauses(10);
  pauses.set_world(2);
  pauses.rank_up(0);
  EXPECT_TRUE(pauses.take_outgoing().empty()) << "each rank begins with the level of its configuration";
  wire::ViewCommand detail;
  detail.kind = wire::ViewCommand::Kind::set_detail;
  detail.detail = instrumentation::Detail::modules;
  pauses.command(1, detail, 100);
  EXPECT_EQ(pauses.take_outgoing().size(), 1U);
  const auto expect_sent_to = [&](std::uint32_t rank) {
    const auto out = pauses.take_outgoing();
    ASSERT_EQ(out.size(), 1U);
    EXPECT_EQ(out[0].rank, rank);
    EXPECT_EQ(out[0].command.kind, Kind::set_detail);
    EXPECT_EQ(out[0].command.detail, instrumentation::Detail::modules);
    EXPECT_NE(out[0].command.id, 0U);
  };
  pauses.rank_up(1);
  expect_sent_to(1);
  pauses.rank_down(0, "has been replaced by another process", 101);
  pauses.rank_up(0);
  expect_sent_to(0);
}

TEST(Pause, WithARankMissingItIsRefusedInWords) {
  PauseCoordinator pauses(10);
  pauses.set_world(3);
  pauses.rank_up(0);
  pauses.rank_up(2);
  wire::ViewCommand pause;
  pauses.command(1, pause, 100);
  EXPECT_TRUE(pauses.take_outgoing().empty());
  EXPECT_NE(pauses.control(100).note.find("rank 1 is not connected"), std::string::npos)
      << pauses.control(100).note;
}

TEST(Pause, ARankThatDiesReleasesTheOthers) {
  PauseCoordinator pauses(10);
  pauses.set_world(2);
  pauses.rank_up(0);
  pauses.rank_up(1);
  pauses.command(1, {}, 100);
  EXPECT_EQ(pauses.take_outgoing().size(), 2U);
  pauses.rank_down(1, "is gone", 101);
  const auto out = pauses.take_outgoing();
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].rank, 0U);
  EXPECT_EQ(out[0].command.kind, wire::RankCommand::Kind::resume);
  EXPECT_FALSE(pauses.control(101).pausing);
  EXPECT_NE(pauses.control(101).note.find("rank 1"), std::string::npos);
}

TEST(Pause, ARankThatNeverAnswersIsNamedAndTheOthersReleased) {
  PauseCoordinator pauses(60);
  pauses.set_world(2);
  pauses.rank_up(0);
  pauses.rank_up(1);
  pauses.command(1, {}, 100);
  const auto asked = pauses.take_outgoing();
  pauses.prepared(0, {asked[0].command.id, 12}, 100.1);
  pauses.heartbeat(1, 105);
  pauses.tick(106);
  const auto out = pauses.take_outgoing();
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0].command.kind, wire::RankCommand::Kind::resume);
  EXPECT_NE(pauses.control(106).note.find("rank 1"), std::string::npos) << pauses.control(106).note;
}

}  // namespace
}  // namespace shardscope::collector
