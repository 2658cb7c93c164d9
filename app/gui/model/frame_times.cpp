#include "app/gui/model/frame_times.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace shardscope::gui {
namespace {

/// A window may be open for days.
constexpr std::size_t kKept = 4096;
constexpr const char* kRest = "the rest";

float quantile_of(std::vector<float> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

}  // namespace

double thread_cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void FrameTimes::add_part(std::string_view name, float ms) {
  const auto known = std::find(names_.begin(), names_.end(), name);
  const auto index = static_cast<std::size_t>(known - names_.begin());
  if (known == names_.end()) names_.emplace_back(name);
  const auto same = std::find_if(building_.parts.begin(), building_.parts.end(),
                                 [&](const auto& part) { return part.first == index; });
  if (same != building_.parts.end())
    same->second += ms;
  else
    building_.parts.emplace_back(index, ms);
}

void FrameTimes::add(float ms) {
  if (frames_.size() >= kKept) frames_.erase(frames_.begin(), frames_.begin() + kKept / 2);
  building_.ms = ms;
  frames_.push_back(std::move(building_));
  building_ = {};
}

float FrameTimes::quantile(double q) const {
  std::vector<float> all;
  for (const OneFrame& frame : frames_) all.push_back(frame.ms);
  return quantile_of(std::move(all), q);
}

std::string FrameTimes::parts_text() const {
  if (names_.empty() || frames_.empty()) return {};
  struct Row {
    std::string name;
    std::vector<float> ms;
    float in_worst = 0;
    [[nodiscard]] float worst() const { return ms.empty() ? 0 : *std::max_element(ms.begin(), ms.end()); }
  };
  std::vector<Row> rows;
  for (const std::string& name : names_) rows.push_back({name, {}});
  rows.push_back({kRest, {}});
  const auto worst = std::max_element(frames_.begin(), frames_.end(),
                                      [](const OneFrame& a, const OneFrame& b) { return a.ms < b.ms; });
  for (const OneFrame& frame : frames_) {
    float rest = frame.ms;
    for (const auto& [index, ms] : frame.parts) {
      rows[index].ms.push_back(ms);
      if (&frame == &*worst) rows[index].in_worst = ms;
      rest -= ms;
    }
    rows.back().ms.push_back(std::max(0.0F, rest));
    if (&frame == &*worst) rows.back().in_worst = std::max(0.0F, rest);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.worst() > b.worst(); });
  std::string out = "part, ms                    frames   median      p95    worst   in the worst frame\n";
  for (const Row& row : rows) {
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%-26s %7zu %8.3f %8.3f %8.3f %8.3f\n", row.name.c_str(),
                  row.ms.size(), static_cast<double>(quantile_of(row.ms, 0.5)),
                  static_cast<double>(quantile_of(row.ms, 0.95)), static_cast<double>(row.worst()),
                  static_cast<double>(row.in_worst));
    out += line.data();
  }
  return out;
}

}  // namespace shardscope::gui
