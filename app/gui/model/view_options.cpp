#include "app/gui/model/view_options.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "app/store/kind_set.h"
#include "app/store/lane.h"

namespace shardscope::gui {
namespace {

constexpr std::string_view kHidden = "Hidden=", kHeight = "LaneHeight=", kCurveHeight = "CurveHeight=",
                           kStepTarget = "StepTarget=", kFollowedSteps = "FollowedSteps=",
                           kLinked = "LinkedAxes=";
constexpr unsigned kMemoryBit = 1, kStepsBit = 2;

template <typename Number = unsigned>
std::optional<Number> number_after(std::string_view line, std::string_view key) {
  if (!line.starts_with(key)) return std::nullopt;
  line.remove_prefix(key.size());
  Number value = 0;
  const char* const end = line.data() + line.size();
  const auto [at, error] = std::from_chars(line.data(), end, value);
  return error == std::errc{} && at == end ? std::optional(value) : std::nullopt;
}

/// Parses a height in pixels, if the line has one within the limits.
void take_height(std::string_view line, std::string_view key, float lowest, float highest, float& height) {
  if (const auto value = number_after(line, key);
      value && *value >= static_cast<unsigned>(lowest) && *value <= static_cast<unsigned>(highest))
    height = static_cast<float>(*value);
}

}  // namespace

const char* word(ItemClass what) noexcept {
  static constexpr const char* kWords[kItemClasses] = {"modules",   "waits",      "gathers", "kernels",
                                                       "GPU lanes", "marks",      "notes",   "transfers",
                                                       "own spans", "reductions", "steps",   "curves"};
  return kWords[static_cast<int>(what)];
}

void ViewOptions::set(ItemClass what, bool shown) noexcept {
  const std::uint32_t bit = 1U << static_cast<unsigned>(what);
  hidden = shown ? hidden & ~bit : hidden | bit;
}

bool hides(const ViewOptions& options, instrumentation::EventKind kind) noexcept {
  using instrumentation::EventKind;
  if (options.hidden == 0) return false;
  if (store::is_wait(kind)) return options.hides(ItemClass::waits);
  switch (kind) {
    case EventKind::module_begin:
      return options.hides(ItemClass::modules);
    case EventKind::collective_begin:
      // One of the two is hidden with its lane.
      return options.hides(ItemClass::gathers) && options.hides(ItemClass::reductions);
    case EventKind::kernel_begin:
      return options.hides(ItemClass::kernels);
    case EventKind::gpu_begin:
    case EventKind::gpu_sync_begin:
      return options.hides(ItemClass::gpu);
    case EventKind::transfer_begin:
      return options.hides(ItemClass::transfers);
    case EventKind::span_begin:
      return options.hides(ItemClass::own_spans);
    default:
      return false;
  }
}

std::string hidden_text(const ViewOptions& options) {
  std::string out;
  for (int i = 0; i < kItemClasses; ++i) {
    const auto what = static_cast<ItemClass>(i);
    if (options.hides(what)) out += (out.empty() ? "hidden: " : ", ") + std::string(word(what));
  }
  return out;
}

std::vector<std::string> lines_of(const ViewOptions& options) {
  return {std::string(kHidden) + std::to_string(options.hidden),
          std::string(kHeight) + std::to_string(std::lround(options.lane_height)),
          std::string(kCurveHeight) + std::to_string(std::lround(options.curve_height)),
          std::string(kStepTarget) + std::to_string(options.step_target_ns),
          std::string(kFollowedSteps) + std::to_string(options.followed_steps),
          std::string(kLinked) + std::to_string((options.memory_linked ? kMemoryBit : 0) |
                                                (options.steps_linked ? kStepsBit : 0))};
}

void take_line(ViewOptions& options, std::string_view line) {
  if (const auto hidden = number_after(line, kHidden); hidden && *hidden < 1U << kItemClasses)
    options.hidden = *hidden;
  take_height(line, kHeight, ViewOptions::kLowest, ViewOptions::kHighest, options.lane_height);
  take_height(line, kCurveHeight, ViewOptions::kLowestCurve, ViewOptions::kHighestCurve,
              options.curve_height);
  if (const auto target = number_after<std::int64_t>(line, kStepTarget);
      target && *target >= 0 && *target < ViewOptions::kMostStepTarget_ns)
    options.step_target_ns = *target;
  if (const auto steps = number_after(line, kFollowedSteps);
      steps && *steps <= ViewOptions::kMostFollowedSteps)
    options.followed_steps = *steps;
  if (const auto linked = number_after(line, kLinked); linked && *linked <= (kMemoryBit | kStepsBit)) {
    options.memory_linked = (*linked & kMemoryBit) != 0;
    options.steps_linked = (*linked & kStepsBit) != 0;
  }
}

}  // namespace shardscope::gui
