// One gate keeper: where it holds, for how long, and what it says. The protocol between many is tested with
// the collector's side (tests/app/collector/pause_test.cpp).
#include "instrumentation/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "instrumentation/ring.h"

namespace shardscope::instrumentation {
namespace {

using namespace std::chrono_literals;

/// A rank that passes gates on its own thread until it is ended: per step a step gate, then for each of
/// two micro-steps a micro-step gate, forward and backward gates of three modules, and one bucket gate.
class Trainee {
 public:
  Trainee() {
    gate.set_module_params([](std::uint32_t module, std::uint32_t param) { return param / 10 == module; });
  }
  ~Trainee() {
    end = true;
    gate.release_for_shutdown();
    if (thread.joinable()) thread.join();
  }
  void start() {
    thread = std::thread([this] {
      for (std::uint32_t step = 0; !end; ++step) {
        gate.pass(GateKind::step, step);
        for (std::uint32_t micro = 0; micro < 2; ++micro) {
          gate.pass(GateKind::micro_step, step * 2 + micro);
          for (std::uint32_t m = 0; m < 3; ++m) {
            gate.pass(GateKind::pre_forward, m);
            gate.pass(GateKind::post_forward, m);
          }
          for (std::uint32_t m = 3; m-- > 0;) {
            gate.pass(GateKind::pre_backward, m);
            gate.pass(GateKind::bucket, m);
            gate.pass(GateKind::post_backward, m);
          }
        }
        gate.pass(GateKind::optimizer, step);
        std::this_thread::sleep_for(50us);
      }
    });
  }
  GateKeeper::Position wait_for_hold(std::uint64_t after = 0) const {
    for (int i = 0; i < 20'000; ++i) {
      const auto position = gate.position();
      if (position.holding && position.number > after) return position;
      std::this_thread::sleep_for(500us);
    }
    ADD_FAILURE() << "never held";
    return {};
  }
  GateKeeper::Position pause() {
    gate.renew_lease(60);
    gate.hold_at(gate.prepare_pause().gates + 1);
    return wait_for_hold();
  }
  GateKeeper gate;
  std::atomic<bool> end{false};
  std::thread thread;
};

TEST(Gate, HoldsAtExactlyTheGateNamedAndNoFurther) {
  Trainee rank;
  rank.start();
  std::this_thread::sleep_for(5ms);
  rank.gate.renew_lease(60);
  const std::uint64_t may_have_passed = rank.gate.prepare_pause().gates;
  rank.gate.hold_at(may_have_passed + 5);
  const auto position = rank.wait_for_hold();
  EXPECT_EQ(position.number, may_have_passed + 5);
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(rank.gate.passed(), may_have_passed + 5);
  rank.gate.resume({});
  for (int i = 0; i < 10'000 && rank.gate.passed() < may_have_passed + 100; ++i)
    std::this_thread::sleep_for(1ms);
  EXPECT_GE(rank.gate.passed(), may_have_passed + 100);
}

TEST(Gate, RulesStopWhereTheySay) {
  Trainee rank;
  rank.start();
  const auto go = [&](StopRule rule) {
    const std::uint64_t from = rank.gate.position().number;
    rank.gate.renew_lease(60);
    rank.gate.resume(rule);
    return rank.wait_for_hold(from);
  };
  using Kind = StopRule::Kind;
  auto at = rank.pause();
  EXPECT_EQ(go({Kind::any_gate, 0, 0}).number, at.number + 1);
  EXPECT_EQ(go({Kind::any_gate, 0, 6}).number, at.number + 8);
  at = go({Kind::step, 0, 0});
  EXPECT_EQ(at.kind, GateKind::step);
  const auto later = go({Kind::step, 0, 2});
  EXPECT_EQ(later.kind, GateKind::step);
  EXPECT_EQ(later.id, at.id + 3);
  at = go({Kind::micro_step, 0, 0});
  EXPECT_EQ(at.kind, GateKind::micro_step);
  at = go({Kind::module, 0, 0});
  EXPECT_EQ(at.kind, GateKind::pre_forward);
  EXPECT_EQ(at.id, 0U);
  at = go({Kind::run_to_module, 2, 1});  // forward is let through
  EXPECT_EQ(at.kind, GateKind::pre_backward);
  EXPECT_EQ(at.id, 2U);
  at = go({Kind::run_to_param, 15, 0});  // used by module 1
  EXPECT_EQ(at.kind, GateKind::pre_backward);
  EXPECT_EQ(at.id, 1U);
  at = go({Kind::run_to_bucket, 0, 0});
  EXPECT_EQ(at.kind, GateKind::bucket);
  EXPECT_EQ(at.id, 0U);
  at = go({Kind::run_to_step, later.id + 5, 0});
  EXPECT_EQ(at.kind, GateKind::step);
  EXPECT_EQ(at.id, later.id + 5);
  const auto wanted = static_cast<std::uint32_t>(at.number + 77);
  EXPECT_EQ(go({Kind::gate_number, wanted, 0}).number, wanted);
}

TEST(Gate, DrainsTheDeviceBeforeItReportsAndWritesBothEndsOfThePause) {
  std::vector<Event> events;
  RingRegistry::instance().drain(events);
  events.clear();
  g_detail.store(static_cast<int>(Detail::steps));
  {
    Trainee rank;
    std::atomic<bool> drained{false}, reported_first{false};
    rank.gate.set_on_hold([&] {
      reported_first = rank.gate.position().holding;
      std::this_thread::sleep_for(5ms);
      drained = true;
    });
    rank.start();
    (void)rank.pause();
    EXPECT_TRUE(drained);
    EXPECT_FALSE(reported_first);
    rank.gate.resume({});
    for (int i = 0; i < 5000 && rank.gate.position().holding; ++i) std::this_thread::sleep_for(1ms);
  }
  g_detail.store(-1);
  RingRegistry::instance().drain(events);
  std::vector<Event> pauses;
  for (const Event& event : events) {
    if (event.kind == EventKind::paused_begin || event.kind == EventKind::paused_end) pauses.push_back(event);
  }
  ASSERT_EQ(pauses.size(), 2U);
  EXPECT_EQ(pauses[0].kind, EventKind::paused_begin);
  EXPECT_EQ(pauses[0].code, static_cast<std::uint8_t>(PauseCause::user));
  EXPECT_EQ(pauses[1].kind, EventKind::paused_end);
  EXPECT_EQ(pauses[1].code, static_cast<std::uint8_t>(ResumeCause::user));
  EXPECT_EQ(pauses[0].a, pauses[1].a);
}

TEST(Gate, ResumesByItselfWhenTheLeaseRunsOut) {
  std::vector<Event> events;
  RingRegistry::instance().drain(events);
  events.clear();
  g_detail.store(static_cast<int>(Detail::steps));
  {
    Trainee rank;
    rank.start();
    rank.gate.renew_lease(1.0);  // long enough for this thread to see it hold on a busy machine
    rank.gate.hold_at(rank.gate.prepare_pause().gates + 1);
    const auto at = rank.wait_for_hold();
    EXPECT_EQ(rank.gate.lease_expirations(), 0U);
    for (int i = 0; i < 10'000 && rank.gate.passed() <= at.number; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_GT(rank.gate.passed(), at.number);
    EXPECT_EQ(rank.gate.lease_expirations(), 1U);
  }
  g_detail.store(-1);
  RingRegistry::instance().drain(events);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().kind, EventKind::paused_end);
  EXPECT_EQ(events.back().code, static_cast<std::uint8_t>(ResumeCause::lease_expired));
}

TEST(Gate, RenewalKeepsItHolding) {
  Trainee rank;
  rank.start();
  rank.gate.renew_lease(1.0);
  rank.gate.hold_at(rank.gate.prepare_pause().gates + 1);
  const auto at = rank.wait_for_hold();
  for (int i = 0; i < 25; ++i) {  // for half a lease longer than the first
    rank.gate.renew_lease(5.0);
    std::this_thread::sleep_for(60ms);
  }
  EXPECT_TRUE(rank.gate.position().holding);
  EXPECT_EQ(rank.gate.passed(), at.number);
}

TEST(Gate, AnAbandonedFirstPhaseEndsWithTheLeaseToo) {
  Trainee rank;
  rank.start();
  rank.gate.renew_lease(0.2);
  const std::uint64_t before = rank.gate.prepare_pause().gates;  // phase 2 never comes
  for (int i = 0; i < 10'000 && rank.gate.passed() <= before + 10; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_GT(rank.gate.passed(), before + 10);
  rank.gate.hold_at(before + 1);  // too late: must not hold, nor stop anything
  const std::uint64_t now = rank.gate.passed();
  for (int i = 0; i < 10'000 && rank.gate.passed() <= now + 10; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_GT(rank.gate.passed(), now + 10);
}

TEST(Gate, ShutdownReleasesAndNothingHoldsAfterIt) {
  Trainee rank;
  rank.start();
  const auto at = rank.pause();
  rank.gate.release_for_shutdown();
  for (int i = 0; i < 10'000 && rank.gate.passed() <= at.number; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_GT(rank.gate.passed(), at.number);
  rank.gate.hold_at(rank.gate.prepare_pause().gates + 1);
  const std::uint64_t now = rank.gate.passed();
  for (int i = 0; i < 10'000 && rank.gate.passed() <= now + 10; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_GT(rank.gate.passed(), now + 10);
}

}  // namespace
}  // namespace shardscope::instrumentation
