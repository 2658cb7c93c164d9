// A folder for recordings of a test, and what several tests ask of them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "app/store/recording.h"
#include "tests/app/store/same_store.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::store {

/// As any SQLite tool would.
inline void change(const std::string& path, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK);
  ASSERT_GT(sqlite3_changes(db), 0);
  sqlite3_close(db);
}

class RecordingTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("shardscope-recording-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const SyntheticRun& run) const {
    RecordingWriter writer(file(name));
    record(writer, run);
    EXPECT_EQ(writer.error(), "");
    return file(name);
  }
  static std::string refusal(const std::string& path) {
    try {
      RecordingInfo info;
      (void)open_recording(path, &info);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "accepted";
  }
  static bool mentions(const RecordingInfo& info, const std::string& text) {
    for (const std::string& problem : info.problems) {
      if (problem.find(text) != std::string::npos) return true;
    }
    return false;
  }
  std::filesystem::path folder_;
};

inline void expect_same_run(const Store& a, const Store& b) {
  EXPECT_EQ(a.event_count(), b.event_count());
  EXPECT_EQ(a.end_ns(), b.end_ns());
  ASSERT_EQ(a.lanes(), b.lanes());
  for (const LaneId lane : a.lanes()) {
    ASSERT_EQ(a.depth_count(lane), b.depth_count(lane));
    for (std::uint8_t d = 0; d < a.depth_count(lane); ++d) {
      const auto left = a.spans(lane, d);
      const auto right = b.spans(lane, d);
      ASSERT_EQ(left.size(), right.size());
      for (std::size_t i = 0; i < left.size(); ++i) {
        ASSERT_EQ(left[i].begin_ns, right[i].begin_ns);
        ASSERT_EQ(left[i].end_ns, right[i].end_ns);
        ASSERT_EQ(left[i].a, right[i].a);
      }
    }
  }
  ASSERT_EQ(a.steps().size(), b.steps().size());
  for (std::size_t i = 0; i < a.steps().size(); ++i) {
    EXPECT_THAT(a.steps()[i].loss, testing::NanSensitiveDoubleEq(b.steps()[i].loss));
  }
}

/// Everything in memory, from the same chunks as the recording holds.
inline Store whole_of(const SyntheticRun& run) {
  Store whole;
  whole.seal_after(SIZE_MAX);
  fill_store(whole, run);
  return whole;
}

}  // namespace shardscope::store
