// What the fuzz targets share.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace shardscope::fuzz {

/// Ends the program, which the fuzzer takes for a finding: `what` must hold for every input.
inline void must(bool what) {
  if (!what) std::abort();
}

[[nodiscard]] inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// A path in memory of this process' own, removed at its end.
class ScratchPath {
 public:
  explicit ScratchPath(const std::string& ending)
      : path_("/dev/shm/shardscope-fuzz-" + std::to_string(getpid()) + ending) {}
  ~ScratchPath() { unlink(path_.c_str()); }
  ScratchPath(const ScratchPath&) = delete;
  ScratchPath& operator=(const ScratchPath&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Makes `path` hold exactly `bytes`; for decoders that open files.
inline void write_file(const std::string& path, std::string_view bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  must(fd >= 0);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    must(n > 0);
    done += static_cast<std::size_t>(n);
  }
  close(fd);
}

}  // namespace shardscope::fuzz
