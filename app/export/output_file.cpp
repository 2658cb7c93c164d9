#include "app/export/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "app/store/recording.h"

namespace shardscope::exporter {
namespace {

constexpr const char* kPart = ".part";

/// Whether `path` is something that a rename would destroy. For folders, opening them fails later.
bool stays_in_place(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

/// Removes temporary files of `path` left by killed processes: no process has the pid, none holds the lock.
void remove_what_was_left(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path beside = fs::path(path).parent_path();
  const std::string prefix = fs::path(path).filename().string() + kPart;
  std::error_code error;
  for (fs::directory_iterator entry(beside.empty() ? "." : beside, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    pid_t writer = 0;
    const char* const last = name.data() + name.size();
    const auto [rest, wrong] = std::from_chars(name.data() + prefix.size(), last, writer);
    if (wrong != std::errc{} || rest != last || writer <= 0) continue;
    if (::kill(writer, 0) == 0 || errno != ESRCH) continue;
    const int fd = ::open(entry->path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
    ::close(fd);
  }
}

}  // namespace

void refuse_recording(const std::string& path) {
  if (!store::is_recording(path)) return;
  throw std::runtime_error(path + ": is a recording, which this would destroy; choose another name");
}

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)),
      temporary_(stays_in_place(path_) ? path_ : path_ + kPart + std::to_string(::getpid())) {
  refuse_recording(path_);
  if (temporary_ != path_) remove_what_was_left(path_);
  errno = 0;
  out_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!out_) {
    throw std::runtime_error(path_ + ": cannot write it: " + std::strerror(errno) +
                             "; check that the folder exists and is writable");
  }
  if (temporary_ != path_) {
    lock_ = ::open(temporary_.c_str(), O_RDWR | O_CLOEXEC);
    if (lock_ >= 0) static_cast<void>(::flock(lock_, LOCK_EX | LOCK_NB));
  }
}

OutputFile::~OutputFile() {
  if (!committed_ && temporary_ != path_) std::remove(temporary_.c_str());
  if (lock_ >= 0) ::close(lock_);
}

void OutputFile::not_written() const {
  throw std::runtime_error(path_ +
                           ": not written: " + (errno != 0 ? std::strerror(errno) : "the disk may be full"));
}

void OutputFile::commit() {
  errno = 0;
  out_.close();
  if (!out_) not_written();
  if (temporary_ != path_ && std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw std::runtime_error(path_ + ": cannot put it in place: " + std::strerror(errno));
  }
  committed_ = true;
}

}  // namespace shardscope::exporter
