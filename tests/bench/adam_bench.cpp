// The CPU optimizer against the machine's copy bandwidth, measured in the same run: AdamW streams four or
// five arrays, a copy two, and both are as fast as memory lets them. Rounds alternate (copy, AdamW, copy,
// ...) and the medians are compared, so that what else the machine does falls on both.
//   adam_bench [MILLION_ELEMENTS=64] [ROUNDS=15] [THREADS=1]
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/ops.h"
#include "tests/bench/timing.h"

namespace {

using namespace shardscope::kernels;  // NOLINT(google-build-using-namespace): a program of its own
using shardscope::median, shardscope::seconds;

/// Memory as the arenas hand it out: whole pages, touched before it is timed.
template <typename T>
T* pages(std::int64_t elems) {
  const std::size_t bytes = static_cast<std::size_t>(elems) * sizeof(T);
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    std::perror("mmap");
    std::exit(1);
  }
  std::memset(data, 0, bytes);
  return static_cast<T*>(data);
}

/// The best copy: stores that go past the cache, so that no line is read only to be overwritten.
void copy_past_cache(float* to, const float* from, std::int64_t n) {
#if defined(__AVX__)
  for (std::int64_t i = 0; i + 16 <= n; i += 16) {
    _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
    _mm256_stream_ps(to + i + 8, _mm256_loadu_ps(from + i + 8));
  }
#elif defined(__x86_64__)
  for (std::int64_t i = 0; i + 4 <= n; i += 4) _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
#else
  std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
#endif
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

void on_threads(int threads, std::int64_t n, const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (threads == 1) return body(0, n);
  std::vector<std::thread> team;
  const std::int64_t share = n / threads / 1024 * 1024;
  for (int t = 0; t < threads; ++t) {
    team.emplace_back([&, t] { body(t * share, t + 1 == threads ? n : (t + 1) * share); });
  }
  for (std::thread& thread : team) thread.join();
}

struct Form {
  const char* name;
  DType grad;
  bool param16;
  double bytes;  ///< per element
};

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t n = (argc > 1 ? std::atoll(argv[1]) : 64) << 20;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  const int threads = argc > 3 ? std::atoi(argv[3]) : 1;
  float* master = pages<float>(n);
  float* momentum = pages<float>(n);
  float* variance = pages<float>(n);
  float* grad = pages<float>(n);
  std::uint16_t* param = pages<std::uint16_t>(n);
  float* to = pages<float>(n);
  AdamW settings;
  settings.step = 10;

  const Form forms[] = {{"fp32 gradient", DType::f32, false, 28},
                        {"bf16 gradient, bf16 parameters written", DType::bf16, true, 28},
                        {"fp32 gradient, bf16 parameters written", DType::f32, true, 30}};
  std::printf("%lld Mi elements, %d threads, medians of %d rounds\n", static_cast<long long>(n >> 20),
              threads, rounds);
  for (const Form& form : forms) {
    std::vector<double> copies, plain, updates;
    for (int round = 0; round < rounds; ++round) {
      copies.push_back(8.0 * static_cast<double>(n) / seconds([&] {
                         on_threads(threads, n, [&](std::int64_t b, std::int64_t e) {
                           copy_past_cache(to + b, master + b, e - b);
                         });
                       }));
      plain.push_back(8.0 * static_cast<double>(n) / seconds([&] {
                        on_threads(threads, n, [&](std::int64_t b, std::int64_t e) {
                          std::memcpy(to + b, master + b, static_cast<std::size_t>(e - b) * sizeof(float));
                        });
                      }));
      updates.push_back(form.bytes * static_cast<double>(n) / seconds([&] {
                          adamw_step({Backend::cpu, nullptr, nullptr, threads}, master, momentum, variance,
                                     form.param16 ? Ptr{param, DType::bf16} : Ptr{}, {grad, form.grad}, n,
                                     settings);
                        }));
    }
    const double best = std::max(median(copies), median(plain));
    std::printf(
        "%-42s %6.2f GB/s; copy past the cache %6.2f, memcpy %6.2f; AdamW at %.0f %% of the best copy\n",
        form.name, median(updates) / 1e9, median(copies) / 1e9, median(plain) / 1e9,
        100 * median(updates) / best);
  }
  return 0;
}
