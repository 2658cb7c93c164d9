// A program that attaches to another program's training: events before the run is described, models added
// during the run, groups, lanes, what cannot be recorded and why. One rank, in this process; the recording
// must hold what was emitted.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "app/collector/collector.h"
#include "app/store/database.h"
#include "app/store/recording.h"
#include "instrumentation/capability.h"
#include "shardscope/shardscope.h"

namespace shardscope {
namespace {

namespace ev = instrumentation;

#define SAID(call) ASSERT_EQ(call, SHARDSCOPE_OK) << shardscope_last_error()

std::uint32_t add_linear(shardscope_run* run, std::uint32_t model, const char* path) {
  shardscope_module module = SHARDSCOPE_MODULE_INIT;
  module.path = path;
  module.model = model;
  std::uint32_t id = SHARDSCOPE_NO_ID, param_id = SHARDSCOPE_NO_ID;
  EXPECT_EQ(shardscope_add_module(run, &module, &id), SHARDSCOPE_OK) << shardscope_last_error();
  const std::int64_t shape[2] = {4, 6};
  shardscope_param param = SHARDSCOPE_PARAM_INIT;
  param.name = path;
  param.dtype = "bf16";
  param.shape = shape;
  param.dims = 2;
  EXPECT_EQ(shardscope_add_param(run, &param, &param_id), SHARDSCOPE_OK) << shardscope_last_error();
  EXPECT_EQ(shardscope_use_param(run, id, param_id), SHARDSCOPE_OK);
  // The left half of each row.
  shardscope_slice slice = SHARDSCOPE_SLICE_INIT;
  slice.param = param_id;
  slice.elems = 12;
  slice.block_elems = 3;
  slice.stride_elems = 6;
  EXPECT_EQ(shardscope_add_slice(run, &slice), SHARDSCOPE_OK) << shardscope_last_error();
  slice.param_offset = 4;  // its last piece would end behind the parameter
  EXPECT_EQ(shardscope_add_slice(run, &slice), SHARDSCOPE_INVALID_ARGUMENT);
  return id;
}

class AttachedRun : public testing::Test {
 protected:
  static void SetUpTestSuite() { play(); }
  static void TearDownTestSuite() {
    store_.reset();
    std::filesystem::remove(path_);
  }
  static void play() {
    path_ = testing::TempDir() + "attached_" + std::to_string(getpid()) + ".zscope";
    collector::CollectorOptions options;
    options.listen = "tcp://127.0.0.1:0";
    options.record_path = path_;
    collector::Collector collector(options);

    // Before anything is known of the run.
    SAID(shardscope_keep(SHARDSCOPE_DETAIL_PARAMS, 1024));
    kept_from_ns_ = shardscope_now_ns();
    shardscope_phase_begin(SHARDSCOPE_LANE_COMPUTE, SHARDSCOPE_PHASE_COMPILATION, 0, SHARDSCOPE_NO_ID);
    shardscope_memory_level(SHARDSCOPE_POOL_DEVICE, SHARDSCOPE_MEMORY_PARAM_SHARD, 1000);
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    shardscope_phase_end(SHARDSCOPE_LANE_COMPUTE, SHARDSCOPE_PHASE_COMPILATION, 0, SHARDSCOPE_NO_ID);
    kept_to_ns_ = shardscope_now_ns();

    shardscope_run_info info = SHARDSCOPE_RUN_INFO_INIT;
    info.run_id = "attached";
    info.framework = "DeepSpeed 0.19.8";
    info.records = SHARDSCOPE_RECORDS_STEPS | SHARDSCOPE_RECORDS_MODULES | SHARDSCOPE_RECORDS_MEMORY;
    shardscope_run* run = nullptr;
    SAID(shardscope_run_create(&info, &run));
    std::uint32_t copy_in = 99;
    SAID(shardscope_name_id(run, "copy-in", &copy_in));
    EXPECT_EQ(copy_in, 0U);
    shardscope_options start = SHARDSCOPE_OPTIONS_INIT;
    const std::string endpoint = collector.publish_endpoint();
    start.endpoint = endpoint.c_str();
    SAID(shardscope_start(run, &start));
    EXPECT_EQ(shardscope_keep(SHARDSCOPE_DETAIL_STEPS, 0), SHARDSCOPE_INVALID_STATE);
    EXPECT_EQ(shardscope_gate_armed(), 0);
    shardscope_step_begin(1);
    std::uint64_t ticket = 0;
    EXPECT_EQ(shardscope_gate_pass(SHARDSCOPE_GATE_STEP, 1, &ticket), 0);
    EXPECT_EQ(ticket, 1U);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the first tables have been sent

    // Models added during the run.
    shardscope_model model = SHARDSCOPE_MODEL_INIT;
    model.name = "tiny";
    std::uint32_t policy = 99, reference = 99;
    model.role = "policy";
    SAID(shardscope_add_model(run, &model, &policy));
    add_linear(run, policy, "policy.linear");
    SAID(shardscope_publish(run));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    model.role = "reference";
    SAID(shardscope_add_model(run, &model, &reference));
    const std::uint32_t module = add_linear(run, reference, "reference.linear");
    EXPECT_EQ(module, 1U);
    const std::uint32_t ranks[1] = {0};
    shardscope_group group = SHARDSCOPE_GROUP_INIT;
    group.name = "mesh_tp";
    group.purpose = SHARDSCOPE_GROUP_TENSOR;
    group.ranks = ranks;
    group.count = 1;
    std::uint32_t tp = 99;
    SAID(shardscope_add_group(run, &group, &tp));
    SAID(shardscope_name_lane(run, SHARDSCOPE_LANE_EXTRA_1, "all-gather copy-in"));
    const std::uint32_t params[2] = {0, 1};
    shardscope_param_group decay = SHARDSCOPE_PARAM_GROUP_INIT;
    decay.name = "decay";
    decay.lr = 1e-3;
    decay.beta1 = 0.9;
    decay.beta2 = 0.95;
    decay.eps = 1e-8;
    decay.weight_decay = 0.1;
    decay.params = params + 1;
    decay.count = 1;
    SAID(shardscope_add_param_group(run, &decay));
    shardscope_param_group no_decay = SHARDSCOPE_PARAM_GROUP_INIT;
    no_decay.name = "no_decay";
    no_decay.params = params;
    no_decay.count = 1;
    SAID(shardscope_add_param_group(run, &no_decay));
    SAID(shardscope_not_recorded(run, SHARDSCOPE_RECORDS_MODULES | SHARDSCOPE_RECORDS_PREFETCHES,
                                 "compiled with DeepCompile: there are no module hooks"));
    info.stage = 3;
    info.model = "tiny twice";
    SAID(shardscope_update_run(run, &info));
    SAID(shardscope_publish(run));

    shardscope_span_begin(SHARDSCOPE_LANE_EXTRA_1, copy_in, 7, 4096);
    shardscope_span_end(SHARDSCOPE_LANE_EXTRA_1, copy_in, 7, 4096);
    const std::uint32_t sequence = shardscope_group_sequence(tp, 5);
    const std::uint32_t code = shardscope_group_code(SHARDSCOPE_F8_E4M3, tp) | SHARDSCOPE_END_IS_BOUND;
    shardscope_collective_begin_among(SHARDSCOPE_LANE_GATHER, SHARDSCOPE_SEND, sequence, SHARDSCOPE_NO_ID,
                                      code, 64, 64);
    shardscope_collective_end_among(SHARDSCOPE_LANE_GATHER, SHARDSCOPE_SEND, sequence, SHARDSCOPE_NO_ID, code,
                                    64, 64);
    shardscope_release_kept(SHARDSCOPE_KEEP_RESHARD_OFF, module, 1, 24);
    shardscope_memory_level(SHARDSCOPE_POOL_DEVICE, SHARDSCOPE_MEMORY_ACTIVATION, 500);
    shardscope_memory_level(SHARDSCOPE_POOL_DEVICE, SHARDSCOPE_MEMORY_ACTIVATION, 500);  // as before
    shardscope_memory_level(SHARDSCOPE_POOL_DEVICE, SHARDSCOPE_MEMORY_PARAM_SHARD, 300);
    shardscope_allocator_state(SHARDSCOPE_POOL_DEVICE, 4000, 700, 2, 1);
    shardscope_event many[2] = {
        {SHARDSCOPE_EVENT_LOSS, SHARDSCOPE_LANE_HOST, 0, 1, 0, SHARDSCOPE_NO_ID, shardscope_bits_(2.5), 0},
        {SHARDSCOPE_EVENT_STEP_END, SHARDSCOPE_LANE_HOST, 0, 1, SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID, 10, 0}};
    shardscope_emit_many(many, nullptr, 2);
    expect_inert_child(run);
    SAID(shardscope_finish(run, 0, "done"));
    EXPECT_EQ(shardscope_publish(run), SHARDSCOPE_INVALID_STATE);
    shardscope_run_destroy(run);
    collector.stop();
    EXPECT_EQ(collector.status().rejected, 0U);
    store::RecordingInfo opened;
    store_ = std::make_unique<store::Store>(store::open_recording(path_, &opened));
    EXPECT_TRUE(opened.complete);
    for (const std::string& problem : opened.problems) ADD_FAILURE() << problem;
  }

