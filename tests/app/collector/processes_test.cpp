// Ranks as real processes that wait for each other in collectives, with their publishers and gates.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "app/collector/collector.h"
#include "app/collector/viewer.h"
#include "tests/child_process.h"

namespace shardscope::collector {
namespace {

using namespace std::chrono_literals;
using namespace instrumentation;
using Clock = std::chrono::steady_clock;

/// What the processes share: the collective, and where each rank is.
struct Shared {
  pthread_barrier_t collective;
  std::atomic<bool> end{false};
  std::atomic<std::uint64_t> passed[8];
};

[[noreturn]] void train(Shared* shared, std::uint32_t rank, std::uint32_t world,
                        const std::string& endpoint) {
  alarm(60);
  {
    RunTables tables;
    tables.run_id = "processes-test";
    tables.rank = rank;
    tables.world = tables.local_world = world;
    tables.modules = {{0, kNoId, "", "Root", {}, true}, {1, 0, "fc", "Linear", {}, true}};
    PublisherOptions options;
    options.endpoint = endpoint;
    options.linger_s = 3;
    Publisher publisher(options, tables);
    GateKeeper& gate = GateKeeper::instance();
    bool last = false;
    for (std::uint32_t step = 0; !last; ++step) {
      const auto pass = [&](GateKind kind, std::uint32_t id) {
        gate.pass(kind, id);
        shared->passed[rank] = gate.passed();
      };
      SHARDSCOPE_EMIT(Detail::steps, .kind = EventKind::step_begin, .a = step);
      pass(GateKind::step, step);
      for (std::uint32_t m = 0; m < 2; ++m) {
        pass(GateKind::pre_forward, m);
        SHARDSCOPE_EMIT(Detail::modules, .kind = EventKind::module_begin, .stream = StreamId::compute,
                        .a = m);
        std::this_thread::sleep_for(std::chrono::microseconds(300 + 100 * rank));
        pthread_barrier_wait(&shared->collective);
        SHARDSCOPE_EMIT(Detail::modules, .kind = EventKind::module_end, .stream = StreamId::compute, .a = m);
        pass(GateKind::post_forward, m);
      }
      SHARDSCOPE_EMIT(Detail::steps, .kind = EventKind::step_end, .a = step);
      // The decision to end is taken between two collectives, so that all take it alike.
      if (rank == 0) last = shared->end;
      shared->passed[7] = last ? 1 : 0;
      pthread_barrier_wait(&shared->collective);
      last = shared->passed[7] != 0;
      pthread_barrier_wait(&shared->collective);
    }
    publisher.finish(0, "done");
  }
  _exit(0);
}

class Processes : public testing::Test {
 protected:
  static constexpr std::uint32_t kWorld = 3;

  void SetUp() override {
    shared_ = static_cast<Shared*>(
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(static_cast<void*>(shared_), MAP_FAILED);
    new (shared_) Shared;
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared_->collective, &attributes, kWorld);
    endpoint_ = "ipc://" + testing::TempDir() + "shardscope_" + std::to_string(getpid());
    for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
      const pid_t child = fork_bound();  // before this process has threads of its own
      if (child == 0) train(shared_, rank, kWorld, endpoint_);
      children_.push_back(child);
    }
  }
  void TearDown() override {
    for (const pid_t child : children_) kill(child, SIGKILL);
    for (const pid_t child : children_) waitpid(child, nullptr, 0);
    munmap(shared_, sizeof(Shared));
    for (const char* socket : {"", ".view", ".control"}) {
      unlink((endpoint_.substr(6) + socket).c_str());  // ZeroMQ leaves the files of a listener
    }
  }

  CollectorOptions options(double lease_s = 10) const {
    CollectorOptions o;
    o.listen = endpoint_;
    o.lease_s = lease_s;
    return o;
  }
  static bool until(const std::function<bool()>& condition, std::chrono::milliseconds limit = 15s) {
    const auto end = Clock::now() + limit;
    while (Clock::now() < end) {
      if (condition()) return true;
      std::this_thread::sleep_for(2ms);
    }
    return condition();
  }
  bool follow(Viewer& viewer, store::Store& store, const std::function<bool()>& condition) {
    return until([&] {
      viewer.poll(store, 5ms);
      return condition();
    });
  }
  bool all_connected(Viewer& viewer, store::Store& store) {
    return follow(viewer, store, [&] {
      std::uint32_t connected = 0;
      for (const auto& row : store.ranks()) connected += row.connected;
      return connected == kWorld && store.has_tables();
    });
  }
  std::uint64_t passed(std::uint32_t rank) const { return shared_->passed[rank].load(); }
  bool runs_on(std::chrono::milliseconds limit = 15s) const {
    const std::uint64_t from = passed(0);
    return until([&] { return passed(0) > from + 20; }, limit);
  }

