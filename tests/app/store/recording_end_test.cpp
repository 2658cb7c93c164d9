// How a recording says that it ended: after a crash, on a full disk, and before anything came.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "app/store/rank_end.h"
#include "app/store/recording.h"
#include "tests/app/store/event_builder.h"
#include "tests/app/store/recording_files.h"

namespace shardscope::store {
namespace {

namespace fs = std::filesystem;

TEST_F(RecordingTest, KilledWriterLeavesAReadableFile) {
  const SyntheticRun run = make_synthetic_run();
  const std::string path = file("killed.zscope");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    RecordingWriter writer(path);
    for (const ev::RunTables& tables : run.tables) writer.tables(tables.rank, tables);
    for (std::size_t i = 0; i < run.chunks.size(); ++i) {
      writer.append(run.chunks[i]);
      if (i == 9) writer.commit();
    }
    ::kill(::getpid(), SIGKILL);  // chunks 10 and later were never committed
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  RecordingInfo info;
  const Store read = open_recording(path, &info);
  EXPECT_FALSE(info.complete);
  EXPECT_GE(info.chunks, 10U);
  EXPECT_TRUE(mentions(info, "was not finished"));
  EXPECT_EQ(read.tables().world, 4U);
  std::uint64_t events = 0;
  for (std::size_t i = 0; i < info.chunks; ++i) events += run.chunks[i].events.size();
  EXPECT_EQ(read.event_count(), events);
  // The file alone, as someone would copy it, opens too.
  const std::string copy = file("copied.zscope");
  fs::copy_file(path, copy);
  RecordingInfo copied;
  EXPECT_NO_THROW((void)open_recording(copy, &copied));
}

TEST_F(RecordingTest, FullDiskIsAnErrorTextAndKeepsWhatWasWritten) {
  const SyntheticRun run = make_synthetic_run({.steps = 12});
  const std::string path = file("full.zscope");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // A limit on the size of files fails writes just as a full disk does.
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{300'000, 300'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    RecordingWriter writer(path);
    for (const ev::RunTables& tables : run.tables) writer.tables(tables.rank, tables);
    std::size_t committed = 0;
    for (int round = 0; round < 20 && writer.error().empty(); ++round) {
      for (Chunk chunk : run.chunks) {
        chunk.sequence += static_cast<std::uint64_t>(round) * 10'000;
        writer.append(chunk);
        writer.commit();
        if (writer.error().empty()) ++committed;
      }
    }
    Store store;
    writer.finish(store);  // must do nothing more
    const bool said = writer.error().find(path) != std::string::npos;
    ::_exit(said && committed > 0 ? 7 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  RecordingInfo info;
  const Store read = open_recording(path, &info);
  EXPECT_FALSE(info.complete);
  EXPECT_GT(info.chunks, 0U);
  EXPECT_GT(read.event_count(), 0U);
  EXPECT_TRUE(mentions(info, "recording stopped at ")) << testing::PrintToString(info.problems);
}

/// In a small file system that only this process sees.
int record_on_a_small_disk(const std::string& folder, const SyntheticRun& run) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("small", folder.c_str(), "tmpfs", 0, "size=4m") != 0) {
    return 77;
  }
  const std::string path = folder + "/small.zscope";
  std::uint64_t events = 0;
  {
    RecordingWriter writer(path);
    for (const ev::RunTables& tables : run.tables) writer.tables(tables.rank, tables);
    for (std::size_t i = 0; i < run.chunks.size(); ++i) {
      // Somebody else takes all the room there is; what the recording has kept for itself is not there.
      if (i == 6) {
        std::ofstream other(folder + "/other", std::ios::binary);
        for (const std::string block(512, 'x'); other.write(block.data(), 512).flush();) continue;
      }
      writer.append(run.chunks[i]);
      writer.commit();
      events += run.chunks[i].events.size();
      if (writer.error().empty() != (i < 6)) return 1;
    }
    if (writer.error().find("full") == std::string::npos) return 2;
    Store store;
    writer.finish(store);
  }
  RecordingInfo info;
  const Store read = open_recording(path, &info);
  if (info.complete || info.events == 0 || info.events >= events) return 3;
  const std::string lacking = "): " + std::to_string(events - info.events) + " events that came until";
  bool says_why = false, says_more = false;
  for (const std::string& problem : info.problems) {
    const bool why = problem.find("recording stopped at ") != std::string::npos;
    says_why = says_why || (why && problem.find(lacking) != std::string::npos);
    // A rank's count is ahead of the chunks; nothing else is wrong, the log least of all.
    says_more =
        says_more || (!why && problem.find(" that were received are not in the file") == std::string::npos);
    std::fprintf(stderr, "%s\n", problem.c_str());
  }
  return says_why && !says_more ? 7 : 4;
}

TEST_F(RecordingTest, AfterAFullDiskTheFileSaysWhyItEndsAndWhatItLacks) {
  const SyntheticRun run = make_synthetic_run({.world = 2, .steps = 12, .chunk_events = 500});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(record_on_a_small_disk(folder_.string(), run));
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no right to mount a small disk";
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

/// No event of theirs is missing, though one's events end a moment before the other's.
TEST_F(RecordingTest, RanksThatWereConnectedWhenItEndedOutlivedIt) {
  Store store;
  {
    RecordingWriter writer(file("stopped.zscope"));
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const Chunk chunk = ChunkBuilder(rank).host(100 + 10 * rank, ev::EventKind::tokens, 0).chunk;
      store.ingest(chunk);
      writer.append(chunk);
      RankRow row;
      row.rank = rank;
      row.events = 1;
      row.connected = true;
      store.set_rank(row);
    }
    writer.finish(store);
    ASSERT_EQ(writer.error(), "");
  }
  RecordingInfo info;
  const Store read = open_recording(file("stopped.zscope"), &info);
  EXPECT_TRUE(info.complete);
  EXPECT_TRUE(read.gaps().empty());
  EXPECT_FALSE(first_failure(read));
  for (const RankRow& row : read.ranks())
    EXPECT_EQ(rank_end(read, row).how, RankEnd::How::cut_off) << row.rank;
}

TEST_F(RecordingTest, OneInWhichNothingWasCommittedSaysSoAndWhatToDo) {
  RecordingInfo info;
  const auto says = [&](const char* what) {
    ASSERT_EQ(info.problems.size(), 1U) << testing::PrintToString(info.problems);
    EXPECT_THAT(info.problems[0], testing::HasSubstr("nothing is in it: "));
    EXPECT_THAT(info.problems[0], testing::HasSubstr(what));
  };
  {
    RecordingWriter writer(file("begun.zscope"));
    (void)open_recording(file("begun.zscope"), &info);
    says("look again later");
    fs::copy_file(file("begun.zscope"), file("copy.zscope"));
    (void)open_recording(file("copy.zscope"), &info);
    says("copy FILE-wal together with FILE");
    Store store;
    writer.finish(store);
  }
  (void)open_recording(file("begun.zscope"), &info);
  says("no rank came");
}

}  // namespace
}  // namespace shardscope::store
