// The memory stack and the partition map's layers, pixel by pixel against the store.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "app/gui/model/element_axis.h"
#include "app/gui/model/gradient_states.h"
#include "app/gui/model/memory_stack.h"
#include "app/gui/model/names.h"
#include "app/gui/platform/frame.h"
#include "app/gui/platform/offscreen.h"
#include "app/gui/views/memory_legend.h"
#include "tests/app/gui/picture.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

Rgb over(Rgb ground, Rgb color, float alpha) { return mix(color, ground, 1 - alpha); }

AppState state_of(const store::SyntheticOptions& options) {
  AppState app;
  app.run = std::make_unique<Session>(store::make_synthetic_store(options));
  app.run->settle();
  app.place_once();
  return app;
}

/// A time of rank 0 at which at least `least` categories have bytes, and a time after it up to which none
/// changes.
std::pair<std::int64_t, std::int64_t> quiet_time(const store::Store& store, std::size_t least) {
  const store::StepRow& step = store.steps()[1];
  const auto at = [&](std::int64_t time) { return store.memory_at(0, ev::MemoryPool::device, time).bytes; };
  constexpr std::int64_t kGrain = 5'000;
  for (std::int64_t begin = step.begin_ns; begin < step.end_ns; begin += kGrain) {
    const auto bytes = at(begin);
    if (static_cast<std::size_t>(std::ranges::count_if(bytes, [](std::int64_t b) { return b > 0; })) < least)
      continue;
    std::int64_t end = begin;
    while (end + kGrain < step.end_ns && at(end + kGrain) == bytes) end += kGrain;
    if (end - begin >= 4 * kGrain) return {begin, end};
  }
  return {0, 0};
}

TEST(MemoryStack, EachCategoryIsAsHighAsItsBytes) {
  for (const ThemeKind theme : kThemes) {
    AppState app = state_of({});
    app.theme = theme;
    const auto [begin, end] = quiet_time(app.store(), 6);
    ASSERT_LT(begin, end) << "nothing to compare: no such time in the run";
    app.time.set({begin, end}, app.store().end_ns());
    app.follow = false;
    const Picture picture = render(app, "memory", 1200, 800);
    const store::MemorySample sample = app.store().memory_at(0, ev::MemoryPool::device, begin);
    const Palette& c = palette(theme);
    // In the middle of the plot nothing changes. The lines of the sum and of the expression hide a few
    // pixels.
    const float x = 400;
    std::map<Rgb, int> heights;
    std::vector<Rgb> order;  // from the top
    for (float y = 40; y < 780; ++y) {
      const Rgb color = picture.at(x, y);
      ++heights[color];
      if (order.empty() || order.back() != color) order.push_back(color);
    }
    double all = 0;
    std::vector<Rgb> expected;
    for (const ev::MemoryCategory category : stack_order()) {
      if (sample.bytes[static_cast<std::size_t>(category)] <= 0) continue;
      expected.push_back(shade(c, category));
      all += heights[expected.back()];
    }
    ASSERT_GT(all, 300) << "the stack is in view";
    for (const ev::MemoryCategory category : stack_order()) {
      const auto bytes = static_cast<double>(sample.bytes[static_cast<std::size_t>(category)]);
      if (bytes <= 0) continue;
      EXPECT_NEAR(heights[shade(c, category)], all * bytes / static_cast<double>(sample.total()), 4)
          << word(category) << ", theme " << name_of(theme);
    }
    // One above the other in the order of the stack, whose first is the lowest.
    std::erase_if(order, [&](Rgb color) { return std::ranges::find(expected, color) == expected.end(); });
    order.erase(std::unique(order.begin(), order.end()), order.end());
    std::ranges::reverse(order);
    std::erase_if(expected, [&](Rgb color) { return heights[color] == 0; });
    EXPECT_EQ(order, expected) << name_of(theme);
  }
}

/// Chooses an option of the partition map by its label.
void choose(Frame& frame, AppState& app, std::string_view label) {
  for (const Choice& choice : frame.workspace().registry().find("partition")->choices(app)) {
    const auto found = std::ranges::find(choice.labels, label);
    if (found != choice.labels.end()) choice.choose(app, static_cast<int>(found - choice.labels.begin()));
  }
}

/// Where the map puts the middle of a slice, or nothing where it is too narrow to tell.
struct Place {
  float x = 0, y = 0;
};
constexpr int kWidth = 1400, kHeight = 400;
constexpr float kLeft = 76, kTop = 50, kLength = kWidth - 92, kPitch = 60;

Place place_of(const ElementAxis& axis, std::uint32_t rank, std::uint32_t param, double share) {
  const double at = axis.begin(param) + share * (axis.end(param) - axis.begin(param));
  return {kLeft + kLength * static_cast<float>(at), kTop + kPitch * static_cast<float>(rank)};
}
bool wide(const ElementAxis& axis, std::uint32_t param) {
  return (axis.end(param) - axis.begin(param)) * kLength > 24;
}