  Shared* shared_ = nullptr;
  std::string endpoint_;
  std::vector<pid_t> children_;
};

Command pause_command() { return {}; }
Command resume_command(StopRule rule = {}) {
  Command command;
  command.kind = Command::Kind::resume;
  command.rule = rule;
  return command;
}

TEST_F(Processes, PauseStepResumeAndEnd) {
  Collector collector(options());
  Viewer viewer(collector.view_endpoint());
  store::Store store;
  ASSERT_TRUE(all_connected(viewer, store));
  viewer.send(pause_command());
  ASSERT_TRUE(follow(viewer, store, [&] { return viewer.control().paused; })) << viewer.control().note;
  const std::uint64_t gate = viewer.control().gate;
  EXPECT_GT(viewer.control().lease_left_s, 5);
  for (int i = 0; i < 20; ++i) {
    for (std::uint32_t r = 0; r < kWorld; ++r)
      ASSERT_LE(passed(r), gate) << "rank " << r << " ran past the gate";
    std::this_thread::sleep_for(5ms);
  }
  viewer.send(resume_command({StopRule::Kind::any_gate, 0, 0}));
  ASSERT_TRUE(
      follow(viewer, store, [&] { return viewer.control().paused && viewer.control().gate == gate + 1; }));
  viewer.send(resume_command({StopRule::Kind::run_to_module, 1, 1}));
  ASSERT_TRUE(
      follow(viewer, store, [&] { return viewer.control().paused && viewer.control().gate > gate + 1; }));
  ASSERT_TRUE(follow(viewer, store, [&] {
    for (const auto& row : store.ranks()) {
      if (!row.gate.holding || row.gate.kind != GateKind::pre_forward || row.gate.id != 1) return false;
    }
    return true;
  })) << "the rows tell where each rank stands";
  viewer.send(resume_command());
  ASSERT_TRUE(follow(viewer, store, [&] { return !viewer.control().paused; }));
  EXPECT_TRUE(runs_on());
  shared_->end = true;
  ASSERT_TRUE(until([&] { return collector.status().finished; }));
  ASSERT_TRUE(follow(viewer, store, [&] { return viewer.link() == Viewer::Link::ended; }));
  viewer.poll(store, 1s);
  EXPECT_EQ(collector.status().exit_code, 0);
  EXPECT_EQ(store.dropped_count(), 0U);
  EXPECT_EQ(store.event_count(), collector.status().events);
  std::int64_t paused = 0;
  for (const auto& step : store.steps()) paused += step.paused_ns;
  EXPECT_GT(paused, 90'000'000) << "at least the 100 ms this test looked on";
}

TEST_F(Processes, AViewerKilledWhilePausedStopsTheRunForNoLongerThanItsLease) {
  // The viewer is a process too; it says through a pipe that the run is paused.
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t viewer_process = fork_bound();
  if (viewer_process == 0) {
    alarm(60);
    Viewer viewer(endpoint_);
    store::Store store;
    if (!all_connected(viewer, store)) _exit(1);
    viewer.send(pause_command());
    if (!follow(viewer, store, [&] { return viewer.control().paused; })) _exit(2);
    if (write(pipe_ends[1], "p", 1) != 1) _exit(3);
    for (;;) pause();
  }
  Collector collector(options(2.0));
  char byte = 0;
  ASSERT_EQ(read(pipe_ends[0], &byte, 1), 1);
  const std::uint64_t held = passed(0);
  std::this_thread::sleep_for(4500ms);  // held for longer than a lease while the viewer lives
  EXPECT_LE(passed(0), held + 1);
  kill(viewer_process, SIGKILL);
  waitpid(viewer_process, nullptr, 0);
  const auto killed = Clock::now();
  EXPECT_TRUE(runs_on());
  EXPECT_LT(Clock::now() - killed, 8s) << "lease of 2 s and a busy machine's slack";
  ASSERT_TRUE(until([&] {
    bool said = false;
    collector.read([&](const store::Store& store) {
      for (const auto& message : store.messages()) said |= message.text.find("resumed") != std::string::npos;
    });
    return said;
  }));
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_F(Processes, ACollectorThatGoesAwayWhilePausedReleasesTheRunAndItsSuccessorTakesOver) {
  store::Store store;
  {
    Collector collector(options(1.0));
    Viewer viewer(collector.view_endpoint());
    ASSERT_TRUE(all_connected(viewer, store));
    viewer.send(pause_command());
    ASSERT_TRUE(follow(viewer, store, [&] { return viewer.control().paused; }));
  }
  EXPECT_TRUE(runs_on());
  Collector collector(options(10));
  Viewer viewer(collector.view_endpoint());
  store::Store second;
  ASSERT_TRUE(all_connected(viewer, second));
  viewer.send(pause_command());
  ASSERT_TRUE(follow(viewer, second, [&] { return viewer.control().paused; })) << viewer.control().note;
  viewer.send(resume_command());
  EXPECT_TRUE(runs_on());
}

TEST_F(Processes, AKilledRankIsShownAndPausingIsRefusedWithItsName) {
  Collector collector(options());
  Viewer viewer(collector.view_endpoint());
  store::Store store;
  ASSERT_TRUE(all_connected(viewer, store));
  kill(children_[1], SIGKILL);
  waitpid(children_[1], nullptr, 0);
  ASSERT_TRUE(
      follow(viewer, store, [&] { return store.ranks().size() == kWorld && !store.ranks()[1].connected; }));
  EXPECT_TRUE(store.ranks()[0].connected);
  EXPECT_FALSE(store.ranks()[1].finished);
  viewer.send(pause_command());
  ASSERT_TRUE(
      follow(viewer, store, [&] { return viewer.control().note.find("rank 1") != std::string::npos; }));
  EXPECT_FALSE(viewer.control().pausing);
}

}  // namespace
}  // namespace shardscope::collector
