#include "app/cli/detach.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "app/cli/say.h"
#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;

std::string log_of(const DetachOptions& options, const std::string& recording) {
  const std::string name = !options.log.empty() ? options.log
                           : !recording.empty() ? recording + ".log"
                                                : std::string("shardscope.log");
  return fs::absolute(name).lexically_normal().string();
}

struct Log {
  std::string path;
  int fd = -1;
  off_t begin = 0;  ///< size before this run's output
};

/// Appends: the file may have output of an earlier run.
Log open_log(const std::string& path) {
  Log log{path, open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666), 0};
  if (log.fd < 0) {
    throw UserError(
        fmt::format("--log {}: cannot be written: {}; choose another file", path, strerror(errno)));
  }
  // Several runs may share a log.
  const std::string head =
      fmt::format("shardscope: started {:%Y-%m-%d %H:%M:%S}\n", fmt::localtime(std::time(nullptr)));
  if (write(log.fd, head.data(), head.size()) != static_cast<ssize_t>(head.size())) {
    throw UserError(fmt::format("--log {}: cannot be written: is there room for it?", path));
  }
  log.begin = lseek(log.fd, 0, SEEK_END);
  return log;
}

void show_rest(const Log& log) {
  std::array<char, 4096> buffer{};
  off_t at = log.begin;
  for (ssize_t got = 0; (got = pread(log.fd, buffer.data(), buffer.size(), at)) > 0; at += got) {
    std::fwrite(buffer.data(), 1, static_cast<std::size_t>(got), stderr);
  }
}

/// Reads `fd` until the other end is closed.
std::string read_all(int fd) {
  std::string text;
  std::array<char, 512> buffer{};
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

int in_background(const Log& log, int parent, const std::function<int(const UnderWay&)>& work) {
  setsid();
  const int nowhere = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nowhere >= 0) dup2(nowhere, STDIN_FILENO);
  dup2(log.fd, STDOUT_FILENO);
  dup2(log.fd, STDERR_FILENO);
  ::signal(SIGPIPE, SIG_IGN);  // the starting process may be gone
  return work([parent](const std::string& watch_command) {
    [[maybe_unused]] const ssize_t written = write(parent, watch_command.data(), watch_command.size());
    close(parent);
  });
}

}  // namespace

CLI::Option* add_detach_options(CLI::App& verb, DetachOptions& options) {
  CLI::Option* detach =
      verb.add_flag("--detach", options.detach,
                    "Continue in the background when the terminal or the ssh connection is closed");
  verb.add_option(
          "--log", options.log,
          "With --detach: append the output to this file (default: RECORDING.log, else shardscope.log)")
      ->needs(detach);
  return detach;
}

int detached(const DetachOptions& options, const std::string& recording,
             const std::function<int(const UnderWay&)>& work) {
  const Log log = open_log(log_of(options, recording));
  int up[2] = {-1, -1};
  if (pipe2(up, O_CLOEXEC) != 0) throw UserError("pipe: " + std::string(strerror(errno)));
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw UserError("fork: " + std::string(strerror(errno)));
  if (pid == 0) {
    close(up[0]);
    return in_background(log, up[1], work);
  }
  close(up[1]);
  const std::string watch_command = read_all(up[0]);
  close(up[0]);
  if (watch_command.empty()) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    show_rest(log);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  say("{:<8} {}\n{:<8} {}\n{:<8} {}\n{:<8} kill {}\n", "pid", pid, "log", log.path, "view", watch_command,
      "stop", pid);
  return 0;
}

}  // namespace shardscope::cli
