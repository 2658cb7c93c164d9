#include "app/cli/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

volatile std::sig_atomic_t g_interrupts = 0, g_first = 0;
/// Read and cleared atomically: a signal between the two would be lost.
std::atomic<bool> g_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "only then may a signal handler write it");

/// Redirects standard streams whose terminal or pipe was closed to /dev/null: writing to them would fail.
void leave_closed_streams() {
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) return;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    pollfd end{fd, 0, 0};
    if (::poll(&end, 1, 0) > 0 && (end.revents & (POLLHUP | POLLERR)) != 0) dup2(nowhere, fd);
  }
  close(nowhere);
}

void on_interrupt(int number) {
  const int saved = errno;
  if (g_first == 0) g_first = number;
  if (number == SIGHUP) leave_closed_streams();
  // When a terminal closes, the kernel and the shell may each send SIGHUP: it counts once.
  if (number != SIGHUP || g_interrupts == 0) g_interrupts = g_interrupts + 1;
  if (g_interrupts > 2) _exit(128 + number);
  errno = saved;
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  for (const int number : {SIGINT, SIGTERM, SIGQUIT}) sigaction(number, &action, nullptr);
  // Under nohup SIGHUP is ignored, and stays so.
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

void install_request_handler() {
  struct sigaction action {};
  action.sa_handler = [](int) { g_requested.store(true); };
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR2, &action, nullptr);
}

bool take_request() noexcept { return g_requested.exchange(false); }

bool interrupted() noexcept { return g_interrupts > 0; }

const char* interrupt_name() noexcept {
  switch (g_first) {
    case SIGINT:
      return "Ctrl-C";
    case SIGTERM:
      return "SIGTERM";
    case SIGQUIT:
      return "SIGQUIT";
    default:
      return "SIGHUP, its terminal was closed";
  }
}

int interrupt_code() noexcept { return 128 + g_first; }

Process::Process(const std::vector<std::string>& argv, Output output,
                 const std::vector<std::pair<std::string, std::string>>& environment) {
  int out[2] = {-1, -1}, failed[2] = {-1, -1};
  if (output == Output::capture && pipe2(out, O_CLOEXEC) != 0)
    throw UserError("pipe: " + std::string(strerror(errno)));
  const auto close_all = [&] {
    for (const int fd : {out[0], out[1], failed[0], failed[1]}) {
      if (fd >= 0) close(fd);
    }
  };
  if (pipe2(failed, O_CLOEXEC) != 0) {
    const int code = errno;
    close_all();
    throw UserError("pipe: " + std::string(strerror(code)));
  }
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  pid_ = fork();
  if (pid_ < 0) {
    const int code = errno;
    close_all();
    throw UserError("fork: " + std::string(strerror(code)));
  }
  if (pid_ == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // killing `shardscope` leaves no ranks behind
    ::signal(SIGPIPE, SIG_DFL);
    if (output == Output::capture) {
      dup2(out[1], STDOUT_FILENO);
      dup2(out[1], STDERR_FILENO);
    }
    if (output == Output::to_standard_error) {
      dup2(STDERR_FILENO, STDOUT_FILENO);
      const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    }
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    execvp(arguments[0], arguments.data());
    const int code = errno;
    [[maybe_unused]] const ssize_t ignored = write(failed[1], &code, sizeof code);
    _exit(127);
  }
  close(failed[1]);
  int code = 0;
  const ssize_t got = read(failed[0], &code, sizeof code);
  close(failed[0]);
  if (output == Output::capture) {
    close(out[1]);
    output_fd_ = out[0];
  }
  if (got == sizeof code) {
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
    if (output_fd_ >= 0) close(output_fd_);
    throw UserError(fmt::format("{}: cannot be started ({}); is it installed?", argv[0], strerror(code)));
  }
}

Process::~Process() {
  if (running()) {
    signal(SIGTERM);
    for (int i = 0; i < 30 && running(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (running()) {
      signal(SIGKILL);
      wait();
    }
  }
  if (output_fd_ >= 0) close(output_fd_);
}

bool Process::read_lines(std::chrono::milliseconds wait,
                         const std::function<void(const std::string&)>& line) {
  if (output_fd_ < 0) {
    std::this_thread::sleep_for(wait);
    return false;
  }
  pollfd waiting{output_fd_, POLLIN, 0};
  if (::poll(&waiting, 1, static_cast<int>(wait.count())) <= 0) return true;
  char buffer[4096];
  const ssize_t got = read(output_fd_, buffer, sizeof buffer);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) {
    if (!partial_.empty()) line(partial_);
    partial_.clear();
    close(output_fd_);
    output_fd_ = -1;
    return false;
  }
  partial_.append(buffer, static_cast<std::size_t>(got));
  for (std::size_t end = 0; (end = partial_.find('\n')) != std::string::npos;) {
    line(partial_.substr(0, end));
    partial_.erase(0, end + 1);
  }
  return true;
}

std::optional<int> Process::poll() {
  if (exit_code_ || pid_ < 0) return exit_code_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return exit_code_;
}

int Process::wait() {
  while (!poll()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return *exit_code_;
}

void Process::wait_for(std::chrono::milliseconds most) {
  if (!running()) return;
  const int end = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  if (end < 0) {  // a kernel before 5.3, or no file descriptor left
    std::this_thread::sleep_for(most);
    return;
  }
  pollfd waiting{end, POLLIN, 0};
  ::poll(&waiting, 1, static_cast<int>(most.count()));
  close(end);
}

void Process::signal(int number) {
  if (running()) kill(-pid_, number);
}

bool Process::running() { return pid_ > 0 && !poll(); }

}  // namespace shardscope::cli
