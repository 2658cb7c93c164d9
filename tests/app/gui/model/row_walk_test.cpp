// The timeline by keyboard: which row and span is next.
#include "app/gui/model/row_walk.h"

#include <algorithm>

#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

class RowWalk : public Model {
 protected:
  RowWalk() {
    app_.timeline.expanded = {0};
    app_.timeline.automatic = false;
    rows_ = layout_rows(data(), app_.timeline);
  }
  [[nodiscard]] const TimelineRow& row(RowKind kind, std::uint8_t depth = 0) const {
    return *std::ranges::find_if(rows_.rows, [&](const TimelineRow& one) {
      return one.kind == kind && one.depth == depth && one.rank == 0;
    });
  }
  TimelineRows rows_;
};

/// By arrows every span of a lane is reached once, in order, and none after the last.
TEST_F(RowWalk, ArrowsGoOverEverySpanOfALane) {
  for (const RowKind kind : {RowKind::gather, RowKind::compute, RowKind::waits}) {
    const TimelineRow& lane = row(kind);
    std::vector<std::int64_t> all;
    if (kind == RowKind::waits)
      for (const store::Span& span : app_.run->index().waits(0)) all.push_back(span.begin_ns);
    else
      for (const store::Span& span : data().spans(lane.lane(), 0)) all.push_back(span.begin_ns);
    ASSERT_GT(all.size(), 3U);
    std::vector<std::int64_t> walked;
    std::int64_t at = -1;
    while (const auto next = span_beside(app_, lane, at, Toward::later).span) {
      at = next->begin_ns;
      walked.push_back(at);
      ASSERT_LE(walked.size(), all.size());
    }
    EXPECT_EQ(walked, all);
    std::vector<std::int64_t> back{at};
    while (const auto before = span_beside(app_, lane, back.back(), Toward::earlier).span) {
      back.push_back(before->begin_ns);
      ASSERT_LE(back.size(), all.size());
    }
    std::ranges::reverse(back);
    EXPECT_EQ(back, all);
  }
}

TEST_F(RowWalk, BeginsWithTheSpanAtTheCursorAndGoesOnFromTheSelectedOne) {
  const TimelineRow& lane = row(RowKind::compute);
  const auto spans = data().spans(lane.lane(), 0);
  const store::Span& second = spans[1];
  app_.time.set({0, data().end_ns()}, data().end_ns());
  app_.cursor_ns = (second.begin_ns + second.end_ns) / 2;
  const auto first = next_on_row(app_, lane, Toward::later);
  ASSERT_TRUE(first.span);
  EXPECT_EQ(first.span->begin_ns, second.begin_ns);
  app_.select_span(lane.lane(), *first.span);
  EXPECT_EQ(next_on_row(app_, lane, Toward::later).span->begin_ns, spans[2].begin_ns);
  EXPECT_EQ(next_on_row(app_, lane, Toward::earlier).span->begin_ns, spans[0].begin_ns);
}

TEST_F(RowWalk, HiddenClassesArePassedOver) {
  const auto modules_of = [&](const TimelineRow& lane) {
    std::size_t modules = 0;
    std::int64_t at = -1;
    while (const auto next = span_beside(app_, lane, at, Toward::later).span) {
      at = next->begin_ns;
      modules += next->kind == ev::EventKind::module_begin ? 1 : 0;
    }
    return modules;
  };
  const TimelineRow& lane = row(RowKind::compute, 2);
  EXPECT_GT(modules_of(lane), 0U);
  app_.timeline.view.set(ItemClass::modules, false);
  EXPECT_EQ(modules_of(lane), 0U);
}

TEST_F(RowWalk, ARowIsFoundAgainWhereverItMoves) {
  const TimelineRow gather = row(RowKind::gather);
  const std::size_t before = *index_of(rows_, gather);
  app_.timeline.counters.insert(RowCounter::loss);
  rows_ = layout_rows(data(), app_.timeline);
  EXPECT_EQ(*index_of(rows_, gather), before + 1);
  set_expanded(app_.timeline, row(RowKind::rank), false);
  rows_ = layout_rows(data(), app_.timeline);
  EXPECT_FALSE(index_of(rows_, gather)) << "its rank's lanes are hidden";
  set_expanded(app_.timeline, row(RowKind::rank), true);
  rows_ = layout_rows(data(), app_.timeline);
  const store::Span span = data().spans(gather.lane(), 0).front();
  app_.select_span(gather.lane(), span);
  EXPECT_EQ(row_of_selection(app_, rows_), *index_of(rows_, gather));
  app_.select_rank(0);
  EXPECT_EQ(rows_.rows[row_of_selection(app_, rows_)].kind, RowKind::rank);
}

}  // namespace
}  // namespace shardscope::gui
