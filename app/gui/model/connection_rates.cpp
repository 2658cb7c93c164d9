#include "app/gui/model/connection_rates.h"

#include <algorithm>

namespace shardscope::gui {

void ConnectionRates::add(const Sample& sample) {
  if (!samples_.empty()) {
    const Sample& last = samples_.back();
    if (sample.at_s - last.at_s < kEvery) return;
    if (sample.events < last.events || sample.bytes < last.bytes) samples_.clear();
  }
  samples_.push_back(sample);
  while (samples_.back().at_s - samples_.front().at_s > kLongest) samples_.pop_front();
}

template <typename Counter>
double ConnectionRates::rate(double seconds, Counter counter) const noexcept {
  if (empty()) return 0;
  const Sample& last = samples_.back();
  const auto first = std::ranges::find_if(
      samples_, [&](const Sample& sample) { return sample.at_s >= last.at_s - seconds; });
  // At least one interval.
  const Sample& from = &*first == &last ? samples_[samples_.size() - 2] : *first;
  const double passed = last.at_s - from.at_s;
  return passed > 0 ? static_cast<double>(last.*counter - from.*counter) / passed : 0;
}

double ConnectionRates::events_per_s(double seconds) const noexcept { return rate(seconds, &Sample::events); }
double ConnectionRates::bytes_per_s(double seconds) const noexcept { return rate(seconds, &Sample::bytes); }

ConnectionRates::Curve ConnectionRates::curve() const {
  Curve out;
  for (std::size_t i = 1; i < samples_.size(); ++i) {
    const Sample& from = samples_[i - 1];
    const Sample& to = samples_[i];
    const double passed = to.at_s - from.at_s;
    if (passed <= 0) continue;
    out.x.push_back(to.at_s - samples_.back().at_s);
    out.events.push_back(static_cast<double>(to.events - from.events) / passed);
    out.bytes.push_back(static_cast<double>(to.bytes - from.bytes) / passed);
  }
  return out;
}

}  // namespace shardscope::gui
