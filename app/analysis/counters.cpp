#include "app/analysis/counters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "instrumentation/event_fields.h"

namespace shardscope::analysis {
namespace {

namespace ev = instrumentation;
using ev::EventKind;

constexpr std::array kKinds{EventKind::counter, EventKind::processor_wait, EventKind::gpu_sample};
constexpr double kNoRate = std::numeric_limits<double>::quiet_NaN();
constexpr const char *kProcessors = "processors in use", *kWaiting = "waiting threads", *kPower = "GPU power",
                     *kClock = "GPU clock", *kMemoryClock = "GPU memory clock",
                     *kTemperature = "GPU temperature";
constexpr std::array kLibraryNames{kProcessors, kWaiting, kPower, kClock, kMemoryClock, kTemperature};

}  // namespace

bool CounterLog::take(const store::Store& store, std::uint32_t rank, const ev::Event& event) {
  switch (event.kind) {
    case EventKind::counter:
      take_own(store, rank, event);
      return true;
    case EventKind::processor_wait:
      take_processors(event);
      return true;
    case EventKind::gpu_sample:
      take_gpu(event);
      return true;
    default:
      return false;
  }
}

const CounterSeries* CounterLog::find(const std::string& name) const noexcept {
  const auto found = std::ranges::find(series_, name, &CounterSeries::name);
  return found == series_.end() ? nullptr : &*found;
}

CounterSeries& CounterLog::series_of(const char* name, const char* unit, bool rate) {
  const auto found = std::ranges::find(series_, name, &CounterSeries::name);
  if (found != series_.end()) return *found;
  return series_.emplace_back(
      CounterSeries{.name = name, .unit = unit, .rate = rate, .own = false, .samples = {}});
}

void CounterLog::take_own(const store::Store& store, std::uint32_t rank, const ev::Event& event) {
  const auto fields = ev::as<EventKind::counter>(event);
  const auto at_ns = static_cast<std::int64_t>(event.ticks);
  const auto [known, is_new] = own_.try_emplace(fields.name, series_.size());
  if (is_new) {
    std::string name = store.name(rank, fields.name);
    if (name.empty()) name = "counter " + std::to_string(fields.name);
    std::string unit = fields.unit == ev::kNoId ? std::string() : store.name(rank, fields.unit);
    if (fields.accumulated) unit += "/s";
    if (std::ranges::find(kLibraryNames, name) != kLibraryNames.end()) name += " (the program's)";
    series_.push_back({.name = std::move(name),
                       .unit = std::move(unit),
                       .rate = fields.accumulated,
                       .own = true,
                       .samples = {}});
  }
  CounterSeries& series = series_[known->second];
  if (!series.rate) {
    series.samples.push_back({at_ns, fields.value});
    return;
  }
  const auto [before, first] = totals_.try_emplace(known->second, Total{at_ns, fields.value});
  if (first) return;
  const double seconds = static_cast<double>(at_ns - before->second.at_ns) * 1e-9;
  // A value that decreases began anew: what was added in between is unknown.
  const double added = fields.value - before->second.value;
  if (seconds > 0)
    series.samples.push_back({before->second.at_ns, added < 0 ? kNoRate : added / seconds, at_ns});
  before->second = {at_ns, fields.value};
}

void CounterLog::take_processors(const ev::Event& event) {
  const auto fields = ev::as<EventKind::processor_wait>(event);
  const auto at_ns = static_cast<std::int64_t>(event.ticks);
  if (fields.over_ns <= 0) return;
  const auto over = static_cast<double>(fields.over_ns);
  const auto mean = [&](const char* name, double value) {
    series_of(name, "", true).samples.push_back({at_ns - fields.over_ns, value, at_ns});
  };
  mean(kProcessors, fields.used_ms * 1e6 / over);
  mean(kWaiting, static_cast<double>(fields.waited_ns) / over);
}

void CounterLog::take_gpu(const ev::Event& event) {
  const auto fields = ev::as<EventKind::gpu_sample>(event);
  const auto at_ns = static_cast<std::int64_t>(event.ticks);
  const auto state = [&](const char* name, const char* unit, std::uint32_t value) {
    if (value != ev::kNoId)
      series_of(name, unit, false).samples.push_back({at_ns, static_cast<double>(value)});
  };
  if (fields.energy_mj > 0) {
    const auto energy = static_cast<double>(fields.energy_mj) * 1e-3;
    CounterSeries& power = series_of(kPower, "W", true);
    const auto index = static_cast<std::size_t>(&power - series_.data());
    const auto [before, first] = totals_.try_emplace(index, Total{at_ns, energy});
    const double seconds = static_cast<double>(at_ns - before->second.at_ns) * 1e-9;
    if (!first && seconds > 0) {
      const double added = energy - before->second.value;
      power.samples.push_back({before->second.at_ns, added < 0 ? kNoRate : added / seconds, at_ns});
    }
    before->second = {at_ns, energy};
  }
  state(kClock, "MHz", fields.sm_mhz);
  state(kMemoryClock, "MHz", fields.memory_mhz);
  state(kTemperature, "\u00b0C", fields.celsius);
}

bool has_counters(const store::Store& store, std::uint32_t rank) {
  return std::ranges::any_of(kKinds, [&](EventKind kind) { return store.instant_count(rank, kind) > 0; });
}

CounterLog counters_of(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                       std::int64_t end_ns) {
  CounterLog out;
  if (!has_counters(store, rank)) return out;
  store.for_each_instant(rank, begin_ns, end_ns,
                         [&](const ev::Event& event) { out.take(store, rank, event); });
  return out;
}

}  // namespace shardscope::analysis
