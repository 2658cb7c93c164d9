// Exports of a live run: what the collector has until then, said in the report; clear about what fails.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "app/collector/collector.h"
#include "app/export/notes.h"
#include "app/gui/model/export_job.h"
#include "app/gui/model/live_notes.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::gui {
namespace {

namespace fs = std::filesystem;
using collector::Collector;
using collector::eventually;
using collector::kEventsPerStep;

class LiveExport : public ::testing::Test {
 protected:
  LiveExport()
      : folder_(fs::temp_directory_path() / ("shardscope-live-export-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~LiveExport() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string file(const char* name) const { return (folder_ / name).string(); }
  void train(std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t step = from; step < to; ++step) rank_.step(step, 0);
    rank_.settle();
    ASSERT_TRUE(eventually([&] { return collector_->status().events == to * kEventsPerStep; }));
  }
  ExportJob::State exported(ExportFormat format, const char* name) {
    ExportJob job;
    job.start(
        {.format = format, .recording = collector_->publish_endpoint(), .target = file(name), .live = true});
    EXPECT_TRUE(eventually([&] { return job.state().done; }));
    return job.state();
  }
  [[nodiscard]] std::string text(const char* name) const {
    std::ifstream in(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] std::int64_t lines(const char* name) const {
    const std::string all = text(name);
    return std::count(all.begin(), all.end(), '\n');
  }

  fs::path folder_;
  std::unique_ptr<Collector> collector_ = std::make_unique<Collector>(collector::local());
  collector::Rank rank_{collector_->publish_endpoint(), 0, 1};
};

TEST_F(LiveExport, HasTheStepsUntilThenAndSaysThatTheRunGoesOn) {
  train(0, 4);
  ASSERT_EQ(exported(ExportFormat::report, "four.html").problem, "");
  const std::string four = text("four.html");
  EXPECT_NE(four.find("read while the run went on"), std::string::npos);
  // The collector publishes events in chunks, a moment after they arrive.
  const auto has_steps = [&](const char* folder, const std::string& table, std::int64_t steps) {
    return eventually([&] {
      return exported(ExportFormat::csv, folder).problem.empty() && lines(table.c_str()) == 1 + steps;
    });
  };
  EXPECT_TRUE(has_steps("four", "four/steps.csv", 4)) << "a header and the steps";
  train(4, 8);
  EXPECT_TRUE(has_steps("eight", "eight/steps.csv", 8));
  rank_.finish();
  ASSERT_TRUE(eventually([&] {
    return exported(ExportFormat::report, "ended.html").problem.empty() &&
           text("ended.html").find("read while the run went on") == std::string::npos;
  })) << "nothing comes after the end";
}

TEST_F(LiveExport, AReportHasTheNotesOnTheLiveRun) {
  ::setenv("XDG_STATE_HOME", folder_.c_str(), 1);
  train(0, 2);
  const std::string run_id = collector::tables_of(0, 1).run_id;
  const std::string path = live_notes_path(run_id);
  fs::create_directories(fs::path(path).parent_path());
  exporter::write_notes(path, run_id,
                        {{.id = "1", .begin_ns = 1, .text = "the second rank was late here", .rank = {}}});
  ASSERT_EQ(exported(ExportFormat::report, "noted.html").problem, "");
  EXPECT_NE(text("noted.html").find("the second rank was late here"), std::string::npos);
  ::unsetenv("XDG_STATE_HOME");
}

TEST_F(LiveExport, OfARunWithoutEventsIsAnErrorAndWritesNothing) {
  const ExportJob::State state = exported(ExportFormat::report, "nothing.html");
  EXPECT_NE(state.problem.find("no event of any rank has arrived"), std::string::npos) << state.problem;
  EXPECT_FALSE(fs::exists(file("nothing.html")));
}

TEST_F(LiveExport, ACancelEndsItWhileNobodyAnswers) {
  ExportJob job;
  job.start({.format = ExportFormat::report,
             .recording = "tcp://127.0.0.1:9",
             .target = file("never.html"),
             .live = true});
  job.cancel();
  EXPECT_TRUE(eventually([&] { return job.state().done; }));
  EXPECT_TRUE(job.state().cancelled) << job.state().problem;
  EXPECT_FALSE(fs::exists(file("never.html")));
}

}  // namespace
}  // namespace shardscope::gui
