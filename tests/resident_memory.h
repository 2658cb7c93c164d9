// What a test or a benchmark takes.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace shardscope {

/// Resident memory of this process now, bytes.
inline std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t size = 0, pages = 0;
  file >> size >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

inline double resident_mib() { return static_cast<double>(resident_bytes()) / (1 << 20); }

}  // namespace shardscope
