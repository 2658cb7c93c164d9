// The instructions of kernels/cuda/ptx.cuh as the PTX ISA describes them, by the lanes of a warp on fibers. A
// copy in the background happens when it is waited for, not before.
#pragma once

#include <deque>
#include <vector>

#include "kernels/cuda/device.cuh"

namespace shardscope::kernels::cuda {

namespace host {

struct Copy {
  void* to;
  const void* from;
  bool valid;
};
/// Of each thread of the block that runs: groups under way, the last one not yet committed.
inline std::deque<std::vector<Copy>>& copies() {
  static thread_local std::vector<std::deque<std::vector<Copy>>> all(host_cuda::kMostThreads);
  std::deque<std::vector<Copy>>& mine = all[host_cuda::thread_number()];
  if (mine.empty()) mine.emplace_back();
  return mine;
}

template <class T>
float element(std::uint64_t word, int half) {
  const auto bits = static_cast<std::uint16_t>(word >> (16 * half));
  T value;
  __builtin_memcpy(&value, &bits, sizeof bits);
  return to_float(value);
}

}  // namespace host

inline void copy_16_bytes(void* to, const void* from, bool valid) {
  if ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % 16 != 0)
    host_cuda::undefined("a copy of 16 bytes that is not aligned");
  host::copies().back().push_back({to, from, valid});
}
inline void commit_copies() { host::copies().emplace_back(); }
template <int kLeft>
void wait_copies() {
  auto& groups = host::copies();
  while (groups.size() > kLeft + 1) {
    for (const host::Copy& copy : groups.front()) {
      if (copy.valid) {
        __builtin_memcpy(copy.to, copy.from, 16);
      } else {
        __builtin_memset(copy.to, 0, 16);
      }
    }
    groups.pop_front();
  }
}

struct Matrices {
  unsigned r[4];
};
inline Matrices load_matrices(const void* row) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) host_cuda::undefined("ldmatrix: a row is not aligned");
  const auto* all = host_cuda::exchange(0xFFFFFFFFU, row);
  const unsigned lane = host_cuda::lane();
  Matrices f;
  for (unsigned m = 0; m < 4; ++m) {
    const auto* from = host_cuda::of_lane<const unsigned char*>(all, m * 8 + lane / 4);
    __builtin_memcpy(&f.r[m], from + lane % 4 * 4, 4);
  }
  return f;
}
inline Matrices load_matrices_transposed(const void* row) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) host_cuda::undefined("ldmatrix: a row is not aligned");
  const auto* all = host_cuda::exchange(0xFFFFFFFFU, row);
  const unsigned lane = host_cuda::lane();
  Matrices f;
  for (unsigned m = 0; m < 4; ++m) {
    std::uint16_t pair[2];
    for (unsigned i = 0; i < 2; ++i) {
      const auto* from = host_cuda::of_lane<const unsigned char*>(all, m * 8 + lane % 4 * 2 + i);
      __builtin_memcpy(&pair[i], from + lane / 4 * 2, 2);
    }
    f.r[m] = pair[0] | static_cast<unsigned>(pair[1]) << 16;
  }
  return f;
}

template <class T>
void multiply_16x8x16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], T) {
  const auto* all = host_cuda::warp_exchange({{a[0], a[1], a[2], a[3], b[0], b[1]}});
  const unsigned g = host_cuda::lane() / 4;
  const unsigned t = host_cuda::lane() % 4;
  for (unsigned e = 0; e < 4; ++e) {
    const unsigned lower = e / 2;  // row g or g + 8
    const unsigned column = 2 * t + e % 2;
    float sum = 0;
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned place = k % 8 / 2;
      const float left =
          host::element<T>(all[g * 4 + place].word[k / 8 * 2 + lower], static_cast<int>(k % 2));
      const float right = host::element<T>(all[column * 4 + place].word[4 + k / 8], static_cast<int>(k % 2));
      sum = std::fma(left, right, sum);
    }
    c[e] += sum;
  }
}

}  // namespace shardscope::kernels::cuda
