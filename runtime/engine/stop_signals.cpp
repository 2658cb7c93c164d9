#include "runtime/engine/stop_signals.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <utility>

namespace shardscope::engine {
namespace {

sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGUSR1);
  return set;
}

}  // namespace

StopSignals::StopSignals(std::function<void()> on_stop) : on_stop_(std::move(on_stop)) {
  const sigset_t set = stop_set();
  // Before the thread starts, which inherits the mask: a thread that does not block a signal would receive it
  // and end the process.
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { wait_for_signals(); });
}

// Ends within one slice of the wait; a signal that arrives in between stays pending.
StopSignals::~StopSignals() {
  ends_.store(true);
  thread_.join();
}

void StopSignals::wait_for_signals() {
  const sigset_t set = stop_set();
  while (!ends_.load()) {
    // A tenth of a second: the longest that the destructor waits.
    const timespec slice{0, 100'000'000};
    const int signal = sigtimedwait(&set, nullptr, &slice);
    // Timeout, or another signal interrupted the wait.
    if (signal <= 0) continue;
    // The second signal: no destructor runs, since it might wait for the run that hangs. 128 + signal, as in
    // shells.
    if (received_.exchange(signal) != 0) _exit(128 + signal);
    on_stop_();
  }
}

}  // namespace shardscope::engine