TEST(GradientLayer, ShowsTheStateThatTheEventsGive) {
  AppState app = state_of({});
  app.theme = ThemeKind::dark;
  Frame frame;
  choose(frame, app, "gradients");
  Offscreen offscreen(kWidth, kHeight);
  const Palette& c = palette(app.theme);
  const Rgb color = c.of(Meaning::reduce);
  const ElementAxis& axis = app.run->elements(ElementScale::linear);
  std::map<GradientStatus, int> seen;
  const store::StepRow& step = app.store().steps()[1];
  for (int i = 1; i < 24; ++i) {
    app.cursor_ns = step.begin_ns + (step.end_ns - step.begin_ns) * i / 24;
    const Picture picture{kWidth, kHeight, offscreen.render(frame, app, "partition", 1)};
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      const std::vector<GradientState> states = gradient_states(app.store(), rank, *app.cursor_ns);
      for (std::uint32_t param = 0; param < states.size(); ++param) {
        if (!wide(axis, param) || app.store().tables().params[param].frozen) continue;
        const GradientStatus status = states[param].status;
        // Away from the slice that the rank owns, and from the name in the middle of the first row.
        const auto owned = axis.owned(rank, param);
        const double elems = static_cast<double>(app.store().tables().params[param].elems);
        const bool first_half = !owned.empty() && static_cast<double>(owned.front().param_offset) < elems / 2;
        const Place place = place_of(axis, rank, param, first_half ? 0.9 : 0.1);
        const Rgb top = picture.at(place.x, place.y + 6), bottom = picture.at(place.x, place.y + 52);
        const std::string where = "rank " + std::to_string(rank) + ", " +
                                  app.store().tables().params[param].name + " at " +
                                  std::to_string(*app.cursor_ns);
        ++seen[status];
        switch (status) {
          case GradientStatus::none:
            EXPECT_EQ(top, c.panel) << where;
            EXPECT_EQ(bottom, c.panel) << where;
            break;
          case GradientStatus::accumulated:
          case GradientStatus::in_bucket:
            EXPECT_EQ(top, c.panel) << where;
            EXPECT_TRUE(near(bottom, over(c.panel, color, 0.8F))) << where;
            break;
          case GradientStatus::flushed:
            EXPECT_TRUE(near(top, over(c.panel, color, 0.45F))) << where;
            break;
          case GradientStatus::reducing:
            EXPECT_NE(top, c.panel) << where;
            EXPECT_FALSE(near(top, over(c.panel, color, 0.14F))) << where;
            break;
          case GradientStatus::reduced: {
            EXPECT_TRUE(near(top, over(c.panel, color, 0.14F))) << where << ": freed, but at its owner";
            if (owned.empty()) break;
            const double middle = static_cast<double>(owned.front().param_offset) +
                                  static_cast<double>(owned.front().elems) / 2;
            const Place own = place_of(axis, rank, param, middle / elems);
            EXPECT_TRUE(near(picture.at(own.x, own.y + 6), color)) << where << ": its own part";
            break;
          }
        }
      }
    }
  }
  EXPECT_GT(seen[GradientStatus::none], 0);
  EXPECT_GT(seen[GradientStatus::in_bucket], 0);
  EXPECT_GT(seen[GradientStatus::reduced], 0);
}

TEST(OptimizerLayer, ShowsTheOwnersPartAndWhereItIsStored) {
  AppState app = state_of({});
  app.theme = ThemeKind::dark;
  Frame frame;
  choose(frame, app, "optimizer states");
  Offscreen offscreen(kWidth, kHeight);
  const Picture picture{kWidth, kHeight, offscreen.render(frame, app, "partition", 1)};
  const Palette& c = palette(app.theme);
  const ElementAxis& axis = app.run->elements(ElementScale::linear);
  int own = 0, others = 0;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    for (std::uint32_t param = 0; param < axis.size(); ++param) {
      if (!wide(axis, param)) continue;
      const double elems = static_cast<double>(app.store().tables().params[param].elems);
      for (std::uint32_t of = 0; of < 4; ++of) {
        for (const OwnedSlice& slice : axis.owned(of, param)) {
          const double middle =
              static_cast<double>(slice.param_offset) + static_cast<double>(slice.elems) / 2;
          const Place place = place_of(axis, rank, param, middle / elems);
          EXPECT_EQ(picture.at(place.x, place.y + 6), of == rank ? c.of(Meaning::optimizer) : c.panel)
              << "rank " << rank << ", the part of rank " << of << " of parameter " << param;
          ++(of == rank ? own : others);
        }
      }
    }
  }
  EXPECT_GT(own, 20);
  EXPECT_GT(others, 60);
}

}  // namespace
}  // namespace shardscope::gui
