// What the partition map, the timeline and Buckets draw, against a run whose uses, places, statuses, activity
// and buckets are known by hand: another owner, state or colour would fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "app/gui/platform/frame.h"
#include "app/gui/platform/offscreen.h"
#include "app/gui/views/partition_cells.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/gui/known_run.h"
#include "tests/app/gui/picture.h"

namespace shardscope::gui {
namespace {

/// Where the partition map puts a cell: four parameters of the same size beside one another.
struct Cells {
  static constexpr int kWidth = 900, kHeight = 400;
  static constexpr float kLeft = 76, kTop = 50, kLength = 808, kPitch = 60;
  static float x(std::uint32_t param, std::uint32_t third) {
    return kLeft + kLength *
                       (static_cast<float>(param) + (static_cast<float>(third) + 0.5F) / known::kThirds) /
                       known::kParams;
  }
  static float y(std::uint32_t rank) { return kTop + kPitch * static_cast<float>(rank) + 8; }
};

AppState opened(store::Store store, std::int64_t cursor_ns, ThemeKind theme = ThemeKind::dark) {
  AppState app;
  app.run = std::make_unique<Session>(std::move(store));
  app.run->settle();
  app.place_once();
  app.cursor_ns = cursor_ns;
  app.theme = theme;
  return app;
}

Picture map_coloured(AppState& app, const std::string& by) {
  Frame frame;
  bool chosen = false;
  for (const Choice& choice : frame.workspace().registry().find("partition")->choices(app)) {
    const auto label = std::ranges::find(choice.labels, by);
    if (label == choice.labels.end()) continue;
    choice.choose(app, static_cast<int>(label - choice.labels.begin()));
    chosen = true;
  }
  EXPECT_TRUE(chosen) << by;
  Offscreen offscreen(Cells::kWidth, Cells::kHeight);
  return {Cells::kWidth, Cells::kHeight, offscreen.render(frame, app, "partition", 1)};
}

/// Share of pixels of a cell's third that have this colour.
double share(const Picture& picture, std::uint32_t rank, std::uint32_t param, std::uint32_t third,
             Rgb color) {
  int found = 0, all = 0;
  for (float dx = -12; dx <= 12; ++dx) {
    for (float dy = -4; dy <= 8; ++dy, ++all)
      found += near(picture.at(Cells::x(param, third) + dx, Cells::y(rank) + dy), color) ? 1 : 0;
  }
  return static_cast<double>(found) / all;
}

TEST(PartitionMap, ByUseTellsWhatIsUsedFromWhatIsKeptAndWhatIsHeldForNothing) {
  for (const ThemeKind theme : kThemes) {
    const Palette& c = palette(theme);
    const auto drawn = [&](std::int64_t at) {
      AppState app = opened(known::used_run(), at, theme);
      return map_coloured(app, "by use");
    };
    const Picture kept = drawn(3000), used = drawn(5500), held = drawn(7500), released = drawn(8500);
    for (std::uint32_t rank = 0; rank < known::kRanks; ++rank) {
      const auto at = [&](const Picture& picture, std::uint32_t param) {
        return picture.at(Cells::x(param, 0), Cells::y(rank));
      };
      const std::string where = std::string(name_of(theme)) + ", rank " + std::to_string(rank);
      EXPECT_EQ(at(used, 0), c.of(Meaning::gather)) << where;
      EXPECT_EQ(at(kept, 0), mix(c.of(Meaning::gather), c.panel, 0.6F)) << where;
      EXPECT_EQ(at(released, 0), c.panel) << where;
      EXPECT_EQ(at(used, 3), c.of(Meaning::gather)) << where << " is persistent";
      for (const std::uint32_t param : {1U, 2U})
        EXPECT_EQ(at(used, param), c.panel) << where << " has it not";
      // Hatched: lines of the full colour over a third of it.
      EXPECT_GT(share(held, rank, 0, 0, mix(c.panel, c.of(Meaning::trouble), 0.35F)), 0.3) << where;
      EXPECT_EQ(share(held, rank, 0, 0, c.of(Meaning::gather)), 0) << where;
    }
  }
}

TEST(PartitionMap, ByAgeFadesWithTheTimeSinceTheLastUse) {
  constexpr std::int64_t kLong = 100'000;  // the same run, from microseconds to a second
  const Palette& c = palette(ThemeKind::dark);
  const auto faded = [&](Meaning meaning, double unused_ns) {
    return aged(c.of(meaning), c, static_cast<float>((std::log10(unused_ns) - 3) / 6));
  };
  const auto at = [&](std::int64_t time, std::uint32_t param) {
    AppState app = opened(known::used_run(true, kLong), time * kLong);
    const Picture picture = map_coloured(app, "by age");
    return picture.at(Cells::x(param, 0), Cells::y(1));
  };
  EXPECT_EQ(at(5500, 0), aged(c.of(Meaning::gather), c, 0)) << "a module uses it";
  EXPECT_EQ(at(7500, 0), faded(Meaning::gather, 1500.0 * kLong)) << "used until 6000";
  EXPECT_EQ(at(8500, 0), faded(Meaning::neutral, 500.0 * kLong)) << "released at 8000";
  EXPECT_EQ(at(7500, 3), faded(Meaning::gather, 7000.0 * kLong)) << "persistent, from 500 on";
  EXPECT_EQ(at(7500, 1), c.panel) << "it was never here";
  EXPECT_NE(at(7500, 0), at(7500, 3)) << "older is paler";
}

TEST(PartitionMap, ByModuleGivesEachBlockAColourOfItsOwn) {
  for (const ThemeKind theme : kThemes) {
    const Palette& c = palette(theme);
    AppState app = opened(known::run(), known::kLook, theme);
    const Picture picture = map_coloured(app, "by module");
    // h.0 has two parameters; h.1 and norm one each.
    constexpr std::size_t kBlock[known::kParams] = {0, 0, 1, 2};
    for (std::uint32_t rank = 0; rank < known::kRanks; ++rank) {
      for (std::uint32_t param = 0; param < known::kParams; ++param) {
        for (std::uint32_t third = 0; third < known::kThirds; ++third) {
          const Rgb seen = picture.at(Cells::x(param, third), Cells::y(rank));
          const Rgb color = hue(kBlock[param], c);
          const std::string where = std::string(name_of(theme)) + ", rank " + std::to_string(rank) +
                                    ", parameter " + std::to_string(param) + ", third " +
                                    std::to_string(third);
          if (known::owner(param, third) == rank)
            EXPECT_EQ(seen, color) << where;
          else if (known::kStatus[rank][param] == known::available)
            EXPECT_TRUE(near(seen, mix(c.panel, color, 0.9F))) << where;
          else if (is_for_colour_blind(theme))
            EXPECT_EQ(seen, c.panel) << where << ": low, at the bottom of the cell";
          else
            EXPECT_TRUE(near(seen, mix(c.panel, color, 0.2F))) << where;
        }
      }
    }
  }
}

TEST(PartitionMap, ByPlaceShowsWhereTheOwnersShardLies) {
  const Palette& c = palette(ThemeKind::dark);
  const auto drawn = [&](const std::string& offload) {
    store::Store store = known::run();
    for (std::uint32_t rank = 0; rank < known::kRanks; ++rank) {
      ev::RunTables tables = known::tables();
      tables.rank = rank;
      tables.param_bytes = 4096;  // shards below 1 MiB stay in the host's memory
      tables.config_json =
          R"({"zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0)" + offload + "}}";
      store.set_tables(rank, tables);
    }
    AppState app = opened(std::move(store), known::kLook);
    return map_coloured(app, "by place");
  };
  const Picture device = drawn("");
  const Picture host = drawn(R"(, "offload_param": {"device": "cpu"})");
  const Picture nvme = drawn(R"(, "offload_param": {"device": "nvme", "nvme_path": "/tmp"})");
  for (std::uint32_t rank = 0; rank < known::kRanks; ++rank) {
    for (std::uint32_t param = 0; param < known::kParams; ++param) {
      for (std::uint32_t third = 0; third < known::kThirds; ++third) {
        const bool own = known::owner(param, third) == rank;
        const std::string where = "rank " + std::to_string(rank) + ", parameter " + std::to_string(param) +
                                  ", third " + std::to_string(third);
        const auto at = [&](const Picture& picture) {
          return picture.at(Cells::x(param, third), Cells::y(rank));
        };
        EXPECT_EQ(at(device), own ? c.of(Meaning::compute) : c.panel) << where;
        EXPECT_EQ(at(host), own ? c.of(Meaning::copy) : c.panel) << where;
        const Rgb pale = mix(c.panel, c.of(Meaning::copy), 0.25F);
        if (own)
          EXPECT_GT(share(nvme, rank, param, third, pale), 0.3)
              << where << " is hatched, and " << std::hex << at(nvme) << " instead";
        else
          EXPECT_EQ(at(nvme), c.panel) << where;
      }
    }
  }
}

