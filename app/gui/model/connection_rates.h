// How much comes over the connection to a live run: samples of its counters, as rates over the last minutes.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace shardscope::gui {

class ConnectionRates {
 public:
  static constexpr double kEvery = 0.5;    ///< seconds between two samples
  static constexpr double kLongest = 120;  ///< seconds that are kept
  struct Sample {
    double at_s = 0;
    std::uint64_t events = 0, bytes = 0;  ///< since the connection began
  };
  /// Taken when the last one is old enough. Counters that fall begin anew: another run, or its log again.
  void add(const Sample& sample);
  [[nodiscard]] bool empty() const noexcept { return samples_.size() < 2; }
  /// Per second, over the last `seconds` at most.
  [[nodiscard]] double events_per_s(double seconds = 5) const noexcept;
  [[nodiscard]] double bytes_per_s(double seconds = 5) const noexcept;
  /// Between each two samples; x: seconds before the last one, from the oldest on, not above 0.
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
