#include "abort_end.h"

#include <cxxabi.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <typeinfo>

namespace shardscope::python {
namespace {

constexpr int kExitCode = 128 + SIGABRT;  ///< as a shell has it
/// How long an abort is held up at most: a collector confirms in milliseconds, or is not there.
constexpr int kMostNaps = 1500;
constexpr timespec kNap{0, 1'000'000};
constexpr std::size_t kMostText = 1000;

/// [Note: what a signal handler may do]
/// It posts a semaphore and sleeps; the run is ended by a thread that waits for nothing else. The thread that
/// aborts may hold any lock, the GIL included: the ending thread takes no lock of Python's, and the handler
/// gives up where it is stuck. Never destroyed: handlers may run until the process ends.
struct Aborts {
  sem_t asked{};
  std::atomic<bool> ended{false};
  std::atomic<bool> in_handler{false};
  pid_t pid = 0;  ///< 0: the thread has not been started
  pthread_t thread{};
  std::mutex mutex;  ///< of run
  shardscope_run* run = nullptr;
  struct sigaction before {};
  std::terminate_handler terminate_before = nullptr;
  char text[kMostText + 1] = "SIGABRT";  ///< written by the thread that aborts, before it raises
};
Aborts& aborts() {
  static auto* const state = new Aborts;
  return *state;
}

void end_when_asked() {
  Aborts& state = aborts();
  while (sem_wait(&state.asked) != 0) {
  }
  {
    const std::lock_guard lock(state.mutex);
    if (state.run != nullptr) (void)shardscope_finish(state.run, kExitCode, state.text);
  }
  state.ended.store(true);
}

/// A child of fork has no thread to end its parent's run.
bool can_end(const Aborts& state) {
  return getpid() == state.pid && pthread_equal(pthread_self(), state.thread) == 0;
}

void on_abort(int) {
  Aborts& state = aborts();
  const int error = errno;
  if (can_end(state) && !state.in_handler.exchange(true)) {
    (void)sem_post(&state.asked);
    for (int naps = 0; naps < kMostNaps && !state.ended.load(); ++naps) (void)nanosleep(&kNap, nullptr);
  }
  // Raised again for who came before, when this handler has returned and the signal is not blocked any more.
  (void)sigaction(SIGABRT, &state.before, nullptr);
  (void)raise(SIGABRT);
  errno = error;
}

std::string type_name_of(const std::exception& error) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : typeid(error).name();
}

void on_terminate() {
  Aborts& state = aborts();
  if (can_end(state)) {
    try {
      if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    } catch (const std::exception& error) {
      const std::string text = "SIGABRT: not caught: " + type_name_of(error) + ": " + error.what();
      std::strncpy(state.text, text.c_str(), kMostText);
    } catch (...) {
    }
  }
  state.terminate_before();  // aborts
  std::abort();
}

/// Signals are for the script's threads.
void start_thread(Aborts& state) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(end_when_asked);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  (void)pthread_setname_np(thread.native_handle(), "shardscope-end");
  state.thread = thread.native_handle();
  thread.detach();
  state.pid = getpid();
}

}  // namespace

void end_on_abort(shardscope_run* run) {
  Aborts& state = aborts();
  struct sigaction now {};
  if (sigaction(SIGABRT, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) return;
  if (state.pid != getpid()) {
    if (state.pid != 0 || sem_init(&state.asked, 0, 0) != 0) return;
    start_thread(state);
  }
  {
    const std::lock_guard lock(state.mutex);
    state.run = run;
  }
  // Still there where another handler was set over it that calls it.
  if (state.terminate_before == nullptr) {
    state.terminate_before = std::set_terminate(on_terminate);
    struct sigaction ours {};
    ours.sa_handler = on_abort;
    ours.sa_flags = SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    (void)sigaction(SIGABRT, &ours, &state.before);
  }
}

void end_no_more_on_abort() {
  Aborts& state = aborts();
  if (state.pid != getpid()) return;
  {
    const std::lock_guard lock(state.mutex);
    state.run = nullptr;
  }
  struct sigaction now {};
  if (sigaction(SIGABRT, nullptr, &now) != 0 || now.sa_handler != on_abort ||
      std::get_terminate() != on_terminate)
    return;
  (void)sigaction(SIGABRT, &state.before, nullptr);
  (void)std::set_terminate(state.terminate_before);
  state.terminate_before = nullptr;
}

}  // namespace shardscope::python