/// Of the timeline, as it is laid out in a picture of this size.
struct Lanes {
  static constexpr int kWidth = 1164, kHeight = 400;
  static constexpr float kLeft = 156, kLength = 1000, kTop = 50;
  static float x(double share) { return kLeft + kLength * static_cast<float>(share); }
};

Picture timeline_of(AppState& app, TimelineRows& rows) {
  app.time.set({0, app.store().end_ns()}, app.store().end_ns());
  Picture picture = render(app, "timeline", Lanes::kWidth, Lanes::kHeight);
  rows = layout_rows(app.store(), app.timeline);
  return picture;
}

TEST(Timeline, DrawsTheStatusOfAFollowedParameterOnEveryRankOverTime) {
  for (const ThemeKind theme : kThemes) {
    const Palette& c = palette(theme);
    AppState app = opened(known::run(), known::kLook, theme);
    for (std::uint32_t param = 0; param < known::kParams; ++param) follow_param(app.timeline, param);
    TimelineRows rows;
    const Picture picture = timeline_of(app, rows);
    std::size_t bands = 0;
    for (const TimelineRow& row : rows.rows) {
      if (row.kind != RowKind::status) continue;
      ++bands;
      const auto at = [&](double ns) {
        return picture.at(Lanes::x(ns / 8000), Lanes::kTop + 4 + row.y + 2 - app.timeline_scroll);
      };
      const auto status = known::kStatus[row.rank][row.param];
      const std::string where = std::string(name_of(theme)) + ", rank " + std::to_string(row.rank) +
                                ", parameter " + std::to_string(row.param);
      const Rgb gather = c.of(Meaning::gather);
      EXPECT_EQ(at(1000), c.panel) << where << ": not yet";
      EXPECT_EQ(at(3250) == gather, status != known::in_flight) << where;
      EXPECT_EQ(at(7000) == gather, status == known::available) << where;
      EXPECT_EQ(at(7000) == c.panel, status == known::not_available) << where << " was released at 3500";
      if (status != known::in_flight) continue;
      std::size_t hatched = 0;
      for (double ns = 6000; ns < 6160; ns += 8) hatched += at(ns) != c.panel && at(ns) != gather ? 1 : 0;
      EXPECT_GT(hatched, 10U) << where << " has been in flight since 4000";
    }
    EXPECT_EQ(bands, known::kRanks * known::kParams);
  }
}

