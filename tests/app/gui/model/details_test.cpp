// What the Inspector shows of one thing: known, or marked as missing.
#include "app/gui/model/details.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/app_state.h"
#include "app/gui/model/details_fields.h"
#include "app/gui/model/format.h"
#include "tests/app/store/event_builder.h"
#include "tests/instrumentation/packed_codes.h"

namespace shardscope::gui {
namespace {

/// A gather of two NCCL operations and a reduce that the plugin did not follow; memory outside the runtime.
class NcclModel : public ::testing::Test {
 protected:
  void play(const char* device, bool plugin) {
    using ev::EventKind;
    using ev::StreamId;
    store::ChunkBuilder events;
    const auto nccl = [&](std::int64_t at, EventKind kind, std::uint32_t c, std::int64_t v0,
                          std::int64_t v1) { events.host(at, kind, 5, 0, v0, v1).chunk.events.back().c = c; };
    events.host(500, EventKind::outside_memory, ev::kNoId, 0, 3000, 9000);
    if (plugin) {
      nccl(900, EventKind::nccl_collective,
           ev::nccl_code(ev::NcclAlgorithm::nvls, ev::NcclProtocol::simple, 16, 16), 64, 1);
      nccl(901, EventKind::nccl_collective,
           ev::nccl_code(ev::NcclAlgorithm::ring, ev::NcclProtocol::simple, 8, 16), 64, 2);
    }
    events.add(1000, EventKind::collective_begin, StreamId::gather, 5, 0, 10, 40);
    events.add(1400, EventKind::collective_end, StreamId::gather, 5, 0, 10, 40);
    if (plugin) {
      nccl(1390, EventKind::nccl_kernel, shardscope::test::nccl_channels(16, 16), 350, 20);
      nccl(1395, EventKind::nccl_kernel, shardscope::test::nccl_channels(7, 8), 300, 30);
    }
    events.add(2000, EventKind::collective_begin, StreamId::reduce, 6, 1, 10, 40);
    events.add(2400, EventKind::collective_end, StreamId::reduce, 6, 1, 10, 40);
    events.host(2500, EventKind::outside_memory, ev::kNoId, 0, 3500, 9500);
    store::Store store;
    ev::RunTables tables;
    tables.device = device;
    store.set_tables(0, tables);
    store.ingest(events.chunk);
    app_.run = std::make_unique<Session>(std::move(store));
    app_.run->settle();
    app_.place_once();
  }
  [[nodiscard]] std::optional<std::string> field(ev::StreamId stream, const std::string& label) const {
    const store::LaneId lane{0, stream};
    const auto spans = app_.store().spans(lane, 0);
    if (spans.empty()) return "no span";
    for (const auto& one : describe_span(app_, lane, spans.front()).fields) {
      if (one.label == label) return one.value;
    }
    return std::nullopt;
  }
  AppState app_;
};

TEST_F(NcclModel, InspectorSaysWhatNcclSaid) {
  play("H200, NCCL 2.28.9", true);
  EXPECT_EQ(field(ev::StreamId::gather, "NCCL operations"), "2");
  EXPECT_EQ(field(ev::StreamId::gather, "algorithm"), "nvls and others");
  EXPECT_EQ(field(ev::StreamId::gather, "channels"), "16 and others");
  EXPECT_EQ(field(ev::StreamId::gather, "NCCL kernel"), duration(350).number);
  EXPECT_EQ(field(ev::StreamId::gather, "channel spread"), duration(30).number);
  EXPECT_EQ(field(ev::StreamId::gather, "network"), std::nullopt);
  // Missing is shown as missing: the plugin did not follow this one.
  EXPECT_EQ(field(ev::StreamId::reduce, "NCCL"), kMissing);
  EXPECT_EQ(field(ev::StreamId::reduce, "algorithm"), std::nullopt);
}

TEST_F(NcclModel, WithoutThePluginItIsMissingAndOnTheCpuThereIsNothingToMiss) {
  play("H200, NCCL 2.28.9", false);
  EXPECT_EQ(field(ev::StreamId::gather, "NCCL"), kMissing);
  play("CPU, shared memory", false);
  EXPECT_EQ(field(ev::StreamId::gather, "NCCL"), std::nullopt);
}

TEST_F(NcclModel, MemoryOutsideTheRuntimeIsACurve) {
  play("H200", false);
  const auto samples = app_.run->index().outside(0);
  ASSERT_EQ(samples.size(), 2U);
  const std::int64_t first = samples[0].at_ns;
  EXPECT_EQ(outside_at(samples, first - 1), std::nullopt);
  EXPECT_EQ(outside_at(samples, first), 3000);
  EXPECT_EQ(outside_at(samples, samples[1].at_ns - 1), 3000);
  EXPECT_EQ(outside_at(samples, samples[1].at_ns), 3500);
  EXPECT_TRUE(app_.run->index().outside(1).empty());
}

/// What the Inspector shows of a rank that sent so many chunks, every two seconds.
std::string drift_shown(int received) {
  store::Store store;
  for (int i = 0; i < received; ++i) {
    store::ChunkBuilder builder(0, static_cast<std::uint64_t>(i));
    builder.chunk.clock_offset_ns = 1'000'000 + i * 30'000;
    builder.chunk.clock_residual_ns = 2'500;
    store.ingest(builder.host(i * std::int64_t{2'000'000'000}, ev::EventKind::tokens).chunk);
  }
  AppState app;
  app.run = std::make_unique<Session>(std::move(store));
  app.run->settle();
  app.select_rank(0);
  const Details details = describe_selection(app);
  const auto found = std::ranges::find(details.fields, "clock drift", &Field::label);
  return found == details.fields.end() ? "no such field" : found->value + found->unit;
}

TEST(RankDetails, SayHowWellItsClockIsKnownAndWhatIsNotKnown) {
  EXPECT_EQ(drift_shown(1), kMissing);
  EXPECT_EQ(drift_shown(2), "15.0 ± 2.5ppm");
}

/// A clock that was known badly in the beginning: what is looked at later is not called as bad.
TEST(RankDetails, SayTheClockResidualOfTheRangeShownAndThatOfTheRun) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  store::Store store;
  for (int i = 0; i < 3; ++i) {
    store::ChunkBuilder builder(0, static_cast<std::uint64_t>(i));
    builder.chunk.clock_residual_ns = i == 0 ? 91'000 : 35'000;
    store.ingest(builder.host(2 * i * kSecond, ev::EventKind::tokens)
                     .host((2 * i + 1) * kSecond, ev::EventKind::tokens)
                     .chunk);
  }
  AppState app;
  app.run = std::make_unique<Session>(std::move(store));
  app.run->settle();
  app.select_rank(0);
  const auto shown = [&](TimeRange range) {
    app.time.set(range, 6 * kSecond);
    const Details details = describe_selection(app);
    const auto field = [&](const char* label) {
      const auto found = std::ranges::find(details.fields, label, &Field::label);
      return found == details.fields.end() ? std::string("-") : found->value + " " + found->unit;
    };
    return field("clock residual") + ", " + field("in the whole run");
  };
  EXPECT_EQ(shown({0, 5 * kSecond}), "91.0 µs, 91.0 µs");
  EXPECT_EQ(shown({2 * kSecond, 5 * kSecond}), "35.0 µs, 91.0 µs");
}

TEST(Details, AListThatIsCutSaysSo) {
  std::vector<HistoryRow> rows;
  add_count_left_out(64, 64, rows);
  EXPECT_TRUE(rows.empty());
  add_count_left_out(1364, 64, rows);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.front().text, "... and " + grouped(1300) + " more");
}

}  // namespace
}  // namespace shardscope::gui
