// A run of FSDP2 is shown in FSDP2's words: group, unshard, reshard, reduction.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/zero_settings.h"
#include "app/gui/model/breakpoints.h"
#include "app/gui/model/details.h"
#include "app/gui/model/ds_summary.h"
#include "app/gui/model/format.h"
#include "app/gui/model/gradient_states.h"
#include "app/gui/model/lecture_words.h"
#include "app/gui/model/mark_words.h"
#include "app/gui/model/names.h"
#include "app/gui/model/row_curves.h"
#include "app/gui/model/scheduler_actions.h"
#include "app/gui/model/span_text.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/bucket.h"
#include "tests/app/store/odd_ends.h"

namespace shardscope::gui {
namespace {

using ev::StreamId;

store::Store of_framework(const char* name) {
  store::Store store = store::odd_ends();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ev::RunTables tables = store.tables();
    tables.rank = rank;
    tables.framework = name;
    store.set_tables(rank, tables);
  }
  return store;
}

std::unique_ptr<Session> settled(store::Store store) {
  auto run = std::make_unique<Session>(std::move(store));
  run->settle();
  return run;
}

TEST(Vocabulary, OfFsdp2IsInLabelsReasonsAndPlaces) {
  AppState app;
  app.run = settled(of_framework("FSDP2 (PyTorch 2.15.0)"));
  app.place_once();
  const store::Store& store = app.store();
  const store::LaneId compute{1, StreamId::compute};
  const store::Span wait = store.spans(compute, 1).front();
  EXPECT_EQ(label_of(store, 1, wait), "waits for unshard of group net.second");
  EXPECT_EQ(wait_text(store, 1, wait, app.run->index()), "unshard for group net.second");
  const std::string fold = fold_text(store, compute, 1, wait.begin_ns, 2);
  EXPECT_NE(fold.find("mostly waits for unshard."), std::string::npos) << fold;
  const Details details = describe_span(app, compute, wait);
  EXPECT_NE(details.reason.find("at group net.second until unshard 5 of net.second"), std::string::npos)
      << details.reason;
  const store::LaneId gathers{0, StreamId::gather};
  EXPECT_EQ(describe_span(app, gathers, store.spans(gathers, 0).front()).reason,
            "Prefetched at group net.first, for net.second");
  EXPECT_EQ(gate_place(store, ev::GateKind::pre_forward, 1), "before the forward of group net.first");
  EXPECT_EQ(gate_place(store, ev::GateKind::bucket, 7), "before reduction 7");
  const std::uint32_t second = 1;
  const auto reason = [&](std::uint8_t status, ev::StatusCause cause) {
    return reason_of(store, ev::status_code(status, cause), 2, std::span(&second, 1));
  };
  EXPECT_EQ(reason(1, ev::StatusCause::fetch), "unsharded for group net.second");
  EXPECT_EQ(reason(0, ev::StatusCause::release), "resharded after group net.second");
}

std::string field_of(const store::Store& store, const std::string& label) {
  for (const Field& field : param_summary(store, 0, 0, 0)) {
    if (field.label == label) return field.value;
  }
  return "no " + label;
}

TEST(Vocabulary, AParameterIsSummarizedInItsFrameworksWords) {
  const store::Store fsdp2 = of_framework("FSDP2 (PyTorch 2.15.0)");
  EXPECT_EQ(param_summary_heading(fsdp2, 0).find("State of "), 0U) << param_summary_heading(fsdp2, 0);
  EXPECT_EQ(field_of(fsdp2, "status"), "resharded");
  EXPECT_EQ(field_of(fsdp2, "elements"), grouped(fsdp2.tables().params[0].elems));
  for (const Field& field : param_summary(fsdp2, 0, 0, 0))
    EXPECT_EQ(std::string(field.label).find("ds_"), std::string::npos) << field.label;
  const store::Store deepspeed = of_framework("DeepSpeed 0.19.8, PyTorch 2.15.0");
  EXPECT_EQ(param_summary_heading(deepspeed, 0).find("ds_summary of "), 0U);
  EXPECT_NE(field_of(deepspeed, "ds_shape"), "no ds_shape");
  store::Store ddp = of_framework("DistributedDataParallel (PyTorch 2.15.0)");
  ev::RunTables whole = ddp.tables();
  whole.stage = 0;
  for (whole.rank = 0; whole.rank < 2; ++whole.rank) ddp.set_tables(whole.rank, whole);
  EXPECT_EQ(field_of(ddp, "status"), "whole on every rank");
}

TEST(Vocabulary, OfFsdp2IsInTheStepperAndTheLecture) {
  store::Store store = of_framework("FSDP2 (PyTorch 2.15.0)");
  store::Chunk chunk;
  chunk.rank = 0;
  chunk.sequence = 1;
  const auto at = static_cast<std::uint64_t>(21 * store::kMs + store::kPauseNs);
  const auto released = ev::status_code(0, ev::StatusCause::release);
  chunk.events = {{at, ev::EventKind::param_status, StreamId::compute, released, 1, 2, 5, 50, 50},
                  {at, ev::EventKind::bucket_flush, StreamId::host,
                   static_cast<std::uint8_t>(plan::FlushReason::group_complete), 7, ev::kNoId, 2, 50, 0}};
  store.ingest(chunk);
  std::string all;
  for (const SchedulerAction& action : scheduler_actions(store, 0, 0, store::Store::kEnd))
    all += action.text + " (" + action.reason + ")\n";
  EXPECT_NE(all.find("Resharded: second.weight (50 elements) (resharded after group net.second)"),
            std::string::npos)
      << all;
  EXPECT_NE(all.find("Reduction 7: 2 gradients, 50 elements"), std::string::npos) << all;
  EXPECT_EQ(all.find("eleased"), std::string::npos) << all;
  EXPECT_EQ(all.find("ucket"), std::string::npos) << all;
  EXPECT_EQ(lesson_of(SceneKind::step, 2, store::Framework::fsdp2).find("stage 3"), std::string::npos);
  EXPECT_NE(lesson_of(SceneKind::release, 2, store::Framework::fsdp2).find("Reshard"), std::string::npos);
}

TEST(Vocabulary, OfFsdp1IsItsUnits) {
  const store::Store store = of_framework("FSDP1 (PyTorch 2.15.0)");
  EXPECT_EQ(gate_place(store, ev::GateKind::pre_forward, 1), "before the forward of unit net.first");
  EXPECT_EQ(gate_place(store, ev::GateKind::bucket, 7), "before reduction 7");
  EXPECT_EQ(cause_word(store, ev::StatusCause::release), "resharded");
  EXPECT_STREQ(word(words_of(store), GradientStatus::in_bucket), "waiting for its unit");
}

TEST(Vocabulary, ASpanWithoutAnIdHasNoNumber) {
  AppState app;
  app.run = settled(of_framework("DeepSpeed 0.16"));
  app.place_once();
  store::Span span;
  span.kind = ev::EventKind::reduce_wait_begin;
  span.end_ns = 10;
  const store::LaneId lane{0, StreamId::compute};
  const auto reason = [&] { return describe_span(app, lane, span).reason; };
  const auto waits = [&] { return wait_text(app.store(), 0, span, app.run->index()); };
  span.a = span.b = span.c = ev::kNoId;
  EXPECT_EQ(reason(), "Compute waited until a reduction had ended");
  EXPECT_EQ(waits(), "a reduction");
  span.a = 7;
  EXPECT_EQ(reason(), "Compute waited until bucket 7 was reduced");
  EXPECT_EQ(waits(), "bucket 7 to be reduced");
  span.kind = ev::EventKind::fetch_wait_begin;
  span.a = ev::kNoId;
  EXPECT_EQ(reason(), "Compute waited for persistent parameters");
  EXPECT_EQ(waits(), "gather of persistent parameters");
}

TEST(Vocabulary, TheTipOfABandNamesAModuleThatNoOtherIs) {
  AppState app;
  app.run = settled(of_framework("FSDP2 (PyTorch 2.15.0)"));
  app.place_once();
  StatusPiece now, next;
  next.begin_ns = 10;
  now.state.since_ns = 1;
  now.state.module = next.state.module = 2;
  now.state.cause = ev::StatusCause::fetch;
  next.state.cause = ev::StatusCause::release;
  const std::string tip = status_tip(app, 1, 0, {now, next}, 5);
  EXPECT_NE(tip.find("Cause: unsharded, at group net.second"), std::string::npos) << tip;
  EXPECT_NE(tip.find(", resharded at group net.second"), std::string::npos) << tip;
}

TEST(Vocabulary, ALectureSaysOverHowManyRanksACopyIsDivided) {
  ev::RunTables tables;
  tables.world = 4;
  tables.framework = "FSDP2 (PyTorch 2.15.0)";
  const auto lesson = [&] {
    return lesson_of(SceneKind::step, analysis::shard_ranks(tables), store::Framework::fsdp2);
  };
  EXPECT_NE(lesson().find("over the 4 ranks:"), std::string::npos) << lesson();
  const auto add = [&](ev::GroupPurpose purpose, std::vector<std::uint32_t> ranks) {
    ev::GroupInfo group;
    group.id = static_cast<std::uint32_t>(tables.groups.size());
    group.purpose = purpose;
    group.ranks = std::move(ranks);
    tables.groups.push_back(group);
  };
  add(ev::GroupPurpose::replica, {0, 2});
  EXPECT_NE(lesson().find("over the ranks that share one copy of the model:"), std::string::npos) << lesson();
  add(ev::GroupPurpose::shard, {0, 1});
  EXPECT_NE(lesson().find("over the 2 ranks:"), std::string::npos) << lesson();
}

TEST(Vocabulary, OfDeepSpeedIsZeros) {
  const store::Store store = of_framework("DeepSpeed 0.16");
  EXPECT_EQ(gate_place(store, ev::GateKind::pre_forward, 1), "before the forward of net.first");
  EXPECT_EQ(gate_place(store, ev::GateKind::bucket, 7), "before bucket 7 is reduced");
  // What distinguishes gates comes first, so that a narrow column cuts the rest.
  EXPECT_EQ(brief_gate_place(store, ev::GateKind::pre_forward, 1), "net.first, before forward");
  EXPECT_EQ(brief_gate_place(store, ev::GateKind::bucket, 7), "bucket 7, before it");
  EXPECT_EQ(brief_gate_place(store, ev::GateKind::step, 3), "step 3, start");
}

TEST(Vocabulary, BreakpointsAndMarksSpeakAsTheFramework) {
  const store::Vocabulary& zero = store::vocabulary_of(store::Framework::zero);
  const store::Vocabulary& fsdp2 = store::vocabulary_of(store::Framework::fsdp2);
  EXPECT_STREQ(word(BreakKind::bucket, zero), "bucket flushed");
  EXPECT_STREQ(word(BreakKind::bucket, fsdp2), "reduction begins");
  EXPECT_EQ(meaning_of(Mark::unused, zero), "gather that nothing used");
  EXPECT_EQ(meaning_of(Mark::unused, fsdp2), "unshard that nothing used");
  EXPECT_EQ(meaning_of(Mark::flush, fsdp2), "") << "no bucket has a size";
  EXPECT_EQ(meaning_of(Mark::flush_rest, fsdp2), "reduction begins: group complete");
  EXPECT_EQ(meaning_of(Mark::flush_rest, store::vocabulary_of(store::Framework::fsdp1)),
            "reduction begins: unit complete");
  for (const Mark mark : kMarks) EXPECT_FALSE(meaning_of(mark, zero).empty());
}

}  // namespace
}  // namespace shardscope::gui
