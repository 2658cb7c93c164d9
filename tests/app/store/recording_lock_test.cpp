// A recording that is being written is not replaced.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>

#include "app/store/recording.h"
#include "tests/app/store/synthetic_run.h"
#include "tests/child_process.h"

namespace shardscope::store {
namespace {

struct LockedRecording : testing::Test {
  std::string path =
      (std::filesystem::temp_directory_path() / ("recording_lock-" + std::to_string(getpid()) + ".zscope"))
          .string();
  ~LockedRecording() override { std::filesystem::remove(path); }
  void expect_refused() const {
    try {
      const RecordingWriter second(path);
      FAIL() << "it replaced a recording that is being written";
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find("is writing it"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    }
  }
};

/// Whether a process has locked the bytes that SQLite locks. Asked by another one, which sees the locks of
/// this.
bool locked_by_sqlite(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    const int file = open(path.c_str(), O_RDWR);
    struct flock what {};
    what.l_type = F_WRLCK;
    what.l_whence = SEEK_SET;
    what.l_start = 0x40000000;  // the pending byte, the reserved byte, 510 shared ones
    what.l_len = 512;
    _exit(file >= 0 && fcntl(file, F_GETLK, &what) == 0 && what.l_type != F_UNLCK ? 0 : 1);
  }
  int code = -1;
  waitpid(child, &code, 0);
  return code == 0;
}

TEST_F(LockedRecording, OfAnotherProcessStaysUntilThatHasEnded) {
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t child = fork_bound();
  if (child == 0) {
    RecordingWriter writer(path);
    record(writer, make_synthetic_run());  // to its end, and again
    RecordingWriter again(path);
    (void)!write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  expect_refused();
  EXPECT_TRUE(is_recording(path));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  EXPECT_NO_THROW(RecordingWriter{path}) << "a killed process holds no lock";
}

TEST_F(LockedRecording, OfThisProcessStaysWholeWhenASecondOneIsTried) {
  const SyntheticRun run = make_synthetic_run();
  {
    RecordingWriter writer(path);
    for (const auto& tables : run.tables) writer.tables(tables.rank, tables);
    ASSERT_TRUE(locked_by_sqlite(path));
    expect_refused();
    EXPECT_TRUE(locked_by_sqlite(path)) << "who opens and closes a file of its own ends SQLite's locks on it";
    record(writer, run);
    EXPECT_EQ(writer.error(), "");
  }
  RecordingInfo info;
  const Store store = open_recording(path, &info);
  EXPECT_TRUE(info.complete && info.problems.empty());
  EXPECT_GT(store.event_count(), 0U);
}

/// A reader's report is true of a recorder that runs, and of one that was killed.
TEST_F(LockedRecording, ReadsAsStillBeingRecordedUntilItsRecorderHasEnded) {
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t child = fork_bound();
  if (child == 0) {
    const SyntheticRun run = make_synthetic_run();
    RecordingWriter writer(path);
    for (const ev::RunTables& tables : run.tables) writer.tables(tables.rank, tables);
    writer.append(run.chunks.front());
    writer.commit();
    (void)!write(ready[1], "x", 1);
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const auto problems = [&] {
    RecordingInfo info;
    (void)open_recording(path, &info);
    EXPECT_FALSE(info.complete);
    std::string all;
    for (const auto& problem : info.problems) all += problem + "\n";
    return all;
  };
  const std::string running = problems();
  EXPECT_NE(running.find("it is still being recorded"), std::string::npos) << running;
  EXPECT_EQ(running.find("ended without closing"), std::string::npos) << running;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const std::string killed = problems();
  EXPECT_NE(killed.find("the recorder ended without closing it"), std::string::npos) << killed;
  EXPECT_EQ(killed.find("still being recorded"), std::string::npos) << killed;
}

}  // namespace
}  // namespace shardscope::store