  /// A child of fork() emits nothing, does not wait in gates, and destroys nothing of its parent's.
  static void expect_inert_child(shardscope_run* run) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(10);  // a lock of its parent's would hold it for ever
      bool inert = shardscope_gate(SHARDSCOPE_GATE_STEP, 77) == SHARDSCOPE_INVALID_STATE;
      inert = inert && shardscope_enabled(SHARDSCOPE_DETAIL_STEPS) == 0;
      shardscope_step_begin(77);
      inert = inert && shardscope_finish(run, 3, "the child's") == SHARDSCOPE_INVALID_STATE;
      shardscope_run_destroy(run);
      _exit(inert ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }

  static std::string path_;
  static std::unique_ptr<store::Store> store_;
  static std::int64_t kept_from_ns_, kept_to_ns_;
};
std::string AttachedRun::path_;
std::unique_ptr<store::Store> AttachedRun::store_;
std::int64_t AttachedRun::kept_from_ns_ = 0;
std::int64_t AttachedRun::kept_to_ns_ = 0;

TEST_F(AttachedRun, EventsBeforeTheStartAreThereAtTheirTimes) {
  const std::vector<store::Span> spans = store_->spans({0, ev::StreamId::compute}, 0);
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].kind, ev::EventKind::phase_begin);
  EXPECT_EQ(spans[0].code, static_cast<std::uint8_t>(ev::Phase::compilation));
  // The first event of the run is at 0.
  EXPECT_LT(spans[0].begin_ns, 1'000'000);
  const std::int64_t length = spans[0].end_ns - spans[0].begin_ns;
  EXPECT_GE(length, 60'000'000);
  EXPECT_LE(length, kept_to_ns_ - kept_from_ns_ + 1'000'000);
  EXPECT_EQ(store_->dropped_count(), 0U);
}

