#include "resident_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace shardscope::python {
namespace {

/// The second number of /proc/self/statm, in pages. The file stays open: opening it takes longer than reading
/// it, once a step. In a forked child it would be the parent's, so it is not read there.
std::int64_t resident_bytes() {
  static const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  std::array<char, 128> text;
  const ssize_t size = file < 0 ? -1 : pread(file, text.data(), text.size(), 0);
  if (size <= 0) throw std::runtime_error(std::string("/proc/self/statm: ") + std::strerror(errno));
  const char* end = text.data() + size;
  std::int64_t all = 0, resident = 0;
  const std::from_chars_result first = std::from_chars(text.data(), end, all);
  if (first.ec != std::errc{} || first.ptr == end ||
      std::from_chars(first.ptr + 1, end, resident).ec != std::errc{})
    throw std::runtime_error("/proc/self/statm: holds no numbers");
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

void add_resident_memory(nanobind::module_& module) { module.def("resident_bytes", &resident_bytes); }

}  // namespace shardscope::python