TEST(Timeline, LowRowsShowWhenEachRankComputedAndWaited) {
  test::RunBuilder run(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    run.span(rank, 0, 9000, ev::EventKind::step_begin, ev::StreamId::host, 0);
    run.span(rank, 3000 * rank, 3000 * rank + 3000, ev::EventKind::module_begin, ev::StreamId::compute, 0);
  }
  AppState app = opened(std::move(run.build()), 100);
  app.timeline.rank_height = RankHeight::heat;
  app.timeline.automatic = false;
  TimelineRows rows;
  const Picture picture = timeline_of(app, rows);
  const Palette& c = palette(ThemeKind::dark);
  std::size_t seen = 0;
  for (const TimelineRow& row : rows.rows) {
    if (!row.heat) continue;
    ++seen;
    for (std::uint32_t third = 0; third < 3; ++third) {
      const Rgb color =
          picture.at(Lanes::x((third + 0.5) / 3), Lanes::kTop + 4 + row.y + 2 - app.timeline_scroll);
      EXPECT_EQ(color, third == row.rank ? c.of(Meaning::compute) : c.panel)
          << "rank " << row.rank << ", third " << third;
    }
  }
  EXPECT_EQ(seen, 3U);
}

/// One span in each lane, at other times on each rank.
struct LaneSpan {
  RowKind row;
  ev::EventKind kind;
  ev::StreamId stream;
  std::int64_t begin, end;  ///< of rank 0; of rank 1 `kLater` later
};
constexpr std::int64_t kLater = 4000;
constexpr LaneSpan kLaneSpans[] = {
    {RowKind::compute, ev::EventKind::module_begin, ev::StreamId::compute, 1000, 2500},
    {RowKind::waits, ev::EventKind::fetch_wait_begin, ev::StreamId::compute, 3000, 3500},
    {RowKind::gather, ev::EventKind::collective_begin, ev::StreamId::gather, 500, 1500},
    {RowKind::reduce, ev::EventKind::collective_begin, ev::StreamId::reduce, 2000, 4000},
    {RowKind::copy, ev::EventKind::transfer_begin, ev::StreamId::copy, 1500, 3000},
};