TEST_F(AttachedRun, ParameterGroupsAreThereAfterAnUpdate) {
  const ev::RunTables& t = store_->tables();
  ASSERT_EQ(t.param_groups.size(), 2U);
  EXPECT_EQ(t.param_groups[0],
            (ev::ParamGroupInfo{"decay", 1e-3, 0.9, 0.95, 1e-8, 0.1, std::vector<std::uint32_t>{1}}));
  EXPECT_EQ(t.param_groups[1].name, "no_decay");
  EXPECT_EQ(t.param_groups[1].params, std::vector<std::uint32_t>{0});
}

TEST_F(AttachedRun, ModelsThatCameLaterAreThereWithTheirIds) {
  const ev::RunTables& t = store_->tables();
  EXPECT_EQ(t.stage, 3);
  EXPECT_EQ(t.model, "tiny twice");
  EXPECT_EQ(t.elems, 48);
  ASSERT_EQ(t.models.size(), 2U);
  EXPECT_EQ(t.models[1], (ev::ModelInfo{1, "tiny", "reference"}));
  ASSERT_EQ(t.modules.size(), 2U);
  EXPECT_EQ(t.modules[0].path, "policy.linear");
  EXPECT_EQ(t.modules[1].path, "reference.linear");
  EXPECT_EQ(t.modules[1].model, 1U);
  ASSERT_EQ(t.slices.size(), 2U);
  EXPECT_EQ(t.slices[1], (ev::SliceInfo{1, 0, 0, 0, 12, 0, 3, 6}));
}

