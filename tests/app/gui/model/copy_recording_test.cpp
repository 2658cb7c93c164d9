// A copy of a live run: whole from the middle of the run on, ended properly, and clear about what fails.
#include "app/gui/model/copy_recording.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/analysis/summary.h"
#include "app/collector/collector.h"
#include "app/collector/viewer.h"
#include "app/store/rank_end.h"
#include "app/store/recording.h"
#include "app/store/store.h"
#include "app/store/wall_clock.h"
#include "instrumentation/clock.h"
#include "instrumentation/wire.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::gui {
namespace {

namespace fs = std::filesystem;
using collector::Collector;
using collector::eventually;
using collector::kEventsPerStep;
using collector::Rank;
using namespace std::chrono_literals;

/// A recording joins chunks, so that it has fewer clock samples than a viewer of a run of more than a second.
std::string without_drift(analysis::Summary summary) {
  for (analysis::RankSummary& rank : summary.ranks) rank.clock_drift.reset();
  return analysis::to_json(summary);
}

class Copy : public ::testing::Test {
 protected:
  Copy() : folder_(fs::temp_directory_path() / ("shardscope-copy-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Copy() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string file(const char* name) const { return (folder_ / name).string(); }
  void start(const std::string& target) { copy_.start({.endpoint = endpoint(), .target = target}); }
  [[nodiscard]] std::string endpoint() const { return collector_->publish_endpoint(); }
  [[nodiscard]] bool has(std::uint64_t events) const {
    return eventually([&] { return copy_.state().events == events && !copy_.state().catching_up; });
  }
  [[nodiscard]] bool ended() const {
    return eventually([&] { return copy_.state().done; });
  }
  void steps(std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t step = from; step < to; ++step) {
      for (Rank* rank : {&first_, &second_}) rank->step(step, step == 3 ? 7 : 0);
    }
    for (Rank* rank : {&first_, &second_}) rank->settle();
  }

  fs::path folder_;
  std::unique_ptr<Collector> collector_ = std::make_unique<Collector>(collector::local());
  Rank first_{collector_->publish_endpoint(), 0, 2}, second_{collector_->publish_endpoint(), 1, 2};
  CopyRecording copy_;
};

TEST_F(Copy, BegunInTheMiddleOfARunIsWhole) {
  steps(0, 5);
  ASSERT_TRUE(eventually([&] { return collector_->status().events == 10 * kEventsPerStep; }));
  collector::Viewer viewer(endpoint());
  store::Store seen;
  ASSERT_TRUE(follow(viewer, seen, [&] { return seen.event_count() == 10 * kEventsPerStep; }));
  copy_.start({.endpoint = endpoint(), .target = file("copy.zscope"), .zero_ns = seen.origin_ns()});
  ASSERT_TRUE(has(10 * kEventsPerStep)) << copy_.line();
  EXPECT_EQ(copy_.line().find("Recording a copy to " + file("copy.zscope") + ": "), 0U) << copy_.line();
  EXPECT_TRUE(copy_.line().ends_with(", since 0.0 s")) << copy_.line();
  EXPECT_EQ(copy_.line(true).find("Recording a copy to copy.zscope: "), 0U) << "the figures are what is read";
  EXPECT_GT(copy_.state().bytes, 0U);
  start(file("other.zscope"));
  EXPECT_FALSE(fs::exists(file("other.zscope"))) << "one at a time";

  first_.link->post(instrumentation::wire::Body(instrumentation::wire::Text{
      instrumentation::monotonic_now_ns(), instrumentation::Severity::warning, "mind the gap"}));
  steps(5, 9);
  for (Rank* rank : {&first_, &second_}) rank->finish();
  ASSERT_TRUE(ended());
  const CopyRecording::State state = copy_.state();
  EXPECT_EQ(state.problem, "");
  EXPECT_EQ(state.why_ended, "the run or its collector ended");
  EXPECT_EQ(state.missing_pieces, 0U);
  ASSERT_TRUE(follow(viewer, seen, [&] { return viewer.link() == collector::Viewer::Link::ended; }));

  store::RecordingInfo info;
  const store::Store copied = store::open_recording(file("copy.zscope"), &info);
  EXPECT_TRUE(info.complete);
  EXPECT_EQ(info.problems, std::vector<std::string>());
  EXPECT_EQ(copied.event_count(), 2 * 9 * kEventsPerStep);
  EXPECT_EQ(copied.dropped_count(), seen.dropped_count());
  EXPECT_EQ(copied.dropped_count(), 14U) << "gaps are in the copy as they are in the run";
  EXPECT_EQ(copied.origin_ns(), seen.origin_ns());
  ASSERT_EQ(copied.steps().size(), 9U);
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(copied.steps()[i].begin_ns, seen.steps()[i].begin_ns);
    EXPECT_EQ(copied.steps()[i].end_ns, seen.steps()[i].end_ns);
  }
  ASSERT_EQ(copied.ranks().size(), 2U);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(copied.ranks()[rank].finished);
    EXPECT_EQ(copied.ranks()[rank].host, seen.ranks()[rank].host);
    EXPECT_EQ(copied.ranks()[rank].events, seen.ranks()[rank].events);
    const auto &drift = copied.ranks()[rank].clock_drift, &of_more_samples = seen.ranks()[rank].clock_drift;
    if (!drift) continue;
    ASSERT_TRUE(of_more_samples);
    EXPECT_GE(drift->bound_ppb, of_more_samples->bound_ppb);
  }
  EXPECT_EQ(copied.tables().model, "tiny");
  EXPECT_FALSE(store::unix_offset_ns(file("copy.zscope"))) << "the collector may be on another machine";
  const auto texts = collector::all_texts(copied);
  EXPECT_NE(texts.find("mind the gap"), std::string::npos) << texts;
  EXPECT_NE(texts.find("It ends because the run or its collector ended"), std::string::npos) << texts;

