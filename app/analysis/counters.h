// Sampled counters of a rank over time: those of the program (event counter) and those that the library
// samples (processor_wait, gpu_sample). One definition for the window's curves and for exports.
// metrics.md 2.15.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/store/store.h"

namespace shardscope::analysis {

/// The value from `at_ns` until `until_ns`, or the next sample if that comes before. NaN: unknown.
struct CounterSample {
  static constexpr std::int64_t kUntilNext = INT64_MAX;
  std::int64_t at_ns = 0;
  double value = 0;
  std::int64_t until_ns = kUntilNext;
};
struct CounterSeries {
  std::string name;   ///< "GPU power"
  std::string unit;   ///< "W"; empty: none
  bool rate = false;  ///< each value is the mean over its interval, not the state at a time
  bool own = false;   ///< of the program
  std::vector<CounterSample> samples;
};

/// Collects the counters of one rank from its events.
class CounterLog {
 public:
  /// False for events of other kinds. Events in order of time.
  bool take(const store::Store& store, std::uint32_t rank, const instrumentation::Event& event);
  /// In order of their first sample; only ever appended to.
  [[nodiscard]] std::span<const CounterSeries> series() const noexcept { return series_; }
  [[nodiscard]] const CounterSeries* find(const std::string& name) const noexcept;

 private:
  /// An accumulated value, of which a rate is shown.
  struct Total {
    std::int64_t at_ns = 0;
    double value = 0;
  };
  CounterSeries& series_of(const char* name, const char* unit, bool rate);
  void take_own(const store::Store& store, std::uint32_t rank, const instrumentation::Event& event);
  void take_gpu(const instrumentation::Event& event);
  void take_processors(const instrumentation::Event& event);

  std::vector<CounterSeries> series_;
  std::map<std::uint32_t, std::size_t> own_;  ///< the program's counters by id: index in series_
  std::map<std::size_t, Total> totals_;       ///< by index in series_
};

/// All of a rank's counters in [begin_ns, end_ns); empty without reading where it has none.
[[nodiscard]] CounterLog counters_of(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                     std::int64_t end_ns);
/// Whether a rank has any.
[[nodiscard]] bool has_counters(const store::Store& store, std::uint32_t rank);

}  // namespace shardscope::analysis