TEST_F(AttachedRun, GroupsAndLanesHaveNames) {
  const ev::RunTables* own = store_->rank_tables(0);
  ASSERT_NE(own, nullptr);
  ASSERT_EQ(own->groups.size(), 1U);
  EXPECT_EQ(own->groups[0], (ev::GroupInfo{0, "mesh_tp", ev::GroupPurpose::tensor, {0}}));
  ASSERT_EQ(own->lanes.size(), 1U);
  EXPECT_EQ(own->lanes[0], (ev::LaneName{ev::StreamId::extra_1, "all-gather copy-in"}));
  const std::vector<store::Span> spans = store_->spans({0, ev::StreamId::extra_1}, 0);
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(store_->name(0, spans[0].a), "copy-in");
  EXPECT_EQ(spans[0].v0, 4096);
  const std::vector<store::Span> sent = store_->spans({0, ev::StreamId::gather}, 0);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].a, ev::group_sequence(0, 5));
  EXPECT_EQ(ev::group_of(sent[0].c), 0U);
  EXPECT_TRUE(ev::end_is_bound(sent[0].c));
}

TEST_F(AttachedRun, WhatIsNotRecordedHasItsReason) {
  const ev::RunTables& t = store_->tables();
  EXPECT_EQ(t.framework, "DeepSpeed 0.19.8");
  EXPECT_EQ(t.records, SHARDSCOPE_RECORDS_STEPS | SHARDSCOPE_RECORDS_MEMORY);
  EXPECT_EQ(ev::why_not_recorded(t, ev::Capability::modules),
            "compiled with DeepCompile: there are no module hooks");
  EXPECT_EQ(ev::why_not_recorded(t, ev::Capability::loss), "DeepSpeed 0.19.8 is not recorded with loss");
  EXPECT_EQ(ev::why_not_recorded(t, ev::Capability::memory), std::nullopt);
  EXPECT_EQ(ev::why_not_recorded(ev::RunTables{}, ev::Capability::loss), std::nullopt);
}

TEST_F(AttachedRun, LevelsOfMemoryAreItsCategories) {
  const std::vector<ev::Event> states = store_->instants_of(0, ev::EventKind::allocator_state);
  ASSERT_EQ(states.size(), 1U);
  EXPECT_EQ(states[0].v0, 4000);
  EXPECT_EQ(states[0].v1, 700);
  EXPECT_EQ(states[0].a, 2U);
  EXPECT_EQ(states[0].b, 1U);
  const store::MemorySample end = store_->memory_at(0, ev::MemoryPool::device, store_->end_ns());
  EXPECT_EQ(end.bytes[static_cast<std::size_t>(ev::MemoryCategory::param_shard)], 300);
  EXPECT_EQ(end.bytes[static_cast<std::size_t>(ev::MemoryCategory::activation)], 500);
  EXPECT_EQ(end.total(), 800);
  EXPECT_EQ(store_->instant_count(0, ev::EventKind::memory_alloc), 2U);
  EXPECT_EQ(store_->instant_count(0, ev::EventKind::memory_free), 1U);
}

TEST_F(AttachedRun, TheFileSaysItInSql) {
  store::Database file(path_, store::Database::Access::read);
  const auto text = [&](const char* query) {
    store::Statement rows = file.prepare(query);
    return rows.step() ? rows.text(0) : std::string("no row");
  };
  EXPECT_EQ(text("SELECT value FROM meta WHERE key = 'framework'"), "DeepSpeed 0.19.8");
  EXPECT_EQ(text("SELECT value FROM meta WHERE key = 'records'"), "steps,memory");
  const nlohmann::json lacks =
      nlohmann::json::parse(text("SELECT value FROM meta WHERE key = 'not_recorded'"));
  EXPECT_EQ(lacks[0]["what"], "modules,prefetches");
  EXPECT_EQ(text("SELECT role FROM models WHERE id = 1"), "reference");
  EXPECT_EQ(text("SELECT purpose || ranks FROM process_groups WHERE name = 'mesh_tp'"), "tensor[0]");
  EXPECT_EQ(text("SELECT name FROM lane_names WHERE lane = 'extra_1'"), "all-gather copy-in");
  EXPECT_EQ(text("SELECT count(*) FROM slices WHERE block_elems = 3 AND stride_elems = 6"), "2");
  EXPECT_EQ(text("SELECT model FROM run"), "tiny twice");
}

}  // namespace
}  // namespace shardscope
