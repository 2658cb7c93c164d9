// Child processes of a test or a benchmark that go with it.
#pragma once

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

namespace shardscope {

/// fork(), but the child is killed when this process ends, however it does: a benchmark that somebody kills
/// leaves nothing behind that eats the machine. (It is when the calling thread ends, so call it from the main
/// one.) In the child it returns 0, as fork() does.
inline pid_t fork_bound() {
  const pid_t parent = getpid();
  const pid_t child = fork();
  // The parent may have died before its end could be reported.
  if (child == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)) _exit(127);
  return child;
}

}  // namespace shardscope
