// The papers' tables cell by cell, and the estimate of all stages against closed forms and the scheduler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "runtime/plan/estimator.h"
#include "runtime/plan/paper_tables.h"
#include "runtime/plan/stage_estimate.h"

namespace shardscope::plan {
namespace {

using testing::ElementsAre;

constexpr double kGiB = 1024.0 * 1024 * 1024;

TEST(PaperTables, ZeroTable1EveryCell) {
  const ZeroTable1 table = zero_table1();
  std::vector<std::string> lines;
  for (const ZeroTable1Row& row : table.rows) {
    std::string line = std::to_string(row.ranks);
    for (const auto& cell : row.bytes) {
      for (const double bytes : cell) line += ' ' + as_in_table1(bytes / 1e9);
    }
    lines.push_back(line);
  }
  EXPECT_THAT(lines, ElementsAre("1 120 120 120 2048 2048 2048 16000 16000 16000",  //
                                 "4 52.5 41.3 30 896 704 512 7000 5500 4000",       //
                                 "16 35.6 21.6 7.5 608 368 128 4750 2875 1000",     //
                                 "64 31.4 16.6 1.88 536 284 32 4187 2218 250",      //
                                 "256 30.4 15.4 0.47 518 263 8 4046 2054 62.5",     //
                                 "1024 30.1 15.1 0.12 513 257 2 4011 2013 15.6"));
  // What the paper cuts.
  EXPECT_DOUBLE_EQ(table.rows[3].bytes[2][0], 4187.5e9);
  EXPECT_THROW((void)zero_table1({0}), std::invalid_argument);
  EXPECT_THROW((void)zero_table1({1e9}, {0}), std::invalid_argument);
}

TEST(PaperTables, ZeroTable2Theory) {
  std::vector<std::string> lines;
  for (const ZeroTable2Row& row : zero_table2()) {
    std::string line = std::to_string(row.model_parallel) + ' ' + std::to_string(row.gpus);
    for (const double params : row.params) line += ' ' + as_in_table2(params, row.model_parallel);
    lines.push_back(line);
  }
  EXPECT_THAT(lines, ElementsAre("1 64 2 7.6 14.4 128", "2 128 4 15.2 28.8 256", "4 256 8 30.4 57.6 512",
                                 "8 512 16 60.8 115.2 1024", "16 1024 32 121.6 230.4 2048"));
  EXPECT_NEAR(zero_table2()[4].params[1], 122.27e9, 5e6) << "the product of what is not rounded";
}

TEST(PaperTables, ZeroInfinity) {
  std::vector<std::string> lines;
  for (const InfinityRow& row : infinity_table()) {
    lines.push_back(rounded_half_up(row.params / 1e12, 2) + ' ' +
                    rounded_half_up(row.state_bytes / kGiB / 1024, 2) + ' ' +
                    rounded_half_up(row.checkpoint_bytes_per_node / kGiB / 1024, 2) + ' ' +
                    rounded_half_up(row.model_state_working_bytes / kGiB, 2) + ' ' +
                    rounded_half_up(row.activation_working_bytes / kGiB, 2));
  }
  EXPECT_THAT(lines,
              ElementsAre("0.10 1.83 0.05 1.56 1.63", "0.50 9.16 0.12 6.25 2.50", "1.01 18.31 0.20 9.77 3.56",
                          "10.05 182.81 0.76 64.00 8.00", "101.47 1845.70 3.08 400.00 18.00"));
}

std::vector<std::string> printed_rows(const std::string& text) {
  std::vector<std::string> rows;
  std::istringstream stream(text);
  constexpr int kHeaderLines = 4;
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    if (number++ >= kHeaderLines) rows.push_back(line);
  }
  return rows;
}

// The documents' "cold" t5-3b on one node of 8 GPUs, every row: rounded counts (M15; the model's own counts
// are in arithmetic_test.cpp).
TEST(Estimators, DocumentedColdRowsOfT5ThreeBillion) {
  EstimateInput input;
  input.gpus_per_node = 8;
  input.params = 2'851'000'000;
  input.largest_layer_params = 32'000'000;
  EXPECT_THAT(printed_rows(format_zero3(input)),
              ElementsAre("   71.69GB |   0.12GB | offload_param=cpu , offload_optimizer=cpu , zero_init=1",
                          "  127.45GB |   0.12GB | offload_param=cpu , offload_optimizer=cpu , zero_init=0",
                          "   63.72GB |   0.78GB | offload_param=none, offload_optimizer=cpu , zero_init=1",
                          "  127.45GB |   0.78GB | offload_param=none, offload_optimizer=cpu , zero_init=0",
                          "    1.43GB |   6.09GB | offload_param=none, offload_optimizer=none, zero_init=1",
                          "  127.45GB |   6.09GB | offload_param=none, offload_optimizer=none, zero_init=0"));
  EXPECT_THAT(printed_rows(format_zero2(input)),
              ElementsAre("  127.45GB |   5.31GB | offload_optimizer=cpu",
                          "  127.45GB |  15.93GB | offload_optimizer=none"));
}

StageEstimate row_of(const std::vector<StageEstimate>& rows, std::uint32_t stage, bool optimizer,
                     bool param) {
  for (const StageEstimate& row : rows) {
    if (row.stage == stage && row.offload_optimizer == optimizer && row.offload_param == param) return row;
  }
  ADD_FAILURE() << "no such row";
  return {};
}

TEST(StageEstimate, ColdFollowsTheExpressions) {
  StageEstimateInput input;
  input.params = 7'500'000'000;
  input.largest_layer_params = 200'000'000;
  input.gpus_per_node = 8;
  input.nodes = 8;
  const auto rows = estimate_stages(input);
  ASSERT_EQ(rows.size(), 8U);
  for (const StageEstimate& row : rows) {
    EXPECT_NEAR(static_cast<double>(row.model_states), row.device_expression.bytes(7.5e9, 64), 16.0 * 128);
    EXPECT_NEAR(static_cast<double>(row.host_states), row.host_expression.bytes(7.5e9, 64) * 8,
                18.0 * 128 * 8);
  }
  // Documents: offload leaves 2 bytes a parameter at stage 2 and 2/n at stage 3, nothing with parameters
  // offloaded.
  EXPECT_EQ(row_of(rows, 2, true, false).device_expression.text(), "2S");
  EXPECT_EQ(row_of(rows, 3, true, false).device_expression.text(), "2S/n");
  EXPECT_EQ(row_of(rows, 3, true, true).model_states, 0);
  // fp32 master weights and moments, and gradients as they are: no fp32 copy of them is made. All of it is
  // pinned with pin_memory.
  for (const std::uint32_t stage : {1U, 2U, 3U}) {
    const StageEstimate row = row_of(rows, stage, true, false);
    EXPECT_EQ(row.host_expression.text(), "14S/n");
    EXPECT_EQ(row.pinned, row.host_states);
  }
  EXPECT_EQ(row_of(rows, 3, true, true).host_expression.text(), "16S/n");
  EXPECT_EQ(row_of(rows, 3, false, false).host_expression.text(), "0");
  // One GPU holds 10^9 live parameters and the layer that runs.
  EXPECT_EQ(row_of(rows, 3, false, false).gathered, 2 * 1'200'000'000LL);
  input.zero.offload_param.pin_memory = false;
  EXPECT_NEAR(static_cast<double>(row_of(estimate_stages(input), 3, true, true).pinned), 14 * 7.5e9 / 8, 1e3);
  input.zero.offload_optimizer.pin_memory = false;
  EXPECT_EQ(row_of(estimate_stages(input), 3, true, true).pinned, 0);
  // fp32 with the optimizer on the host: master weights of its own beside the parameters.
  input.bytes = kFp32;
  EXPECT_EQ(row_of(estimate_stages(input), 1, true, false).device_expression.text(), "8S");
  EXPECT_EQ(row_of(estimate_stages(input), 3, true, true).host_expression.text(), "20S/n");
  // In stage 3 as much of the optimizer as the configuration offloads; other stages know no ratio.
  input.zero.offload_optimizer.ratio = 0.5;
  EXPECT_EQ(row_of(estimate_stages(input), 3, true, false).host_expression.text(), "8S/n");
  EXPECT_EQ(row_of(estimate_stages(input), 3, true, false).device_expression.text(), "10S/n");
  EXPECT_EQ(row_of(estimate_stages(input), 1, true, false).host_expression.text(), "16S/n");
}

TEST(StageEstimate, BucketsFollowOverlapAndPolicy) {
  StageEstimateInput input;
  input.params = 1'000'000'000;
  input.gpus_per_node = 4;
  input.zero.reduce_bucket_size = 1'000'000;
  input.zero.overlap_comm = false;
  EXPECT_EQ(row_of(estimate_stages(input), 1, false, false).buckets, 0);
  EXPECT_EQ(row_of(estimate_stages(input), 2, false, false).buckets, 2'000'000);
  input.zero.overlap_comm = true;
  EXPECT_EQ(row_of(estimate_stages(input), 2, false, false).buckets, 6'000'000);
  EXPECT_EQ(row_of(estimate_stages(input), 3, false, false).buckets, 6'000'000);
  // Pieces that leave for the host, or are added, arrive beside their bucket: of a rank a quarter at stage 3.
  EXPECT_EQ(row_of(estimate_stages(input), 2, true, false).buckets, 2 * 6'000'000);
  EXPECT_EQ(row_of(estimate_stages(input), 3, true, false).buckets, 6'000'000 + 2 * (750'000 + 1));
  input.zero.gradient_accumulation_steps = 2;
  EXPECT_EQ(row_of(estimate_stages(input), 2, false, false).buckets, 2 * 6'000'000);
  input.zero.gradient_accumulation_steps = 1;
  input.zero.compat.max_param_reduce_events = 2;  // the host waits when a fourth would be outstanding
  EXPECT_EQ(row_of(estimate_stages(input), 2, false, false).buckets, 6'000'000);
  EXPECT_EQ(row_of(estimate_stages(input), 3, false, false).buckets, 8'000'000);
  input.buffers = BufferPolicy::deepspeed;
  EXPECT_EQ(row_of(estimate_stages(input), 0, false, false).buckets, 0);
  EXPECT_EQ(row_of(estimate_stages(input), 1, false, false).buckets, 4'000'000) << "two ipg buffers";
  EXPECT_EQ(row_of(estimate_stages(input), 3, false, false).buckets, 2'000'000) << "stage 3 has one";
  input.zero.contiguous_gradients = false;
  EXPECT_EQ(row_of(estimate_stages(input), 2, false, false).buckets, 0);
}

// compat gradient_buffers: buffers and, when they are gone, fp32 copies of what is owned.
TEST(StageEstimate, GradientBuffersAreBuffersAndThenCopies) {
  StageEstimateInput input;
  input.params = 1'000'000'000;
  input.gpus_per_node = 4;
  input.zero.reduce_bucket_size = 1'000'000;
  input.zero.compat.gradient_buffers = true;
  for (const std::uint32_t stage : {1U, 2U}) {
    const StageEstimate row = row_of(estimate_stages(input), stage, false, false);
    EXPECT_EQ(row.buckets, 2'000'000) << "one buffer without overlap_comm, no module is known";
    EXPECT_EQ(row.copies, 1'000'000'000);
    EXPECT_EQ(row.device_total(), row.model_states + 1'000'000'000);
    EXPECT_EQ(row_of(estimate_stages(input), stage, true, false).copies, 0) << "the host steps what it has";
  }
  EXPECT_EQ(row_of(estimate_stages(input), 0, false, false).copies, 0);
  input.zero.sub_group_size = 10'000'000;
  const StageEstimate divided = row_of(estimate_stages(input), 3, false, false);
  EXPECT_EQ(divided.copies, 40'000'000);
  EXPECT_EQ(divided.device_total(),
            divided.model_states + divided.buckets + divided.copies + divided.gathered);
  input.zero.overlap_comm = true;
  input.zero.reduce_bucket_size = 1'000'000'000;
  const StageEstimate large = row_of(estimate_stages(input), 2, false, false);
  EXPECT_EQ(large.buckets, 4'000'000'000) << "two buffers";
  EXPECT_EQ(large.device_total(), large.model_states + large.buckets);
}

TEST(StageEstimate, GatheredParametersKeepTheLimits) {
  const ModelPlan model = build_model_plan(named_model("gpt-mini"));
  StageEstimateInput input;
  input.model = &model;
  input.gpus_per_node = 2;
  input.zero.param_persistence_threshold = 0;
  input.zero.max_reuse_distance = 0;
  for (const std::int64_t live : {0LL, 100'000LL, 400'000LL}) {
    input.zero.max_live_parameters = live;
    const std::int64_t gathered = row_of(estimate_stages(input), 3, false, false).gathered;
    EXPECT_GE(gathered, 2 * model.largest_module_elems);
    EXPECT_LE(gathered, 2 * (live + model.largest_module_elems) + 64);
  }
  // Without limits everything stays.
  input.zero = ZeroConfig{};
  EXPECT_EQ(row_of(estimate_stages(input), 3, false, false).gathered, 2 * model.elems);
  // One rank's shards are whole: nothing is gathered, unless they are on the host.
  input.gpus_per_node = 1;
  EXPECT_EQ(row_of(estimate_stages(input), 3, false, false).gathered, 0);
  EXPECT_EQ(row_of(estimate_stages(input), 3, true, true).gathered, 2 * model.elems);
}

TEST(StageEstimate, Activations) {
  const auto shape = transformer_shape(named_model("gpt2"));
  ASSERT_TRUE(shape.has_value());
  EXPECT_EQ(shape->layers, 12);
  EXPECT_EQ(shape->hidden, 768);
  EXPECT_EQ(shape->heads, 12);
  EXPECT_EQ(shape->sequence, 1024);
  EXPECT_FALSE(transformer_shape(named_model("mlp")).has_value());
  TransformerShape one = *shape;
  one.batch_per_gpu = 2;
  const ActivationEstimate activations = estimate_activations(one);
  EXPECT_DOUBLE_EQ(activations.per_layer, (2.0 * 1024 * 12 + 16 * 768) * 1024 * 2);
  EXPECT_DOUBLE_EQ(activations.per_layer, activation_bytes(1024, 12, 768, 2));
  EXPECT_DOUBLE_EQ(activations.kept, 12 * activations.per_layer);
  EXPECT_DOUBLE_EQ(activations.checkpointed, 2.0 * 2 * 1024 * 768 * 12 + activations.per_layer);
}

TEST(StageEstimate, RefusesWhatCannotBe) {
  StageEstimateInput input;
  EXPECT_THROW((void)estimate_stages(input), std::invalid_argument) << "no parameters";
  input.params = 5;
  input.nodes = 0;
  EXPECT_THROW((void)estimate_stages(input), std::invalid_argument);
}

}  // namespace
}  // namespace shardscope::plan
