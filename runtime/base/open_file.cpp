#include "runtime/base/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace shardscope::base {

int open_file(const std::string& path) {
  const auto cannot = [] {
    return std::string("cannot be opened: ") + std::strerror(errno) + "; check the path";
  };
  // Without O_NONBLOCK a pipe without a writer blocks here.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) throw FileError(cannot());
  struct stat status {};
  std::string why;
  if (::fstat(file, &status) != 0) {
    why = cannot();
  } else if (S_ISDIR(status.st_mode)) {
    why = "is a folder; give a file";
  } else if (!S_ISREG(status.st_mode)) {
    why = "is a pipe or a device, not a file; write it to a file first";
  }
  if (why.empty()) return file;
  ::close(file);
  throw FileError(why);
}

std::string read_file(const std::string& path) {
  const int file = open_file(path);
  std::string text;
  char part[65536];
  ssize_t got = 0;
  do {
    got = ::read(file, part, sizeof part);
    if (got > 0) text.append(part, static_cast<std::size_t>(got));
  } while (got > 0 || (got < 0 && errno == EINTR));
  const int code = got < 0 ? errno : 0;
  ::close(file);
  if (code != 0) throw FileError(std::string("cannot be read: ") + std::strerror(code) + "; check the disk");
  return text;
}

}  // namespace shardscope::base
