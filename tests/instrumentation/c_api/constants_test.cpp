// The constants of the C interface are the whole of the enumerations that they stand for: a value that is
// added there and not here fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string>
#include <vector>

#include "instrumentation/capability.h"
#include "instrumentation/event.h"
#include "instrumentation/gate.h"
#include "instrumentation/param_status.h"
#include "kernels/types.h"
#include "runtime/plan/bucket.h"
#include "runtime/plan/fetch_counters.h"
#include "runtime/plan/in_flight_limit.h"
#include "runtime/plan/prefetch_outcome.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/zenflow.h"
#include "shardscope/shardscope.h"
#include "tests/instrumentation/enumerators.h"

namespace shardscope {
namespace {

namespace ev = instrumentation;

/// `constants` in the header's order; their number is that of the enumeration, and so is each value.
template <typename Enum>
void expect_whole(const std::vector<int>& constants) {
  const std::vector<test::Enumerator> known = test::enumerators<Enum>();
  ASSERT_FALSE(known.empty());
  const std::string last = known.back().name;
  ASSERT_EQ(constants.size(), known.size()) << "the enumeration that ends with " << last;
  for (std::size_t i = 0; i < known.size(); ++i) EXPECT_EQ(constants[i], known[i].value) << known[i].name;
}

enum class Gapped : std::uint8_t { one = 1, two, five = 5 };

TEST(Enumerators, AreFoundWithTheirNames) {
  EXPECT_EQ(test::enumerators<Gapped>(),
            (std::vector<test::Enumerator>{{1, "one"}, {2, "two"}, {5, "five"}}));
  EXPECT_EQ(test::enumerators<ev::StreamId>().size(), ev::kStreamCount);
  EXPECT_EQ(test::enumerators<ev::MemoryCategory>().size(), ev::kMemoryCategoryCount);
}

/// SHARDSCOPE_EVENT_MODULE_BEGIN of the header is module_begin, for every kind. Read from the header's text:
/// what the preprocessor leaves has no names.
TEST(Constants, EveryKindHasItsNameAtItsNumber) {
  std::ifstream header(EVENT_CODES_HEADER);
  ASSERT_TRUE(header);
  std::vector<std::string> names;
  const std::string prefix = "  SHARDSCOPE_EVENT_";
  for (std::string line; std::getline(header, line);) {
    if (line.rfind(prefix, 0) != 0 || line.find("EVENT_LAST_") != std::string::npos) continue;
    std::string name = line.substr(prefix.size(), line.find_first_of(" ,", prefix.size()) - prefix.size());
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    names.push_back(name);
  }
  const std::vector<test::Enumerator> kinds = test::enumerators<ev::EventKind>();
  ASSERT_EQ(names.size(), kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    EXPECT_EQ(names[i], kinds[i].name);
    EXPECT_EQ(kinds[i].value, static_cast<int>(i) + SHARDSCOPE_EVENT_STEP_BEGIN);
    EXPECT_EQ(kinds[i].name, ev::name_of(static_cast<ev::EventKind>(kinds[i].value)));
  }
  EXPECT_EQ(SHARDSCOPE_EVENT_LAST_, kinds.back().value);
}

TEST(Constants, AreTheWholeOfTheEnumerations) {
  expect_whole<ev::StreamId>(
      {SHARDSCOPE_LANE_HOST,        SHARDSCOPE_LANE_COMPUTE,     SHARDSCOPE_LANE_GATHER,
       SHARDSCOPE_LANE_REDUCE,      SHARDSCOPE_LANE_COPY,        SHARDSCOPE_LANE_NVME,
       SHARDSCOPE_LANE_WORKER,      SHARDSCOPE_LANE_GPU_COMPUTE, SHARDSCOPE_LANE_GPU_GATHER,
       SHARDSCOPE_LANE_GPU_REDUCE,  SHARDSCOPE_LANE_GPU_COPY,    SHARDSCOPE_LANE_GPU_OTHER_1,
       SHARDSCOPE_LANE_GPU_OTHER_2, SHARDSCOPE_LANE_GPU_OTHER_3, SHARDSCOPE_LANE_GPU_HOST,
       SHARDSCOPE_LANE_GPU_RECORDS, SHARDSCOPE_LANE_EXTRA_1,     SHARDSCOPE_LANE_EXTRA_2,
       SHARDSCOPE_LANE_EXTRA_3,     SHARDSCOPE_LANE_EXTRA_4});
  expect_whole<ev::Detail>({SHARDSCOPE_DETAIL_STEPS, SHARDSCOPE_DETAIL_PHASES, SHARDSCOPE_DETAIL_MODULES,
                            SHARDSCOPE_DETAIL_PARAMS, SHARDSCOPE_DETAIL_KERNELS});
  expect_whole<ev::Phase>({SHARDSCOPE_PHASE_FORWARD, SHARDSCOPE_PHASE_BACKWARD, SHARDSCOPE_PHASE_REDUCE,
                           SHARDSCOPE_PHASE_OPTIMIZER, SHARDSCOPE_PHASE_GATHER,
                           SHARDSCOPE_PHASE_CHECKPOINT_SAVE, SHARDSCOPE_PHASE_CHECKPOINT_LOAD,
                           SHARDSCOPE_PHASE_GENERATION, SHARDSCOPE_PHASE_EVALUATION,
                           SHARDSCOPE_PHASE_COMPILATION});
  expect_whole<ev::Pass>({SHARDSCOPE_PASS_FORWARD, SHARDSCOPE_PASS_BACKWARD, SHARDSCOPE_PASS_RECOMPUTE});
  expect_whole<ev::CollectiveOp>({SHARDSCOPE_ALL_GATHER, SHARDSCOPE_REDUCE_SCATTER, SHARDSCOPE_REDUCE,
                                  SHARDSCOPE_ALL_REDUCE, SHARDSCOPE_BROADCAST, SHARDSCOPE_BARRIER,
                                  SHARDSCOPE_ALL_TO_ALL, SHARDSCOPE_SEND, SHARDSCOPE_RECEIVE,
                                  SHARDSCOPE_GATHER, SHARDSCOPE_SCATTER});
  expect_whole<ev::CollectiveScope>(
      {SHARDSCOPE_SCOPE_WORLD, SHARDSCOPE_SCOPE_SECONDARY, SHARDSCOPE_SCOPE_SHARD, SHARDSCOPE_SCOPE_REPLICA,
       SHARDSCOPE_SCOPE_INTRA_NODE, SHARDSCOPE_SCOPE_INTER_NODE, SHARDSCOPE_SCOPE_GROUP});
  expect_whole<ev::ElementType>({SHARDSCOPE_F32, SHARDSCOPE_BF16, SHARDSCOPE_F16, SHARDSCOPE_I8,
                                 SHARDSCOPE_F64, SHARDSCOPE_F8_E4M3, SHARDSCOPE_F8_E5M2, SHARDSCOPE_U8,
                                 SHARDSCOPE_I16, SHARDSCOPE_I32, SHARDSCOPE_I64, SHARDSCOPE_BOOL,
                                 SHARDSCOPE_OTHER_TYPE});
  expect_whole<kernels::DType>({SHARDSCOPE_F32, SHARDSCOPE_BF16, SHARDSCOPE_F16, SHARDSCOPE_I8});
  expect_whole<ev::GroupPurpose>({SHARDSCOPE_GROUP_OTHER, SHARDSCOPE_GROUP_WORLD, SHARDSCOPE_GROUP_DATA,
                                  SHARDSCOPE_GROUP_SHARD, SHARDSCOPE_GROUP_REPLICA, SHARDSCOPE_GROUP_TENSOR,
                                  SHARDSCOPE_GROUP_PIPELINE, SHARDSCOPE_GROUP_CONTEXT,
                                  SHARDSCOPE_GROUP_EXPERT});
  expect_whole<ev::MemoryPool>(
      {SHARDSCOPE_POOL_DEVICE, SHARDSCOPE_POOL_HOST, SHARDSCOPE_POOL_PINNED, SHARDSCOPE_POOL_NVME});
  expect_whole<ev::MemoryCategory>(
      {SHARDSCOPE_MEMORY_PARAM_SHARD, SHARDSCOPE_MEMORY_PARAM_GATHERED, SHARDSCOPE_MEMORY_PARAM_SECONDARY,
       SHARDSCOPE_MEMORY_GRAD_FULL, SHARDSCOPE_MEMORY_GRAD_SHARD, SHARDSCOPE_MEMORY_MASTER_WEIGHT,
       SHARDSCOPE_MEMORY_MOMENTUM, SHARDSCOPE_MEMORY_VARIANCE, SHARDSCOPE_MEMORY_REDUCE_BUCKET,
       SHARDSCOPE_MEMORY_GATHER_BUFFER, SHARDSCOPE_MEMORY_SWAP_BUFFER, SHARDSCOPE_MEMORY_QUANTIZATION,
       SHARDSCOPE_MEMORY_ACTIVATION, SHARDSCOPE_MEMORY_INPUT, SHARDSCOPE_MEMORY_TEMPORARY,
       SHARDSCOPE_MEMORY_OTHER});
  expect_whole<ev::TransferKind>({SHARDSCOPE_HOST_TO_DEVICE, SHARDSCOPE_DEVICE_TO_HOST, SHARDSCOPE_NVME_READ,
                                  SHARDSCOPE_NVME_WRITE, SHARDSCOPE_INPUT_TO_DEVICE});
  expect_whole<ev::DeferredState>({SHARDSCOPE_DEFERRED_BEGUN, SHARDSCOPE_DEFERRED_PUBLISHED});
  expect_whole<ev::Severity>({SHARDSCOPE_INFO, SHARDSCOPE_WARNING, SHARDSCOPE_ERROR});
  expect_whole<ev::StatusCause>({SHARDSCOPE_CAUSE_FETCH, SHARDSCOPE_CAUSE_PREFETCH,
                                 SHARDSCOPE_CAUSE_PERSISTENT, SHARDSCOPE_CAUSE_EXTERNAL,
                                 SHARDSCOPE_CAUSE_RELEASE, SHARDSCOPE_CAUSE_PARTITION,
                                 SHARDSCOPE_CAUSE_INVALIDATION, SHARDSCOPE_CAUSE_CONTEXT});
  expect_whole<ev::NcclAlgorithm>({SHARDSCOPE_NCCL_ALGORITHM_UNKNOWN, SHARDSCOPE_NCCL_TREE,
                                   SHARDSCOPE_NCCL_RING, SHARDSCOPE_NCCL_COLLNET_DIRECT,
                                   SHARDSCOPE_NCCL_COLLNET_CHAIN, SHARDSCOPE_NCCL_NVLS,
                                   SHARDSCOPE_NCCL_NVLS_TREE, SHARDSCOPE_NCCL_PAT});
  expect_whole<ev::NcclProtocol>(
      {SHARDSCOPE_NCCL_PROTOCOL_UNKNOWN, SHARDSCOPE_NCCL_LL, SHARDSCOPE_NCCL_LL128, SHARDSCOPE_NCCL_SIMPLE});
  expect_whole<ev::GpuWork>({SHARDSCOPE_GPU_KERNEL, SHARDSCOPE_GPU_HOST_TO_DEVICE,
                             SHARDSCOPE_GPU_DEVICE_TO_HOST, SHARDSCOPE_GPU_DEVICE_TO_DEVICE,
                             SHARDSCOPE_GPU_PEER_TO_PEER, SHARDSCOPE_GPU_OTHER_COPY, SHARDSCOPE_GPU_MEMSET});
  expect_whole<ev::GpuOwner>({SHARDSCOPE_GPU_OWNER_NONE, SHARDSCOPE_GPU_OWNER_FORWARD,
                              SHARDSCOPE_GPU_OWNER_BACKWARD, SHARDSCOPE_GPU_OWNER_RECOMPUTE,
                              SHARDSCOPE_GPU_OWNER_COLLECTIVE, SHARDSCOPE_GPU_OWNER_TRANSFER,
                              SHARDSCOPE_GPU_OWNER_OPTIMIZER, SHARDSCOPE_GPU_OWNER_PHASE});
  expect_whole<ev::GpuSync>({SHARDSCOPE_GPU_SYNC_EVENT, SHARDSCOPE_GPU_SYNC_STREAM_WAIT_EVENT,
                             SHARDSCOPE_GPU_SYNC_STREAM, SHARDSCOPE_GPU_SYNC_CONTEXT});
  expect_whole<ev::GateKind>({SHARDSCOPE_GATE_STEP, SHARDSCOPE_GATE_MICRO_STEP, SHARDSCOPE_GATE_PRE_FORWARD,
                              SHARDSCOPE_GATE_POST_FORWARD, SHARDSCOPE_GATE_PRE_BACKWARD,
                              SHARDSCOPE_GATE_POST_BACKWARD, SHARDSCOPE_GATE_BUCKET,
                              SHARDSCOPE_GATE_OPTIMIZER});
  EXPECT_EQ(ev::kSecondaryHeld, SHARDSCOPE_SECONDARY_HELD);
  EXPECT_EQ(ev::kNoDelay, SHARDSCOPE_NO_DELAY);
  EXPECT_EQ(ev::kEndIsBound, SHARDSCOPE_END_IS_BOUND);
  EXPECT_EQ(ev::kEndedByError, SHARDSCOPE_ENDED_BY_ERROR);
  EXPECT_EQ(ev::kHoldsHost, SHARDSCOPE_HOLDS_HOST);
  EXPECT_EQ(ev::kAllCapabilities, SHARDSCOPE_RECORDS_ALL);
  EXPECT_EQ(ev::bit_of(ev::Capability::collective_ends), SHARDSCOPE_RECORDS_COLLECTIVE_ENDS);
  EXPECT_EQ(ev::bit_of(ev::Capability::memory), SHARDSCOPE_RECORDS_MEMORY);
  EXPECT_EQ(ev::bit_of(ev::Capability::nccl), SHARDSCOPE_RECORDS_NCCL);
  EXPECT_EQ(ev::bit_of(ev::Capability::not_finite_gradients), SHARDSCOPE_RECORDS_NOT_FINITE_GRADIENTS);
  EXPECT_EQ(shardscope_group_sequence(3, 9), ev::group_sequence(3, 9));
  EXPECT_EQ(ev::group_of(shardscope_group_code(SHARDSCOPE_I64, 3)), 3U);
  for (const test::Enumerator& capability : test::enumerators<ev::Capability>())
    EXPECT_EQ(capability.name, ev::name_of(static_cast<ev::Capability>(capability.value)));
}

TEST(Constants, AreTheWholeOfThePlans) {
  expect_whole<plan::ParamStatus>({SHARDSCOPE_NOT_AVAILABLE, SHARDSCOPE_IN_FLIGHT, SHARDSCOPE_AVAILABLE});
  expect_whole<plan::TraceMode>(
      {SHARDSCOPE_TRACE_INVALID, SHARDSCOPE_TRACE_RECORD, SHARDSCOPE_TRACE_COMPLETE});
  expect_whole<plan::PrefetchStop>({SHARDSCOPE_PREFETCH_DISABLED, SHARDSCOPE_PREFETCH_NO_TRACE,
                                    SHARDSCOPE_PREFETCH_END_OF_TRACE, SHARDSCOPE_PREFETCH_BUCKET_FULL,
                                    SHARDSCOPE_PREFETCH_LIVE_LIMIT, SHARDSCOPE_PREFETCH_OFFLOADED,
                                    SHARDSCOPE_PREFETCH_RETURNED});
  expect_whole<plan::PrefetchOutcome>({SHARDSCOPE_PREFETCH_EARLY, SHARDSCOPE_PREFETCH_JUST_IN_TIME,
                                       SHARDSCOPE_PREFETCH_LATE, SHARDSCOPE_PREFETCH_MISTARGETED,
                                       SHARDSCOPE_PREFETCH_UNUSED});
  expect_whole<plan::InvalidationCause>({SHARDSCOPE_INVALIDATED_MODULE_DIFFERS,
                                         SHARDSCOPE_INVALIDATED_TRACE_TOO_SHORT,
                                         SHARDSCOPE_INVALIDATED_PARAMS_DIFFER});
  expect_whole<plan::FetchCounter>({SHARDSCOPE_FORWARD_FETCH_SUBMIT, SHARDSCOPE_FORWARD_FETCH_WAIT,
                                    SHARDSCOPE_FORWARD_PREFETCH_SUBMIT, SHARDSCOPE_FORWARD_ALL_GATHER,
                                    SHARDSCOPE_BACKWARD_FETCH_SUBMIT, SHARDSCOPE_BACKWARD_FETCH_WAIT,
                                    SHARDSCOPE_BACKWARD_PREFETCH_SUBMIT, SHARDSCOPE_BACKWARD_ALL_GATHER});
  expect_whole<plan::KeepReason>({SHARDSCOPE_KEEP_PERSISTENT, SHARDSCOPE_KEEP_REUSED_SOON,
                                  SHARDSCOPE_KEEP_ALREADY_FETCHED, SHARDSCOPE_KEEP_IN_USE,
                                  SHARDSCOPE_KEEP_EXTERNAL, SHARDSCOPE_KEEP_NOT_AVAILABLE,
                                  SHARDSCOPE_KEEP_RESHARD_OFF});
  expect_whole<plan::FlushReason>({SHARDSCOPE_FLUSH_FULL, SHARDSCOPE_FLUSH_EXTRA_LARGE,
                                   SHARDSCOPE_FLUSH_EPILOGUE, SHARDSCOPE_FLUSH_BOUNDARY,
                                   SHARDSCOPE_FLUSH_GROUP_CHANGED, SHARDSCOPE_FLUSH_GROUP_COMPLETE});
  expect_whole<plan::SelectionCause>(
      {SHARDSCOPE_SELECTION_NOT_RECORDED, SHARDSCOPE_SELECTION_FIRST, SHARDSCOPE_SELECTION_INTERVAL});
  expect_whole<plan::UpdateCause>({SHARDSCOPE_UPDATE_WARM_UP, SHARDSCOPE_UPDATE_INTERVAL,
                                   SHARDSCOPE_UPDATE_VOTES, SHARDSCOPE_UPDATE_BEFORE_SELECTION});
  expect_whole<plan::LimitedOperation>({SHARDSCOPE_LIMIT_GATHERS, SHARDSCOPE_LIMIT_REDUCTIONS});
}

}  // namespace
}  // namespace shardscope
