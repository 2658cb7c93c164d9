// What makes libFuzzer see the branches of code that g++ compiled. g++ calls __sanitizer_cov_trace_pc at each
// basic block (-fsanitize-coverage=trace-pc); libFuzzer watches regions of 8-bit counters. Here the one
// becomes the other.
#include <cstdint>

extern "C" {
// libFuzzer's; empty ones of AddressSanitizer's runtime in every other program.
void __sanitizer_cov_8bit_counters_init(std::uint8_t* begin, std::uint8_t* end);
void __sanitizer_cov_trace_pc();
void __sanitizer_cov_trace_cmpf(float, float);
void __sanitizer_cov_trace_cmpd(double, double);
}

namespace {

constexpr std::uintptr_t kCounters = std::uintptr_t{1} << 17;
std::uint8_t g_counters[kCounters];

[[gnu::constructor]] void announce() {
  __sanitizer_cov_8bit_counters_init(g_counters, g_counters + kCounters);
}

}  // namespace

[[gnu::no_sanitize_address, gnu::no_sanitize_undefined]] void __sanitizer_cov_trace_pc() {
  // Relative to the program, which lies elsewhere in every process: the same block has the same counter in
  // every run.
  const auto block = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) -
                     reinterpret_cast<std::uintptr_t>(&__sanitizer_cov_trace_pc);
  ++g_counters[(block ^ (block >> 17U)) & (kCounters - 1)];
}

// Comparisons of integers are libFuzzer's, which learns the numbers that a format asks for. Of floating-point
// numbers, which only g++ reports, it would learn nothing.
void __sanitizer_cov_trace_cmpf(float, float) {}
void __sanitizer_cov_trace_cmpd(double, double) {}
