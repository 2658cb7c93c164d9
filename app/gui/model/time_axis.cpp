#include "app/gui/model/time_axis.h"

#include <algorithm>
#include <cmath>

#include "app/gui/model/format.h"

namespace shardscope::gui {
namespace {

/// While following, this part of the range is after the edge: one of so many.
constexpr std::int64_t kAfterEdge = 20;

}  // namespace

float TimeScale::x_of(std::int64_t at_ns) const noexcept {
  const double x = static_cast<double>(at_ns - range.begin_ns) / std::max(1e-9, ns_per_pixel());
  return left + static_cast<float>(std::clamp(x, -1e6, 1e6));
}

std::int64_t TimeScale::time_of(float x) const noexcept {
  return range.begin_ns +
         static_cast<std::int64_t>(std::llround(static_cast<double>(x - left) * ns_per_pixel()));
}

double TimeScale::ns_per_pixel() const noexcept {
  return static_cast<double>(range.length()) / std::max(1.0, static_cast<double>(width));
}

TimeRange TimeAxis::within(TimeRange range, std::int64_t limit_ns) {
  // Up to a tenth of the length beyond either end, so that the first and last event are not at the edge.
  const std::int64_t longest = std::max<std::int64_t>(limit_ns + limit_ns / 5, kShortest * 10);
  const std::int64_t length = std::clamp(range.length(), kShortest, longest);
  const std::int64_t overhang = length / 10;
  std::int64_t begin = range.begin_ns;
  begin = std::min(begin, limit_ns + overhang - length);
  begin = std::max(begin, -overhang);
  return {begin, begin + length};
}

void TimeAxis::set(TimeRange range, std::int64_t limit_ns) {
  gliding_.reset();
  range_ = within(range, limit_ns);
}

void TimeAxis::go(TimeRange range, std::int64_t limit_ns) {
  if (!glides) return set(range, limit_ns);
  const TimeRange to = within(range, limit_ns);
  gliding_ = to == range_ ? std::nullopt : std::optional(Glide{range_, to, std::nullopt});
}

bool TimeAxis::advance(double seconds) {
  constexpr double kTime = 0.18;  // seconds
  if (!gliding_) return false;
  if (!gliding_->began) gliding_->began = seconds;
  const double share = (seconds - *gliding_->began) / kTime;
  if (share >= 1) {
    range_ = gliding_->to;
    gliding_.reset();
    return false;
  }
  // Slower towards its end. Lengths change by a factor: a zoom looks even then.
  const double part = 1 - (1 - share) * (1 - share) * (1 - share);
  const auto [from, to, began] = *gliding_;
  const double length =
      std::exp(std::lerp(std::log(static_cast<double>(std::max<std::int64_t>(from.length(), 1))),
                         std::log(static_cast<double>(std::max<std::int64_t>(to.length(), 1))), part));
  // The point that both ranges have at the same place of the screen stays there; without one, the middle
  // moves.
  const double grown = static_cast<double>(to.length() - from.length());
  const double done = grown == 0 ? part : (length - static_cast<double>(from.length())) / grown;
  const double begin = std::lerp(static_cast<double>(from.begin_ns), static_cast<double>(to.begin_ns), done);
  range_.begin_ns = std::llround(begin);
  range_.end_ns = range_.begin_ns + std::max(kShortest, static_cast<std::int64_t>(std::llround(length)));
  return true;
}

void TimeAxis::zoom(double factor, std::int64_t anchor_ns, std::int64_t limit_ns) {
  const double before = static_cast<double>(anchor_ns - range_.begin_ns);
  const double length =
      std::max(static_cast<double>(kShortest), static_cast<double>(range_.length()) * factor);
  const double share = before / std::max(1.0, static_cast<double>(range_.length()));
  const auto begin = anchor_ns - static_cast<std::int64_t>(std::llround(length * share));
  set({begin, begin + static_cast<std::int64_t>(std::llround(length))}, limit_ns);
}

void TimeAxis::pan(std::int64_t delta_ns, std::int64_t limit_ns) {
  set({range_.begin_ns + delta_ns, range_.end_ns + delta_ns}, limit_ns);
}

void TimeAxis::go_zoom(double factor, double anchor, std::int64_t limit_ns) {
  const TimeRange from = goal();
  const double old_length = static_cast<double>(from.length());
  const double length = std::max(static_cast<double>(kShortest), old_length * factor);
  const std::int64_t begin = from.begin_ns + std::llround((old_length - length) * anchor);
  go({begin, begin + std::llround(length)}, limit_ns);
}

void TimeAxis::go_pan(double share, std::int64_t limit_ns) {
  const TimeRange from = goal();
  const std::int64_t by = std::llround(static_cast<double>(from.length()) * share);
  go({from.begin_ns + by, from.end_ns + by}, limit_ns);
}

void TimeAxis::fit(std::int64_t limit_ns) {
  const std::int64_t margin = std::max<std::int64_t>(limit_ns / 100, 1);
  go({-margin, limit_ns + margin}, limit_ns);
}

void TimeAxis::follow(std::int64_t edge_ns) {
  const std::int64_t length = goal().length();
  gliding_.reset();
  const std::int64_t end = edge_ns + length / kAfterEdge;
  range_ = {end - length, end};
}

void TimeAxis::follow(std::int64_t edge_ns, std::int64_t shown_ns) {
  gliding_.reset();
  const std::int64_t shown = std::max(kShortest, shown_ns);
  range_ = {edge_ns - shown, edge_ns + shown / (kAfterEdge - 1)};
}

void TimeAxis::reveal(TimeRange what, std::int64_t limit_ns) {
  const TimeRange shown = goal();
  if (what.begin_ns >= shown.begin_ns && what.end_ns <= shown.end_ns) return;
  if (what.length() > shown.length()) {
    const std::int64_t margin = what.length() / 10;
    go({what.begin_ns - margin, what.end_ns + margin}, limit_ns);
    return;
  }
  const std::int64_t centre = what.begin_ns + what.length() / 2;
  go({centre - shown.length() / 2, centre + shown.length() / 2}, limit_ns);
}

std::vector<Tick> time_ticks(const TimeScale& scale, float min_gap) {
  const double wanted = scale.ns_per_pixel() * static_cast<double>(min_gap);
  const double power = std::pow(10.0, std::floor(std::log10(std::max(1.0, wanted))));
  double step = power * 10;
  for (const double multiple : {1.0, 2.0, 5.0}) {
    if (power * multiple >= wanted) {
      step = power * multiple;
      break;
    }
  }
  const auto step_ns = std::max<std::int64_t>(1, std::llround(step));
  struct Unit {
    std::int64_t ns;
    const char* name;
  };
  const Unit unit = step_ns >= 1'000'000'000 ? Unit{1'000'000'000, "s"}
                    : step_ns >= 1'000'000   ? Unit{1'000'000, "ms"}
                    : step_ns >= 1000        ? Unit{1000, "µs"}
                                             : Unit{1, "ns"};
  // Labels are relative to a multiple of 1000 units, so that they stay short at high zoom.
  std::vector<Tick> ticks;
  std::int64_t at = scale.range.begin_ns / step_ns * step_ns;
  if (at < scale.range.begin_ns) at += step_ns;
  for (; at < scale.range.end_ns && ticks.size() < 200; at += step_ns) {
    if (at < 0) continue;
    ticks.push_back({at, grouped(at / unit.ns) + " " + unit.name});
  }
  return ticks;
}

namespace {
/// The smallest round number that is at least `rough`.
double round_step(double rough, bool binary) {
  if (binary) return std::exp2(std::ceil(std::log2(rough)));
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double multiple : {1.0, 2.0, 2.5, 5.0}) {
    if (power * multiple >= rough) return power * multiple;
  }
  return power * 10;
}
}  // namespace

std::vector<double> value_ticks(double max, int wanted, bool binary) {
  if (!(max > 0) || wanted < 1) return {};
  const double step = round_step(max / wanted, binary);
  std::vector<double> out;
  for (double value = step; value <= max * 1.0001; value += step) out.push_back(value);
  return out;
}

std::vector<double> ticks_between(double low, double high, int most) {
  if (!(high > low) || most < 1) return {};
  const double step = round_step((high - low) / most, false);
  std::vector<double> out;
  // + 0: no tick is at -0.
  for (double number = std::ceil(low / step); number * step <= high; ++number)
    out.push_back(number * step + 0.0);
  return out;
}

}  // namespace shardscope::gui
