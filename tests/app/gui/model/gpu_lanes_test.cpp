// The lanes of the GPU in the model layer: rows, names, what the inspector and the tooltip say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "app/gui/model/app_state.h"
#include "app/gui/model/details.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/gui/model/palette.h"
#include "tests/app/store/synthetic_gpu.h"

namespace shardscope::gui {
namespace {

using ::testing::HasSubstr;

class GpuLanes : public ::testing::Test {
 protected:
  GpuLanes() {
    app_.run = std::make_unique<Session>(store::make_synthetic_gpu_store());
    app_.run->settle();
    app_.place_once();
  }
  [[nodiscard]] const store::Store& data() const { return app_.store(); }
  static const Field* field(const Details& details, const std::string& label) {
    const auto found = std::ranges::find(details.fields, label, &Field::label);
    return found == details.fields.end() ? nullptr : &*found;
  }
  AppState app_;
};

TEST_F(GpuLanes, HaveARowForEachStreamThatDidAnything) {
  app_.timeline.expanded.insert(0);
  std::vector<std::string> labels;
  for (const TimelineRow& row : layout_rows(data(), app_.timeline).rows) {
    if (row.rank != 0 || row.kind != RowKind::gpu) continue;
    labels.emplace_back(row.label());
    EXPECT_EQ(row.lane(), (store::LaneId{0, row.gpu_lane}));
  }
  EXPECT_THAT(labels, ::testing::ElementsAre("GPU compute", "GPU gather", "GPU reduce"));
}

TEST_F(GpuLanes, TheInspectorSaysForWhomHowLateAndWhyTheStreamWasIdle) {
  const store::LaneId lane{0, ev::StreamId::gpu_compute};
  const auto spans = data().spans(lane, 0);
  ASSERT_GT(spans.size(), 10U);
  bool gap = false;
  for (std::size_t i = 1; i < spans.size(); ++i) {
    const Details details = describe_span(app_, lane, spans[i]);
    const auto& names = store::gpu_names();
    EXPECT_NE(std::ranges::find(names, details.title), names.end()) << details.title;
    ASSERT_NE(field(details, "launch to start"), nullptr);
    const Quantity delay = duration(spans[i].v0);
    EXPECT_EQ(field(details, "launch to start")->value, delay.number);
    EXPECT_EQ(field(details, "launch to start")->unit, delay.unit);
    ASSERT_NE(field(details, "for"), nullptr);
    if (spans[i].begin_ns <= spans[i - 1].end_ns) continue;
    gap = true;
    EXPECT_THAT(details.reason, HasSubstr("Idle before: "));
    const std::int64_t middle = (spans[i].begin_ns + spans[i - 1].end_ns) / 2;
    EXPECT_THAT(idle_text(app_, lane, middle), HasSubstr("Idle "));
  }
  EXPECT_TRUE(gap);
  EXPECT_EQ(idle_text(app_, lane, (spans[3].begin_ns + spans[3].end_ns) / 2), "");
}

TEST_F(GpuLanes, WhereNothingWasRecordedTheLaneSaysSo) {
  app_.run = std::make_unique<Session>(store::make_synthetic_store());
  app_.run->settle();
  EXPECT_EQ(idle_text(app_, {0, ev::StreamId::gpu_compute}, 1000), "No records of the GPU here");
}

TEST_F(GpuLanes, ColoursSayWhomTheWorkWasFor) {
  const auto code = [](ev::GpuWork work, ev::GpuOwner owner) { return ev::gpu_code(work, owner); };
  const auto on = [&](ev::StreamId lane, std::uint8_t c) {
    return meaning_on(lane, ev::EventKind::gpu_begin, c);
  };
  using enum ev::StreamId;
  EXPECT_EQ(on(gpu_compute, code(ev::GpuWork::kernel, ev::GpuOwner::forward)), Meaning::compute);
  EXPECT_EQ(on(gpu_compute, code(ev::GpuWork::kernel, ev::GpuOwner::optimizer)), Meaning::optimizer);
  EXPECT_EQ(on(gpu_copy, code(ev::GpuWork::host_to_device, ev::GpuOwner::none)), Meaning::copy);
  EXPECT_EQ(on(gpu_gather, code(ev::GpuWork::kernel, ev::GpuOwner::none)), Meaning::gather);
  EXPECT_EQ(on(gpu_reduce, code(ev::GpuWork::kernel, ev::GpuOwner::collective)), Meaning::reduce);
}

}  // namespace
}  // namespace shardscope::gui