  EXPECT_EQ(without_drift(analysis::summarize(copied)), without_drift(analysis::summarize(seen)));
}

TEST_F(Copy, StoppedIsWholeUpToThereAndStoppingTwiceIsHarmless) {
  copy_.stop();  // there is none
  EXPECT_EQ(copy_.line(), "");
  steps(0, 4);
  start(file("copy.zscope"));
  ASSERT_TRUE(has(8 * kEventsPerStep)) << copy_.line();
  copy_.stop();
  copy_.stop();
  ASSERT_TRUE(ended());
  copy_.stop();
  EXPECT_EQ(copy_.state().problem, "");
  EXPECT_EQ(copy_.state().why_ended, "it was stopped");
  steps(4, 6);
  store::RecordingInfo info;
  const store::Store copied = store::open_recording(file("copy.zscope"), &info);
  EXPECT_TRUE(info.complete);
  ASSERT_EQ(info.problems.size(), 1U);
  EXPECT_NE(info.problems[0].find("recording ended first"), std::string::npos) << info.problems[0];
  EXPECT_FALSE(store::first_failure(copied)) << "a running rank is not taken for one that died";
  EXPECT_EQ(copied.event_count(), 8 * kEventsPerStep);
  EXPECT_FALSE(fs::exists(file("copy.zscope-wal")));
  start(file("copy.zscope"));  // the next one, which replaces it
  ASSERT_TRUE(has(12 * kEventsPerStep)) << copy_.line();
}

TEST_F(Copy, TheWindowsEndEndsTheFile) {
  steps(0, 3);
  {
    CopyRecording copy;
    copy.start({.endpoint = endpoint(), .target = file("copy.zscope")});
    ASSERT_TRUE(eventually([&] { return copy.state().events == 6 * kEventsPerStep; }));
  }
  store::RecordingInfo info;
  EXPECT_EQ(store::open_recording(file("copy.zscope"), &info).event_count(), 6 * kEventsPerStep);
  EXPECT_TRUE(info.complete);
}

TEST_F(Copy, TheCollectorsEndEndsTheFile) {
  steps(0, 3);
  start(file("copy.zscope"));
  ASSERT_TRUE(has(6 * kEventsPerStep));
  collector_.reset();
  ASSERT_TRUE(ended());
  EXPECT_EQ(copy_.state().problem, "");
  EXPECT_EQ(copy_.state().why_ended, "the run or its collector ended");
  store::RecordingInfo info;
  EXPECT_EQ(store::open_recording(file("copy.zscope"), &info).event_count(), 6 * kEventsPerStep);
  EXPECT_TRUE(info.complete);
}

TEST_F(Copy, WhatCannotBeWrittenIsSaid) {
  const std::string nowhere = file("none/copy.zscope");
  start(nowhere);
  ASSERT_TRUE(ended());
  EXPECT_NE(copy_.state().problem.find(nowhere), std::string::npos) << copy_.state().problem;
  EXPECT_EQ(copy_.line().find("The copy failed: "), 0U) << copy_.line();
  std::ofstream(file("notes.txt")) << "kept";
  start(file("notes.txt"));
  ASSERT_TRUE(ended());
  EXPECT_NE(copy_.state().problem.find("is not a recording"), std::string::npos) << copy_.state().problem;
  std::string text;
  std::ifstream(file("notes.txt")) >> text;
  EXPECT_EQ(text, "kept");
}