store::Store run_of_lanes() {
  test::RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    run.span(rank, 0, 10'000, ev::EventKind::step_begin, ev::StreamId::host, 0);
    for (const LaneSpan& one : kLaneSpans)
      run.span(rank, one.begin + rank * kLater, one.end + rank * kLater, one.kind, one.stream, 1, 1,
               one.row == RowKind::reduce   ? static_cast<std::uint8_t>(test::CollectiveOp::reduce_scatter)
               : one.row == RowKind::gather ? test::kGatherOp
                                            : std::uint8_t{0});
  }
  return std::move(run.build());
}

TEST(Timeline, DrawsTheSpansOfEachLaneOfEachRankAtTheirTimesAndInTheirColours) {
  for (const ThemeKind theme : kThemes) {
    const Palette& c = palette(theme);
    AppState app = opened(run_of_lanes(), 0, theme);
    app.timeline.automatic = false;
    app.timeline.expanded = {0, 1};
    TimelineRows rows;
    const Picture picture = timeline_of(app, rows);
    std::size_t seen = 0;
    for (const TimelineRow& row : rows.rows) {
      const auto* const of = std::ranges::find(kLaneSpans, row.kind, &LaneSpan::row);
      if (of == std::end(kLaneSpans) || row.depth != 0) continue;
      ++seen;
      const Rgb color = row.kind == RowKind::compute  ? mix(c.of(Meaning::compute), c.panel, 0.5F)
                        : row.kind == RowKind::gather ? c.of(Meaning::gather)
                        : row.kind == RowKind::reduce ? c.of(Meaning::reduce)
                                                      : c.of(Meaning::copy);
      // Above the label, which is in the middle of the lane.
      const float y = Lanes::kTop + 4 + row.y + 2 - app.timeline_scroll;
      const std::int64_t begin = of->begin + row.rank * kLater, end = of->end + row.rank * kLater;
      for (std::int64_t ns = 250; ns < 10'000; ns += 250) {
        // Waits are in the compute lane too.
        const LaneSpan& wait = kLaneSpans[1];
        const std::int64_t later = row.rank * kLater;
        if (row.kind == RowKind::compute && ns >= wait.begin + later && ns <= wait.end + later) continue;
        if (ns == begin || ns == end) continue;
        const bool inside = ns > begin && ns < end;
        const std::string where = std::string(name_of(theme)) + ", rank " + std::to_string(row.rank) + ", " +
                                  row.label() + " at " + std::to_string(ns);
        const auto at = [&](float dx) {
          return picture.at(Lanes::x(static_cast<double>(ns) / 10'000) + dx, y);
        };
        if (!inside) {
          EXPECT_EQ(at(0), c.panel) << where;
        } else if (row.kind == RowKind::waits) {
          // Hatched over a ground of less than half of the colour.
          int red = 0;
          for (float dx = -6; dx <= 6; ++dx) red += at(dx) != c.panel ? 1 : 0;
          EXPECT_EQ(red, 13) << where;
        } else {
          EXPECT_TRUE(near(at(0), color)) << where << ": " << std::hex << at(0) << ", not " << color;
        }
      }
    }
    EXPECT_EQ(seen, 2 * std::size(kLaneSpans));
  }
}

TEST(StepRuler, BarsAreAsHighAsStepsAreLongAndNameTheLargestPartBesideComputation) {
  test::RunBuilder run(1);
  constexpr std::int64_t kLengths[] = {2000, 4000, 3000};
  std::int64_t at = 0;
  for (std::uint32_t step = 0; step < std::size(kLengths); ++step) {
    const std::int64_t end = at + kLengths[step];
    run.span(0, at, end, ev::EventKind::step_begin, ev::StreamId::host, step);
    // The second step gathers for three quarters of its time while nothing is computed.
    const std::int64_t computed = step == 1 ? at + 1000 : end;
    run.span(0, at, computed, ev::EventKind::module_begin, ev::StreamId::compute, 1);
    if (step == 1)
      run.span(0, computed, end, ev::EventKind::collective_begin, ev::StreamId::gather, 1, 1,
               test::kGatherOp);
    at = end;
  }
  AppState app = opened(std::move(run.build()), 0);
  app.time.set({0, at}, at);
  const Picture picture = render(app, "workspace", 1280, 720);
  // As in the workspace: below the top bar, beside the label.
  constexpr float kFirstBar = 12 + 144, kRulerTop = 44, kRulerEnd = 84, kBarPitch = 32, kHighest = 38;
  const Palette& c = palette(ThemeKind::dark);
  // The visible range, here the whole run, is shaded.
  const Rgb gather = mix(c.of(Meaning::gather), c.accent, 0.12F);
  for (std::size_t step = 0; step < std::size(kLengths); ++step) {
    const float x = kFirstBar + kBarPitch * static_cast<float>(step) + kBarPitch / 2;
    const Rgb ground = picture.at(x, kRulerTop + 1);
    int high = 0, gathered = 0;
    for (float y = kRulerTop + 2; y < kRulerEnd; ++y) {
      high += picture.at(x, y) != ground ? 1 : 0;
      gathered += near(picture.at(x, y), gather) ? 1 : 0;
    }
    const float expected = kHighest * static_cast<float>(kLengths[step]) / 4000;
    EXPECT_NEAR(high, expected, 1.5) << "step " << step;
    EXPECT_NEAR(gathered, step == 1 ? expected * 0.75 : 0, 1.5) << "step " << step;
  }
}

TEST(Flame, BoxesAreAsWideAsTheMeanTimeOfTheRanks) {
  test::RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::int64_t whole = rank == 0 ? 8000 : 4000;
    run.span(rank, 0, 9000, ev::EventKind::step_begin, ev::StreamId::host, 0);
    run.instant(rank, 0, ev::EventKind::module_begin, ev::StreamId::compute, 0);
    run.span(rank, 1000, rank == 0 ? 5000 : 3000, ev::EventKind::module_begin, ev::StreamId::compute, 1);
    run.instant(rank, whole, ev::EventKind::module_end, ev::StreamId::compute, 0);
  }
  AppState app = opened(std::move(run.build()), 0);
  app.time.set({0, 9000}, 9000);
  constexpr int kFlameWidth = 924, kFlameHeight = 400;
  const Picture picture = render(app, "flame", kFlameWidth, kFlameHeight);
  const Palette& c = palette(ThemeKind::dark);
  // In the row of pixels with most of a colour nothing is written over it.
  const auto widest = [&](Rgb color) {
    int most = 0;
    for (int y = 0; y < kFlameHeight; ++y) {
      int here = 0;
      for (int x = 0; x < kFlameWidth; ++x)
        here += near(picture.at(static_cast<float>(x), static_cast<float>(y)), color) ? 1 : 0;
      most = std::max(most, here);
    }
    return most;
  };
  constexpr double kFlameRoom = kFlameWidth - 24;
  EXPECT_NEAR(widest(mix(c.of(Meaning::compute), c.panel, 0.5F)), kFlameRoom, 3) << "the root: 6 of 6 us";
  EXPECT_NEAR(widest(mix(c.of(Meaning::compute), c.panel, 0.38F)), kFlameRoom * 3 / 6, 3)
      << "the layer: 3 of 6 us";
}

TEST(Buckets, AreAsFullAsTheGradientsInThem) {
  store::Store store;
  ev::RunTables tables = known::tables();
  tables.world = tables.local_world = 1;
  tables.config_json = R"({"zero_optimization": {"stage": 3, "reduce_bucket_size": 6000}})";
  store.set_tables(0, tables);
  store::ChunkBuilder events(0);
  events.host(0, ev::EventKind::step_begin, 7);
  events.host(1000, ev::EventKind::bucket_open, 3);
  for (const std::uint32_t param : {3U, 1U}) {
    events.host(2000 + param, ev::EventKind::bucket_add, 3, 0, known::kElems, 0);
    events.chunk.events.back().b = param;
  }
  std::swap(events.chunk.events.end()[-1], events.chunk.events.end()[-2]);
  events.chunk.events.end()[-2].v1 = known::kElems;
  events.chunk.events.end()[-1].v1 = 2 * known::kElems;
  events.host(8000, ev::EventKind::step_end, 7);
  store.ingest(events.chunk);
  AppState app = opened(std::move(store), 5000);
  constexpr int kBucketsWidth = 800;
  const Picture picture = render(app, "buckets", kBucketsWidth, 300);
  const Palette& c = palette(ThemeKind::dark);
  const Rgb filled = mix(c.panel, c.of(Meaning::reduce), 0.75F);
  // The row of pixels with most of it is in the bar.
  int most = 0;
  for (int y = 0; y < 300; ++y) {
    int here = 0;
    for (int x = 0; x < kBucketsWidth; ++x)
      here += near(picture.at(static_cast<float>(x), static_cast<float>(y)), filled) ? 1 : 0;
    most = std::max(most, here);
  }
  // Between the name and the amount, both as wide as in the view.
  constexpr double kBar = kBucketsWidth - 20 - 130 - 130 - 8;
  EXPECT_NEAR(most, kBar * 2 * known::kElems / 6000, 4) << "two gradients of five that it has room for";
}

}  // namespace
}  // namespace shardscope::gui
