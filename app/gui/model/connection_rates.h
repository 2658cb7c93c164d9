// Rates of events and bytes received from a live run: samples of its counters over the last minutes.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace shardscope::gui {

class ConnectionRates {
 public:
  static constexpr double kEvery = 0.5;    ///< seconds between two samples
  static constexpr double kLongest = 120;  ///< seconds of samples kept
  struct Sample {
    double at_s = 0;
    std::uint64_t events = 0, bytes = 0;  ///< totals since the connection began
  };
  /// Ignored within kEvery of the last one. Decreasing counters (another run, a re-read log) reset.
  void add(const Sample& sample);
  [[nodiscard]] bool empty() const noexcept { return samples_.size() < 2; }
  /// Per second, over the last `seconds` at most.
  [[nodiscard]] double events_per_s(double seconds = 5) const noexcept;
  [[nodiscard]] double bytes_per_s(double seconds = 5) const noexcept;
  /// Rates between consecutive samples, oldest first; x: seconds relative to the last sample, at most 0.
  struct Curve {
    std::vector<double> x, events, bytes;
  };
  [[nodiscard]] Curve curve() const;

 private:
  template <typename Counter>
  [[nodiscard]] double rate(double seconds, Counter counter) const noexcept;
  std::deque<Sample> samples_;
};

}  // namespace shardscope::gui