TEST_F(Copy, AFullDiskEndsItWithTheReasonAndKeepsWhatWasWritten) {
  steps(0, 4);
  start(file("copy.zscope"));
  ASSERT_TRUE(has(8 * kEventsPerStep)) << copy_.line();
  // A limit on the size of files fails writes just as a full disk does.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{400'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const auto end = std::chrono::steady_clock::now() + 20s;
  for (std::uint32_t i = 4; !copy_.state().done && std::chrono::steady_clock::now() < end; i += 50) {
    steps(i, i + 50);
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(copy_.state().done) << copy_.line();
  EXPECT_NE(copy_.state().problem.find(file("copy.zscope")), std::string::npos) << copy_.state().problem;
  EXPECT_NE(copy_.state().problem.find("recording has stopped"), std::string::npos) << copy_.state().problem;
  store::RecordingInfo info;
  EXPECT_GE(store::open_recording(file("copy.zscope"), &info).event_count(), 8 * kEventsPerStep);
  EXPECT_FALSE(info.complete);
}

TEST_F(Copy, ThatNothingAnswersLeavesTheFileThatWasThere) {
  steps(0, 2);
  start(file("copy.zscope"));
  ASSERT_TRUE(has(4 * kEventsPerStep));
  copy_.stop();
  ASSERT_TRUE(ended());
  copy_.start({.endpoint = "tcp://127.0.0.1:1", .target = file("copy.zscope")});
  EXPECT_EQ(copy_.state().bytes, 0U);
  copy_.stop();
  ASSERT_TRUE(ended());
  EXPECT_NE(copy_.state().problem.find("nothing was written"), std::string::npos) << copy_.state().problem;
  store::RecordingInfo info;
  EXPECT_EQ(store::open_recording(file("copy.zscope"), &info).event_count(), 4 * kEventsPerStep);
}

/// A copy that a process of its own makes, so that it can be held while the run goes on. Made before threads
/// are.
class CopyElsewhere {
 public:
  struct Report {
    std::uint64_t events = 0, missing_pieces = 0;
    bool catching_up = false;
  };
  CopyElsewhere() {
    if (::pipe(to_.data()) != 0 || ::pipe(from_.data()) != 0) return;
    child_ = ::fork();
    if (child_ != 0) {
      ::close(std::exchange(to_[0], -1));
      ::close(std::exchange(from_[1], -1));
      return;
    }
    ::close(to_[1]);
    make_copy();
    ::_exit(0);
  }
  ~CopyElsewhere() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    for (const int end : {to_[1], from_[0]})
      if (end >= 0) ::close(end);
  }
  CopyElsewhere(const CopyElsewhere&) = delete;
  CopyElsewhere& operator=(const CopyElsewhere&) = delete;
  void start(const std::string& endpoint, const std::string& target) {
    const std::string order = endpoint + "\n" + target + "\n";
    EXPECT_EQ(::write(to_[1], order.data(), order.size()), static_cast<ssize_t>(order.size()));
  }
  [[nodiscard]] Report report() {
    Report out;
    EXPECT_EQ(::write(to_[1], "?", 1), 1);
    EXPECT_EQ(::read(from_[0], &out, sizeof out), static_cast<ssize_t>(sizeof out));
    return out;
  }
  void hold() const { ::kill(child_, SIGSTOP); }
  void go_on() const { ::kill(child_, SIGCONT); }
  /// Ends it. Returns CopyRecording::line().
  [[nodiscard]] std::string end() {
    ::close(std::exchange(to_[1], -1));
    std::string line(4096, 0);
    const ssize_t size = ::read(from_[0], line.data(), line.size());
    line.resize(static_cast<std::size_t>(std::max<ssize_t>(0, size)));
    return line;
  }

 private:
  void make_copy() const {
    std::string endpoint, target;
    char one = 0;
    for (std::string* word : {&endpoint, &target}) {
      while (::read(to_[0], &one, 1) == 1 && one != '\n') *word += one;
    }
    CopyRecording copy;
    copy.start({.endpoint = endpoint, .target = target});
    while (::read(to_[0], &one, 1) == 1) {
      const CopyRecording::State state = copy.state();
      const Report report{state.events, state.missing_pieces, state.catching_up};
      if (::write(from_[1], &report, sizeof report) != sizeof report) return;
    }
    copy.stop();
    static_cast<void>(eventually([&] { return copy.state().done; }));
    const std::string line = copy.line();
    static_cast<void>(!::write(from_[1], line.data(), line.size()));
  }
  std::array<int, 2> to_{-1, -1}, from_{-1, -1};
  pid_t child_ = 0;
};

