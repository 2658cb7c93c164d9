#include "app/analysis/gpu_state.h"

#include "instrumentation/event_fields.h"

namespace shardscope::analysis {

namespace ev = instrumentation;

void GpuState::add(const ev::Event& sample) {
  const auto fields = ev::as<ev::EventKind::gpu_sample>(sample);
  ++samples_;
  power_limited_ += fields.power_limited ? 1 : 0;
  too_hot_ += fields.too_hot ? 1 : 0;
  if (fields.sm_mhz != ev::kNoId) {
    ++clocks_;
    mhz_ += fields.sm_mhz;
  }
  if (fields.energy_mj <= 0) return;  // not reported
  const Energy now{static_cast<std::int64_t>(sample.ticks), fields.energy_mj};
  if (energies_++ == 0) first_ = now;
  restarted_ = restarted_ || now.mj < last_.mj;
  last_ = now;
}

void GpuState::add(const GpuState& later) {
  samples_ += later.samples_;
  power_limited_ += later.power_limited_;
  too_hot_ += later.too_hot_;
  clocks_ += later.clocks_;
  mhz_ += later.mhz_;
  if (later.energies_ == 0) return;
  restarted_ = restarted_ || later.restarted_ || later.first_.mj < last_.mj;
  if (energies_ == 0) first_ = later.first_;
  energies_ += later.energies_;
  last_ = later.last_;
}

std::optional<double> GpuState::sm_mhz() const noexcept {
  if (clocks_ == 0) return std::nullopt;
  return static_cast<double>(mhz_) / static_cast<double>(clocks_);
}

std::optional<double> GpuState::joules() const noexcept {
  if (energies_ < 2 || restarted_) return std::nullopt;
  return static_cast<double>(last_.mj - first_.mj) * 1e-3;
}

std::optional<double> GpuState::watts() const noexcept {
  const std::optional<double> energy = joules();
  if (!energy || over_ns() <= 0) return std::nullopt;
  return *energy / (static_cast<double>(over_ns()) * 1e-9);
}

}  // namespace shardscope::analysis
