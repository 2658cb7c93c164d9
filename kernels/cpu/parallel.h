// Divides a range among at most `threads` OpenMP threads. With one thread OpenMP is not entered, so a rank
// that shares its cores with others never wakes a thread pool.
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardscope::kernels::cpu {

/// Calls body(begin, end, worker) on consecutive parts of [0, n), each a multiple of `unit` except
/// the last; worker is in [0, threads). Parts below `least` elements are not split further. Returns
/// when all parts are done: the barrier at the end of the parallel region. The body may use worker to
/// index scratch memory. An exception cannot leave a parallel region: with several workers it
/// terminates the process. Kernels choose `unit` so that no result depends on the boundaries of
/// parts.
template <class Body>
void parallel_ranges(int threads, std::int64_t n, std::int64_t unit, std::int64_t least, const Body& body) {
  const std::int64_t workers =
      std::clamp<std::int64_t>(n / std::max<std::int64_t>(least, 1), 1, std::max(threads, 1));
  if (workers == 1) {
    if (n > 0) body(std::int64_t{0}, n, 0);
    return;
  }
  const std::int64_t units = (n + unit - 1) / unit;
  const std::int64_t share = (units + workers - 1) / workers * unit;
#pragma omp parallel for num_threads(static_cast <int>(workers)) schedule(static, 1)
  for (std::int64_t worker = 0; worker < workers; ++worker) {
    const std::int64_t begin = std::min(worker * share, n);
    const std::int64_t end = std::min(begin + share, n);
    // Rounding up to units may leave nothing for the last workers.
    if (begin < end) body(begin, end, static_cast<int>(worker));
  }
}

/// The address of element i.
inline void* at(void* data, std::size_t element_bytes, std::int64_t i) noexcept {
  return static_cast<char*>(data) + static_cast<std::ptrdiff_t>(element_bytes) * i;
}
inline const void* at(const void* data, std::size_t element_bytes, std::int64_t i) noexcept {
  return static_cast<const char*>(data) + static_cast<std::ptrdiff_t>(element_bytes) * i;
}

}  // namespace shardscope::kernels::cpu
