// A run of FSDP2 is shown in FSDP2's words: group, unshard, reshard, reduction.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "app/gui/model/details.h"
#include "app/gui/model/lecture_words.h"
#include "app/gui/model/names.h"
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

TEST(Vocabulary, OfDeepSpeedIsZeros) {
  const store::Store store = of_framework("DeepSpeed 0.16");
  EXPECT_EQ(gate_place(store, ev::GateKind::pre_forward, 1), "before the forward of net.first");
  EXPECT_EQ(gate_place(store, ev::GateKind::bucket, 7), "before bucket 7 is reduced");
}

}  // namespace
}  // namespace shardscope::gui
