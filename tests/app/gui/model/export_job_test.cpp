// An export from the window: whole or not at all, of a part of the run, cancelled, beside a second run.
#include "app/gui/model/export_job.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "app/analysis/summary.h"
#include "app/gui/platform/pixels.h"
#include "app/store/recording.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

namespace fs = std::filesystem;

class Export : public ::testing::Test {
 protected:
  Export() : folder_(fs::temp_directory_path() / ("shardscope-export-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Export() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string file(const char* name) const { return (folder_ / name).string(); }
  std::string recording(const char* name, const store::SyntheticOptions& options = {}) const {
    const store::SyntheticRun run = store::make_synthetic_run(options);
    store::RecordingWriter writer(file(name));
    store::record(writer, run);
    return file(name);
  }
  static ExportJob::State finish(const ExportJob& job) {
    while (job.state().running) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return job.state();
  }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  fs::path folder_;
};

TEST_F(Export, ATraceOfAPartHasWhatOverlapsItAlone) {
  const std::string run = recording("run.zscope");
  store::RecordingInfo info;
  const store::Store store = store::open_recording(run, &info);
  const store::StepRow& second = store.steps()[1];
  ExportJob job;
  job.start({.format = ExportFormat::chrome, .recording = run, .target = file("all.json")});
  ASSERT_EQ(finish(job).problem, "");
  job.start({.format = ExportFormat::chrome,
             .recording = run,
             .target = file("part.json"),
             .range_ns = std::pair((second.begin_ns + second.end_ns) / 2, second.end_ns)});
  ASSERT_EQ(finish(job).problem, "");
  EXPECT_GT(job.state().share, 0.5) << "it shows its progress";
  const std::string all = text_of(file("all.json")), part = text_of(file("part.json"));
  EXPECT_NE(all.find("ProfilerStep#" + std::to_string(store.steps()[0].step) + "\""), std::string::npos);
  EXPECT_EQ(part.find("ProfilerStep#" + std::to_string(store.steps()[0].step) + "\""), std::string::npos);
  EXPECT_NE(part.find("ProfilerStep#" + std::to_string(second.step) + "\""), std::string::npos);
  EXPECT_LT(part.size(), all.size());
}

TEST_F(Export, OfTheShownStepsKinetoHasThoseAlone) {
  const std::string run = recording("run.zscope");
  ExportJob job;
  job.start({.format = ExportFormat::kineto,
             .recording = run,
             .target = file("kineto"),
             .steps = std::pair(1U, 1U)});
  ASSERT_EQ(finish(job).problem, "");
  const std::string trace = text_of(file("kineto/rank_0.json"));
  EXPECT_NE(trace.find("ProfilerStep#1\""), std::string::npos);
  EXPECT_EQ(trace.find("ProfilerStep#2\""), std::string::npos);
}

TEST_F(Export, OneThatIsCancelledLeavesWhatWasThere) {
  const std::string run = recording("run.zscope");
  std::ofstream(file("trace.json")) << "before";
  ExportJob job;
  job.start({.format = ExportFormat::chrome, .recording = run, .target = file("trace.json")});
  job.cancel();
  const ExportJob::State state = finish(job);
  EXPECT_TRUE(state.cancelled);
  EXPECT_EQ(state.problem, "");
  EXPECT_EQ(text_of(file("trace.json")), "before");
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_TRUE(entry.path().filename() == "run.zscope" || entry.path().filename() == "trace.json")
        << entry.path() << " is left";
}

TEST_F(Export, TheReportComparesWithTheSecondRun) {
  const std::string run = recording("run.zscope");
  store::SyntheticOptions options;
  options.prefetch_elems = 0;
  const std::string other = recording("other.zscope", options);
  ExportJob job;
  job.start({.format = ExportFormat::report, .recording = run, .target = file("alone.html")});
  ASSERT_EQ(finish(job).problem, "");
  job.start({.format = ExportFormat::report, .recording = run, .target = file("both.html"), .other = other});
  ASSERT_EQ(finish(job).problem, "");
  // As in the window: A is the run that is open. It prefetches, and the other one does not.
  const std::string page = text_of(file("both.html"));
  EXPECT_EQ(text_of(file("alone.html")).find("A: this run"), std::string::npos);
  EXPECT_NE(page.find("A: this run. B: the second run, other.zscope."), std::string::npos);
  EXPECT_NE(page.find("stage3_prefetch_bucket_size: "), std::string::npos);
  store::RecordingInfo info;
  const store::Store first = store::open_recording(run, &info), second = store::open_recording(other, &info);
  const analysis::Summary a = analysis::summarize(first), b = analysis::summarize(second);
  const analysis::Comparison expected = analysis::compare({{&first, &a}}, {{&second, &b}});
  ASSERT_FALSE(expected.config_changes.empty());
  std::string change = expected.config_changes.front();  // "KEY: of the first -> of the second"
  change.replace(change.find("->"), 2, "-&gt;");
  EXPECT_NE(page.find("<code>" + change + "</code>"), std::string::npos) << "not the other way round";
}

TEST_F(Export, ARecordingIsNeverReplaced) {
  const std::string run = recording("run.zscope");
  ExportJob job;
  job.start({.format = ExportFormat::chrome, .recording = run, .target = run});
  EXPECT_NE(finish(job).problem, "");
}

TEST(Pixels, OfAPanelAreCutAtTheWindowAndTurnedOver) {
  EXPECT_EQ(pixels_of({10, 20, 30, 40}, 0, 0, 2, 1000, 1000), (PixelRect{20, 40, 60, 80}));
  EXPECT_EQ(pixels_of({-10, 0, 2000, 50}, 0, 0, 1, 800, 600), (PixelRect{0, 0, 800, 50}));
  EXPECT_EQ(pixels_of({900, 0, 50, 50}, 0, 0, 1, 800, 600).w, 0) << "outside";
  // Places of the desktop: the window's upper left corner is at (500, 300) of it.
  EXPECT_EQ(pixels_of({510, 320, 30, 40}, 500, 300, 2, 1000, 1000), (PixelRect{20, 40, 60, 80}));
  EXPECT_EQ(top_first({1, 1, 1, 0, 2, 2, 2, 0}, 1, 2),
            (std::vector<std::uint8_t>{2, 2, 2, 255, 1, 1, 1, 255}));
}

}  // namespace
}  // namespace shardscope::gui
