// Energy, clocks and limits of a rank's GPU over an interval, from its samples (event gpu_sample).
// metrics.md 2.12.
#pragma once

#include <cstdint>
#include <optional>

#include "instrumentation/event.h"

namespace shardscope::analysis {

class GpuState {
 public:
  /// A gpu_sample event. Events in order of time.
  void add(const instrumentation::Event& sample);
  /// A later interval.
  void add(const GpuState& later);

  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
  /// Samples in which the GPU had lowered its clock to keep its power limit, or because it was too hot.
  [[nodiscard]] std::uint64_t power_limited() const noexcept { return power_limited_; }
  [[nodiscard]] std::uint64_t too_hot() const noexcept { return too_hot_; }
  /// Mean clock of the multiprocessors, MHz; nullopt if it was not reported.
  [[nodiscard]] std::optional<double> sm_mhz() const noexcept;
  /// Mean power between the first and the last sample, W. nullopt with fewer than two samples of energy, or
  /// if the GPU's count of it began anew in between.
  [[nodiscard]] std::optional<double> watts() const noexcept;
  /// Energy between the same samples, J, and their distance.
  [[nodiscard]] std::optional<double> joules() const noexcept;
  [[nodiscard]] std::int64_t over_ns() const noexcept {
    return energies_ > 1 ? last_.at_ns - first_.at_ns : 0;
  }

 private:
  struct Energy {
    std::int64_t at_ns = 0, mj = 0;
  };
  std::uint64_t samples_ = 0, power_limited_ = 0, too_hot_ = 0;
  std::uint64_t clocks_ = 0, mhz_ = 0;
  std::uint64_t energies_ = 0;
  bool restarted_ = false;  ///< the energy decreased
  Energy first_, last_;
};

}  // namespace shardscope::analysis
