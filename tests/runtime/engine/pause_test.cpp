// A run that is paused and stepped computes what one that runs through does.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::pause_test {
namespace {

using instrumentation::GateKeeper;
using instrumentation::StopRule;
using namespace std::chrono_literals;

/// Plays the controller: holds every rank at one gate, goes on gate by gate, then lets them run. The first
/// hold is set before training starts: a run this small may be over before another thread gets the processor.
/// (The two-phase pause of a running job is tested with the collector.)
class Controller {
 public:
  Controller(std::uint32_t world, int single_steps) : gates_(world), single_steps_(single_steps) {}

  void join_rank(const Context& context) {
    constexpr std::uint64_t kFirstHold = 40;  // in the forward of the first step
    context.gates.renew_lease(60);
    (void)context.gates.prepare_pause();
    context.gates.hold_at(kFirstHold);
    const std::lock_guard lock(mutex_);
    gates_[context.rank()] = &context.gates;
    if (++known_ == gates_.size()) all_known_.notify_all();
  }

  void run() {
    {
      std::unique_lock lock(mutex_);
      all_known_.wait(lock, [this] { return known_ == gates_.size(); });
    }
    for (int i = 0; i < single_steps_ && wait_until_all_hold(); ++i) {
      for (GateKeeper* gate : gates_) gate->resume({StopRule::Kind::any_gate, 0, 0});
      ++stepped_;
    }
    if (wait_until_all_hold()) {
      for (GateKeeper* gate : gates_) gate->resume({StopRule::Kind::never, 0, 0});
    }
  }

  [[nodiscard]] int stepped() const { return stepped_; }
  [[nodiscard]] bool at_one_place() const { return same_place_; }

 private:
  bool wait_until_all_hold() {
    for (int i = 0; i < 5000; ++i) {
      // A rank that was resumed still reports its last hold until it wakes: only a later gate counts.
      const auto holds = [this](const GateKeeper* gate) {
        const GateKeeper::Position at = gate->position();
        return at.holding && at.number > last_gate_;
      };
      if (std::all_of(gates_.begin(), gates_.end(), holds)) {
        const GateKeeper::Position first = gates_[0]->position();
        last_gate_ = first.number;
        for (const GateKeeper* gate : gates_) {
          const GateKeeper::Position other = gate->position();
          if (other.number != first.number || other.kind != first.kind || other.id != first.id) {
            same_place_ = false;
          }
        }
        return true;
      }
      std::this_thread::sleep_for(1ms);
    }
    return false;
  }

  std::mutex mutex_;
  std::condition_variable all_known_;
  std::vector<GateKeeper*> gates_;
  std::size_t known_ = 0;
  int single_steps_;
  int stepped_ = 0;
  std::uint64_t last_gate_ = 0;
  bool same_place_ = true;
};

TEST(Pause, SteppedRunEqualsOneThatRanThrough) {
  for (const int stage : {0, 2, 3}) {
    RunSpec spec;
    spec.model = model_named("mlp");
    spec.config = make_config(stage, 2);
    spec.config["zero_optimization"]["reduce_bucket_size"] = 20000;
    spec.world = 3;
    spec.steps = 6;
    const TrainingRun through = train(spec);
    Controller controller(spec.world, 60);
    spec.prepare = [&](const Context& context, std::uint32_t) { controller.join_rank(context); };
    std::thread thread([&] { controller.run(); });
    const TrainingRun stepped = train(spec);
    thread.join();
    EXPECT_EQ(controller.stepped(), 60) << "the run ended before it was stepped";
    EXPECT_TRUE(controller.at_one_place()) << "ranks held at different gates";
    EXPECT_EQ(first_difference(through, stepped), "") << "stage " << stage;
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::pause_test
