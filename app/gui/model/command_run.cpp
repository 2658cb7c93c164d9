#include "app/gui/model/command_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX declares it nowhere

namespace shardscope::gui {
namespace {

namespace fs = std::filesystem;

/// The two ends of a pipe, closed on destruction.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  [[nodiscard]] int read_end() const { return ends_[0]; }
  [[nodiscard]] int write_end() const { return ends_[1]; }
  void close_end(std::size_t which) {
    if (ends_[which] >= 0) close(ends_[which]);
    ends_[which] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// Appends available data; false at the end of the stream.
bool take(int fd, std::string& text) {
  std::array<char, 1 << 14> buffer{};
  const ssize_t n = read(fd, buffer.data(), buffer.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  constexpr std::size_t kMost = std::size_t{64} << 20;
  if (text.size() < kMost) text.append(buffer.data(), static_cast<std::size_t>(n));
  return n > 0;
}

/// Removes the command's name at the begin of each line.
std::string without_program_name(std::string text) {
  constexpr const char* kName = "shardscope: ";
  for (std::size_t at = text.find(kName); at != std::string::npos; at = text.find(kName, at)) {
    if (at == 0 || text[at - 1] == '\n')
      text.erase(at, std::strlen(kName));
    else
      ++at;
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

std::string shardscope_program() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    for (const char* beside : {"shardscope", "../bin/shardscope", "../../bin/shardscope"}) {
      const fs::path path = self.parent_path() / beside;
      if (access(path.c_str(), X_OK) == 0) return path.lexically_normal().string();
    }
  }
  return "shardscope";
}

std::string temporary_recording(const std::string& what) {
  static std::atomic<int> runs = 0;
  const std::string name =
      "shardscope-" + what + "-" + std::to_string(getpid()) + "-" + std::to_string(runs++) + ".zscope";
  return (fs::temp_directory_path() / name).string();
}

CommandRun::~CommandRun() {
  cancel();
  if (thread_.joinable()) thread_.join();
}

void CommandRun::cancel() {
  cancelled_ = true;
  // The command has its own process group, so that its children end with it.
  const std::lock_guard lock(mutex_);
  if (child_ > 0) kill(-child_, SIGTERM);
}

void CommandRun::start(std::vector<std::string> argv, Done done) {
  cancel();
  if (thread_.joinable()) thread_.join();
  cancelled_ = false;
  running_ = true;
  thread_ = std::thread([this, argv = std::move(argv), done = std::move(done)] {
    done(run(argv));
    running_ = false;
  });
}

CommandRun::Ended CommandRun::run(const std::vector<std::string>& argv) {
  Ended ended;
  Pipe out;
  Pipe err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out.write_end(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  pid_t child = -1;
  const int failed = posix_spawnp(&child, pointers[0], &actions, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  out.close_end(1);
  err.close_end(1);
  if (failed != 0) {
    ended.problem = argv[0] + ": " + std::strerror(failed) + "; it is installed beside this program";
    return ended;
  }
  {
    const std::lock_guard lock(mutex_);
    child_ = child;
    if (cancelled_) kill(-child, SIGTERM);
  }
  bool out_open = true;
  bool err_open = true;
  while (out_open || err_open) {
    std::array<pollfd, 2> fds{pollfd{out_open ? out.read_end() : -1, POLLIN, 0},
                              pollfd{err_open ? err.read_end() : -1, POLLIN, 0}};
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
    if (fds[0].revents != 0) out_open = take(out.read_end(), ended.out);
    if (fds[1].revents != 0) err_open = take(err.read_end(), ended.words);
  }
  // Waits without reaping: the process id stays reserved, and cancel() may use it.
  siginfo_t exited{};
  while (waitid(P_PID, static_cast<id_t>(child), &exited, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  int status = 0;
  {
    const std::lock_guard lock(mutex_);
    child_ = -1;
    waitpid(child, &status, 0);
  }
  ended.words = without_program_name(std::move(ended.words));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return ended;
  ended.problem = cancelled_            ? "ended before it was done"
                  : ended.words.empty() ? argv[0] + " failed"
                                        : ended.words;
  return ended;
}

}  // namespace shardscope::gui