/// The collector keeps the last four pieces of the run: what the copy has not taken by then is gone.
TEST(CopyThatLags, SaysHowManyPiecesItMisses) {
  CopyElsewhere copy;
  collector::CollectorOptions options = collector::local();
  options.view_log = {.memory_bytes = 1, .items = 4};
  Collector collector(options);
  Rank first(collector.publish_endpoint(), 0, 2), second(collector.publish_endpoint(), 1, 2);
  collector::Viewer viewer(collector.publish_endpoint());
  store::Store seen;
  std::uint64_t pieces = 0;
  // One after the other: of what arrives together the collector makes one piece.
  const auto steps = [&](std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      for (Rank* rank : {&first, &second}) {
        rank->step(static_cast<std::uint32_t>(pieces / 2));
        rank->settle();
        ++pieces;
        ASSERT_TRUE(follow(viewer, seen, [&] { return seen.event_count() == pieces * kEventsPerStep; }));
      }
    }
  };
  steps(10);
  const fs::path path = fs::temp_directory_path() / ("copy-lags-" + std::to_string(::getpid()) + ".zscope");
  copy.start(collector.publish_endpoint(), path.string());
  const auto missing_once_caught_up = [&] {
    CopyElsewhere::Report seen_of_it;
    EXPECT_TRUE(eventually([&] {
      seen_of_it = copy.report();
      return seen_of_it.events / kEventsPerStep + seen_of_it.missing_pieces == pieces &&
             !seen_of_it.catching_up;
    })) << seen_of_it.events
        << " events, " << seen_of_it.missing_pieces << " pieces missing of " << pieces;
    return seen_of_it.missing_pieces;
  };
  EXPECT_EQ(missing_once_caught_up(), 16U) << "deleted before it began";
  steps(5);
  EXPECT_EQ(missing_once_caught_up(), 16U) << "it keeps up";
  copy.hold();
  steps(15);
  copy.go_on();
  // What was on its way to it when it was held comes as well.
  const std::uint64_t missing = missing_once_caught_up();
  EXPECT_GT(missing, 16U + 20U);
  EXPECT_LE(missing, 16U + 26U);
  const std::string line = copy.end();
  EXPECT_NE(line.find(", without " + std::to_string(missing) + " pieces that the collector no longer has; "),
            std::string::npos)
      << line;
  store::RecordingInfo info;
  const store::Store copied = store::open_recording(path.string(), &info);
  EXPECT_EQ(copied.event_count(), (pieces - missing) * kEventsPerStep);
  EXPECT_FALSE(copied.gaps().empty()) << "they show as gaps in the lanes";
  const auto texts = collector::all_texts(copied);
  EXPECT_NE(texts.find("The collector did not have " + std::to_string(missing) +
                       " pieces of it any more (chunks of events, and messages)."),
            std::string::npos)
      << texts;
  fs::remove(path);
}

/// A collector that can be killed, so that it does not say that it ends.
class KilledCollector {
 public:
  KilledCollector() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return;
    child_ = ::fork();
    if (child_ == 0) {
      const Collector collector(collector::local());
      const std::string at = collector.publish_endpoint();
      if (::write(ends[1], at.data(), at.size()) > 0) ::pause();
      ::_exit(1);
    }
    std::array<char, 200> text{};
    const ssize_t read = ::read(ends[0], text.data(), text.size());
    if (read > 0) endpoint.assign(text.data(), static_cast<std::size_t>(read));
    for (const int end : ends) ::close(end);
  }
  ~KilledCollector() { kill(); }
  KilledCollector(const KilledCollector&) = delete;
  KilledCollector& operator=(const KilledCollector&) = delete;
  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(std::exchange(child_, 0), nullptr, 0);
  }
  std::string endpoint;

 private:
  pid_t child_ = 0;
};

TEST(CopyOfAKilledCollector, EndsWhereAnotherCollectorAnswers) {
  KilledCollector killed;
  ASSERT_NE(killed.endpoint, "");
  const fs::path path = fs::temp_directory_path() / ("copy-killed-" + std::to_string(::getpid()) + ".zscope");
  {
    Rank rank(killed.endpoint, 0, 1);
    for (std::uint32_t step = 0; step < 3; ++step) rank.step(step);
    rank.settle();
    CopyRecording copy;
    copy.start({.endpoint = killed.endpoint, .target = path.string()});
    ASSERT_TRUE(eventually([&] { return copy.state().events == 3 * kEventsPerStep; })) << copy.line();
    killed.kill();
    std::this_thread::sleep_for(4s);  // the viewer takes the link for lost after 3 s
    EXPECT_TRUE(copy.state().running) << "it may come back: " << copy.line();
    const Collector another(collector::local(killed.endpoint));
    ASSERT_TRUE(eventually([&] { return copy.state().done; })) << copy.line();
    EXPECT_EQ(copy.state().problem, "");
    EXPECT_EQ(copy.state().why_ended, "another collector answers at " + killed.endpoint);
    EXPECT_EQ(copy.state().events, 3 * kEventsPerStep) << "of the run that is in the file";
    EXPECT_TRUE(copy.state().since_s);
    store::RecordingInfo info;
    EXPECT_EQ(store::open_recording(path.string(), &info).event_count(), 3 * kEventsPerStep);
    EXPECT_TRUE(info.complete);
  }
  fs::remove(path);
}

}  // namespace
}  // namespace shardscope::gui
