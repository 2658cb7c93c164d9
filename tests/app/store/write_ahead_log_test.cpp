// Damage to the log of a recording that was cut off is said, and an uncommitted end is no damage.
#include "app/store/write_ahead_log.h"

#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "app/store/losses.h"
#include "tests/app/store/recording_files.h"

namespace shardscope::store {
namespace {

namespace fs = std::filesystem;
using State = LogScan::State;
constexpr std::size_t kHeader = 32, kFrame = 24 + 2048;

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

LogScan scan(const std::string& bytes) {
  std::istringstream in(bytes);
  return scan_log(in);
}

class LogTest : public RecordingTest {
 protected:
  /// The files as a killed recorder leaves them: nothing was folded in.
  std::string cut_off(const std::string& name, const SyntheticRun& run, std::size_t commits) {
    const std::string path = file("running.zscope"), copy = file(name);
    RecordingWriter writer(path);
    for (const ev::RunTables& tables : run.tables) writer.tables(tables.rank, tables);
    for (std::size_t i = 0; i < run.chunks.size(); ++i) {
      writer.append(run.chunks[i]);
      if (i % (run.chunks.size() / commits) == 0) writer.commit();
    }
    writer.commit();
    for (const char* part : {"", "-wal"})
      fs::copy_file(path + part, copy + part, fs::copy_options::overwrite_existing);
    return copy;
  }
  static void overwrite(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
};

TEST_F(LogTest, WholeLogIsReadToItsEnd) {
  const SyntheticRun run = make_synthetic_run({.world = 2});
  const std::string path = cut_off("whole.zscope", run, 8);
  const std::string log = bytes_of(path + "-wal");
  const LogScan found = scan_log_of(path);
  EXPECT_EQ(found.state, State::whole);
  EXPECT_EQ(found.frames, (log.size() - kHeader) / kFrame);
  EXPECT_GT(found.frames, 20U);
  EXPECT_TRUE(wants_log(path));
  EXPECT_EQ(problem_of(found, path), "");
  RecordingInfo info;
  (void)open_recording(path, &info);
  EXPECT_EQ(info.chunks, run.chunks.size());
  EXPECT_FALSE(mentions(info, "-wal"));
  EXPECT_FALSE(wants_log(write("finished.zscope", run)));
}

TEST_F(LogTest, FlippedBitNamesTheFrameAndWhatIsBehind) {
  const SyntheticRun run = make_synthetic_run({.world = 2});
  const std::string path = cut_off("flipped.zscope", run, 8);
  std::string log = bytes_of(path + "-wal");
  const std::uint64_t frames = (log.size() - kHeader) / kFrame;
  for (const std::size_t inside : {8U, 20U, 24U, 2000U}) {  // salt, checksum, page
    SCOPED_TRACE(inside);
    std::string damaged = log;
    damaged[kHeader + 4 * kFrame + inside] ^= 1;
    const LogScan found = scan(damaged);
    EXPECT_EQ(found.state, State::damaged);
    EXPECT_EQ(found.frames, 4U);
    EXPECT_EQ(found.damaged_at, 5U);
    EXPECT_EQ(found.behind, frames - 5);
    EXPECT_GE(found.commits, 8U);
    overwrite(path + "-wal", damaged);
    fs::remove(path + "-shm");
    RecordingInfo info;
    (void)open_recording(path, &info);
    EXPECT_LT(info.chunks, run.chunks.size());
    EXPECT_TRUE(mentions(info, "damaged at frame 5: this one and " + std::to_string(frames - 5) + " frames"))
        << testing::PrintToString(info.problems);
  }
  std::string headless = log;
  headless[17] ^= 1;
  EXPECT_EQ(scan(headless).state, State::header_damaged);
  overwrite(path + "-wal", headless);
  fs::remove(path + "-shm");
  RecordingInfo info;
  (void)open_recording(path, &info);
  EXPECT_TRUE(mentions(info, "-wal")) << testing::PrintToString(info.problems);
  EXPECT_FALSE(mentions(info, "nothing is in it")) << "who knows what the log held";
}

TEST_F(LogTest, MissingLogIsNamedAndWhatToCopy) {
  const SyntheticRun run = make_synthetic_run({.world = 2});
  const std::string path = cut_off("alone.zscope", run, 8);
  fs::remove(path + "-wal");
  for (int times = 0; times < 2; ++times) {  // SQLite may have put an empty one there
    RecordingInfo info;
    (void)open_recording(path, &info);
    EXPECT_TRUE(mentions(info, "alone.zscope-wal is ")) << testing::PrintToString(info.problems);
    EXPECT_TRUE(mentions(info, "copy FILE-wal together with FILE"));
  }
}

TEST_F(LogTest, WhatWasNeverCommittedIsNoDamage) {
  const std::string path = cut_off("open.zscope", make_synthetic_run({.world = 1}), 4);
  const std::string log = bytes_of(path + "-wal");
  const std::uint64_t frames = (log.size() - kHeader) / kFrame;
  // A transaction that was spilled in part: frames of the log's salt, no end of a commit, checksums that
  // wait.
  std::string frame = log.substr(kHeader, kFrame);
  frame.replace(4, 4, std::string(4, '\0'));
  EXPECT_EQ(scan(log + frame + frame).state, State::whole);
  EXPECT_EQ(scan(log + frame + frame).frames, frames);
  // Frames from before the log was begun anew: another salt, whole commits.
  std::string old = log.substr(kHeader);
  for (std::size_t at = 0; at < old.size(); at += kFrame) old[at + 8] ^= 1;
  EXPECT_EQ(scan(log + old).state, State::whole);
  // Cut within a frame.
  EXPECT_EQ(scan(log + frame.substr(0, 100)).state, State::whole);
  EXPECT_EQ(scan("").state, State::empty);
  EXPECT_EQ(scan(log.substr(0, 31)).state, State::empty);
}

TEST_F(LogTest, AnyBytesAreScannedToTheEnd) {
  const std::string log = bytes_of(cut_off("any.zscope", make_synthetic_run({.world = 1}), 4) + "-wal");
  const LogScan whole = scan(log);
  std::mt19937_64 random(11);
  for (int i = 0; i < 200; ++i) {
    std::string bytes = log.substr(0, random() % log.size());
    for (int f = 0; f < i % 4 && !bytes.empty(); ++f)
      bytes[random() % bytes.size()] ^= static_cast<char>(1U << (random() % 8));
    const LogScan found = scan(bytes);
    EXPECT_LE(found.frames + (found.damaged_at != 0 ? 1 : 0) + found.behind, whole.frames);
  }
}

}  // namespace
}  // namespace shardscope::store
