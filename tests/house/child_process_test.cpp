// What the tests and benchmarks start goes with them.
#include "tests/child_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include <array>

namespace shardscope {
namespace {

TEST(ChildProcess, EndsWithAParentThatIsKilled) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t parent = fork_bound();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    if (fork_bound() == 0) {
      if (write(ends[1], "x", 1) != 1) _exit(1);
      alarm(60);  // where this test fails, it leaves nothing behind for long
    }
    for (;;) pause();
  }
  close(ends[1]);
  char word = 0;
  ASSERT_EQ(read(ends[0], &word, 1), 1) << "the child is there";
  ASSERT_EQ(kill(parent, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  // The pipe ends when the last process that could write to it has.
  pollfd end{.fd = ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&end, 1, 20'000), 1);
  EXPECT_EQ(end.revents & POLLIN, 0);
  EXPECT_NE(end.revents & POLLHUP, 0);
  close(ends[0]);
}

}  // namespace
}  // namespace shardscope
