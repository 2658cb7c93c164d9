/* Constants of the events of Shardscope's C interface: lanes, kinds and values of their codes. docs/events.md
 * describes them. Included by shardscope.h; include that. */
#ifndef SHARDSCOPE_EVENT_CODES_H
#define SHARDSCOPE_EVENT_CODES_H

#include <stdint.h>

/* Lanes of a rank; begin and end events nest within a lane. Values are only ever appended. */
enum {
  SHARDSCOPE_LANE_HOST = 0,
  SHARDSCOPE_LANE_COMPUTE = 1,
  SHARDSCOPE_LANE_GATHER = 2,
  SHARDSCOPE_LANE_REDUCE = 3,
  SHARDSCOPE_LANE_COPY = 4,
  SHARDSCOPE_LANE_NVME = 5,
  SHARDSCOPE_LANE_WORKER = 6,      /* arithmetic on host memory: the optimizer of offloaded states */
  SHARDSCOPE_LANE_GPU_COMPUTE = 7, /* CUDA streams, as recorded by the driver's profiler (CUPTI) */
  SHARDSCOPE_LANE_GPU_GATHER = 8,
  SHARDSCOPE_LANE_GPU_REDUCE = 9,
  SHARDSCOPE_LANE_GPU_COPY = 10,
  SHARDSCOPE_LANE_GPU_OTHER_1 = 11,
  SHARDSCOPE_LANE_GPU_OTHER_2 = 12,
  SHARDSCOPE_LANE_GPU_OTHER_3 = 13,
  SHARDSCOPE_LANE_GPU_HOST = 14,    /* calls in which the host waited for the GPU */
  SHARDSCOPE_LANE_GPU_RECORDS = 15, /* intervals in which the GPU's records are complete */
  SHARDSCOPE_LANE_EXTRA_1 = 16,     /* further queues of your framework, named by shardscope_name_lane() */
  SHARDSCOPE_LANE_EXTRA_2 = 17,
  SHARDSCOPE_LANE_EXTRA_3 = 18,
  SHARDSCOPE_LANE_EXTRA_4 = 19
};

/* Values are only ever appended. */
enum {
  /* clang-format off */
  /* written from event_kinds.def */
  SHARDSCOPE_EVENT_STEP_BEGIN = 1,
  SHARDSCOPE_EVENT_STEP_END = 2,
  SHARDSCOPE_EVENT_MICRO_STEP_BEGIN = 3,
  SHARDSCOPE_EVENT_MICRO_STEP_END = 4,
  SHARDSCOPE_EVENT_PHASE_BEGIN = 5,
  SHARDSCOPE_EVENT_PHASE_END = 6,
  SHARDSCOPE_EVENT_MODULE_BEGIN = 7,
  SHARDSCOPE_EVENT_MODULE_END = 8,
  SHARDSCOPE_EVENT_PARAM_STATUS = 9,
  SHARDSCOPE_EVENT_FETCH_WAIT_BEGIN = 10,
  SHARDSCOPE_EVENT_FETCH_WAIT_END = 11,
  SHARDSCOPE_EVENT_COLLECTIVE_SUBMITTED = 12,
  SHARDSCOPE_EVENT_COLLECTIVE_BEGIN = 13,
  SHARDSCOPE_EVENT_COLLECTIVE_END = 14,
  SHARDSCOPE_EVENT_COLLECTIVE_PART = 15,
  SHARDSCOPE_EVENT_COLLECTIVE_ENTERED = 16,
  SHARDSCOPE_EVENT_BUCKET_OPEN = 17,
  SHARDSCOPE_EVENT_BUCKET_ADD = 18,
  SHARDSCOPE_EVENT_BUCKET_FLUSH = 19,
  SHARDSCOPE_EVENT_TRACE_MODE = 20,
  SHARDSCOPE_EVENT_TRACE_INVALIDATED = 21,
  SHARDSCOPE_EVENT_FETCH_DECISION = 22,
  SHARDSCOPE_EVENT_PREFETCH_ISSUED = 23,
  SHARDSCOPE_EVENT_RELEASE_KEPT = 24,
  SHARDSCOPE_EVENT_MEMORY_ALLOC = 25,
  SHARDSCOPE_EVENT_MEMORY_FREE = 26,
  SHARDSCOPE_EVENT_TRANSFER_BEGIN = 27,
  SHARDSCOPE_EVENT_TRANSFER_END = 28,
  SHARDSCOPE_EVENT_OPTIMIZER_BEGIN = 29,
  SHARDSCOPE_EVENT_OPTIMIZER_END = 30,
  SHARDSCOPE_EVENT_REDUCE_WAIT_BEGIN = 31,
  SHARDSCOPE_EVENT_REDUCE_WAIT_END = 32,
  SHARDSCOPE_EVENT_OVERFLOW = 33,
  SHARDSCOPE_EVENT_LOSS = 34,
  SHARDSCOPE_EVENT_GRAD_NORM = 35,
  SHARDSCOPE_EVENT_LOSS_SCALE = 36,
  SHARDSCOPE_EVENT_LEARNING_RATE = 37,
  SHARDSCOPE_EVENT_TOKENS = 38,
  SHARDSCOPE_EVENT_KERNEL_BEGIN = 39,
  SHARDSCOPE_EVENT_KERNEL_END = 40,
  SHARDSCOPE_EVENT_GATE = 41,
  SHARDSCOPE_EVENT_PAUSED_BEGIN = 42,
  SHARDSCOPE_EVENT_PAUSED_END = 43,
  SHARDSCOPE_EVENT_MESSAGE = 44,
  SHARDSCOPE_EVENT_COLUMNS_SELECTED = 45,
  SHARDSCOPE_EVENT_DEFERRED_UPDATE = 46,
  SHARDSCOPE_EVENT_DEFERRED_WAIT_BEGIN = 47,
  SHARDSCOPE_EVENT_DEFERRED_WAIT_END = 48,
  SHARDSCOPE_EVENT_NCCL_COLLECTIVE = 49,
  SHARDSCOPE_EVENT_NCCL_KERNEL = 50,
  SHARDSCOPE_EVENT_NCCL_PROXY = 51,
  SHARDSCOPE_EVENT_OUTSIDE_MEMORY = 52,
  SHARDSCOPE_EVENT_PREFETCH_OUTCOME = 53,
  SHARDSCOPE_EVENT_IN_FLIGHT_LIMIT = 54,
  SHARDSCOPE_EVENT_GPU_BEGIN = 55,
  SHARDSCOPE_EVENT_GPU_END = 56,
  SHARDSCOPE_EVENT_GPU_SYNC_BEGIN = 57,
  SHARDSCOPE_EVENT_GPU_SYNC_END = 58,
  SHARDSCOPE_EVENT_GPU_RECORDS_BEGIN = 59,
  SHARDSCOPE_EVENT_GPU_RECORDS_END = 60,
  SHARDSCOPE_EVENT_GPU_MEMORY = 61,
  SHARDSCOPE_EVENT_GPU_CLOCK = 62,
  SHARDSCOPE_EVENT_FETCH_COUNTER = 63,
  SHARDSCOPE_EVENT_DATA_WAIT_BEGIN = 64,
  SHARDSCOPE_EVENT_DATA_WAIT_END = 65,
  SHARDSCOPE_EVENT_CLIP_FACTOR = 66,
  SHARDSCOPE_EVENT_UPDATE_VOTES = 67,
  SHARDSCOPE_EVENT_FEEDBACK_RESET = 68,
  SHARDSCOPE_EVENT_DETAIL_CHANGED = 69,
  SHARDSCOPE_EVENT_SPAN_BEGIN = 70,
  SHARDSCOPE_EVENT_SPAN_END = 71,
  SHARDSCOPE_EVENT_ALLOCATOR_STATE = 72,
  SHARDSCOPE_EVENT_EVAL_LOSS = 73,
  SHARDSCOPE_EVENT_EVAL_TRACE_MODE = 74,
  SHARDSCOPE_EVENT_MICRO_BATCH = 75,
  SHARDSCOPE_EVENT_GRADIENT_NOT_FINITE = 76,
  SHARDSCOPE_EVENT_HOST_LATE = 77,
  SHARDSCOPE_EVENT_PROCESSOR_WAIT = 78,
  SHARDSCOPE_EVENT_COUNTER = 79,
  SHARDSCOPE_EVENT_GPU_SAMPLE = 80,
  SHARDSCOPE_EVENT_LAST_ = SHARDSCOPE_EVENT_GPU_SAMPLE
  /* end of what is written */
  /* clang-format on */
};

enum {
  SHARDSCOPE_PHASE_FORWARD = 0,
  SHARDSCOPE_PHASE_BACKWARD = 1,
  SHARDSCOPE_PHASE_REDUCE = 2, /* on the reduce lane */
  SHARDSCOPE_PHASE_OPTIMIZER = 3,
  SHARDSCOPE_PHASE_GATHER = 4, /* on the gather lane */
  /* Between two steps; `step` is the number of completed steps. Not counted as computation. */
  SHARDSCOPE_PHASE_CHECKPOINT_SAVE = 5,
  SHARDSCOPE_PHASE_CHECKPOINT_LOAD = 6,
  SHARDSCOPE_PHASE_GENERATION = 7, /* of training text (RL) */
  SHARDSCOPE_PHASE_EVALUATION = 8,
  SHARDSCOPE_PHASE_COMPILATION = 9
};
/* State of a deferred update: its sum is complete and the worker may begin; the device has the parameters. */
enum { SHARDSCOPE_DEFERRED_BEGUN = 0, SHARDSCOPE_DEFERRED_PUBLISHED = 1 };
/* Why a deferred update began: no columns are selected yet, the interval ended, the matrices voted for it,
 * columns are selected anew in the next step. */
enum {
  SHARDSCOPE_UPDATE_WARM_UP = 0,
  SHARDSCOPE_UPDATE_INTERVAL = 1,
  SHARDSCOPE_UPDATE_VOTES = 2,
  SHARDSCOPE_UPDATE_BEFORE_SELECTION = 3
};
/* Why columns were selected: not recorded, first selection, the interval ended. */
enum {
  SHARDSCOPE_SELECTION_NOT_RECORDED = 0,
  SHARDSCOPE_SELECTION_FIRST = 1,
  SHARDSCOPE_SELECTION_INTERVAL = 2
};
enum { SHARDSCOPE_PASS_FORWARD = 0, SHARDSCOPE_PASS_BACKWARD = 1, SHARDSCOPE_PASS_RECOMPUTE = 2 };

/* A parameter's status. */
enum { SHARDSCOPE_NOT_AVAILABLE = 0, SHARDSCOPE_IN_FLIGHT = 1, SHARDSCOPE_AVAILABLE = 2 };
/* Added to a status: this rank also holds its shard of a secondary copy (hpZ). */
enum { SHARDSCOPE_SECONDARY_HELD = 8 };
enum {
  SHARDSCOPE_CAUSE_FETCH = 0,
  SHARDSCOPE_CAUSE_PREFETCH = 1,
  SHARDSCOPE_CAUSE_PERSISTENT = 2,
  SHARDSCOPE_CAUSE_EXTERNAL = 3,
  SHARDSCOPE_CAUSE_RELEASE = 4,
  SHARDSCOPE_CAUSE_PARTITION = 5,
  SHARDSCOPE_CAUSE_INVALIDATION = 6,
  SHARDSCOPE_CAUSE_CONTEXT = 7 /* gathered between two steps, for the program to read or modify */
};

enum {
  SHARDSCOPE_ALL_GATHER = 0,
  SHARDSCOPE_REDUCE_SCATTER = 1,
  SHARDSCOPE_REDUCE = 2,
  SHARDSCOPE_ALL_REDUCE = 3,
  SHARDSCOPE_BROADCAST = 4,
  SHARDSCOPE_BARRIER = 5,
  SHARDSCOPE_ALL_TO_ALL = 6,
  SHARDSCOPE_SEND = 7,
  SHARDSCOPE_RECEIVE = 8,
  SHARDSCOPE_GATHER = 9,
  SHARDSCOPE_SCATTER = 10
};
/* Type of a collective's elements. */
enum {
  SHARDSCOPE_F32 = 0,
  SHARDSCOPE_BF16 = 1,
  SHARDSCOPE_F16 = 2,
  SHARDSCOPE_I8 = 3,
  SHARDSCOPE_F64 = 4,
  SHARDSCOPE_F8_E4M3 = 5,
  SHARDSCOPE_F8_E5M2 = 6,
  SHARDSCOPE_U8 = 7,
  SHARDSCOPE_I16 = 8,
  SHARDSCOPE_I32 = 9,
  SHARDSCOPE_I64 = 10,
  SHARDSCOPE_BOOL = 11,
  SHARDSCOPE_OTHER_TYPE = 12 /* none of these */
};
/* The set of ranks that take part in a collective. */
enum {
  SHARDSCOPE_SCOPE_WORLD = 0,
  SHARDSCOPE_SCOPE_SECONDARY = 1,  /* hpZ: the ranks that share one secondary copy of the parameters */
  SHARDSCOPE_SCOPE_SHARD = 2,      /* MiCS: the ranks that share one copy of the model */
  SHARDSCOPE_SCOPE_REPLICA = 3,    /* MiCS: the ranks that hold the same shard */
  SHARDSCOPE_SCOPE_INTRA_NODE = 4, /* first hop inside a node */
  SHARDSCOPE_SCOPE_INTER_NODE = 5, /* one rank of each node */
  SHARDSCOPE_SCOPE_GROUP = 6       /* a described group: shardscope_group_code() */
};
/* `code` of shardscope_collective_begin_among and _end_among: element type, scope, and the number of ranks
 * (at most 65535; 0: the whole world). */
static inline uint32_t shardscope_collective_code(uint8_t dtype, uint8_t scope, uint32_t ranks) {
  return (uint32_t)dtype | (uint32_t)scope << 8 | (ranks & 0xFFFFU) << 16;
}
/* ORed into `code`: the end is an upper bound; the operation ended at an unknown time before it (an event
 * after the framework's own wait). Such an end is not used to synchronize clocks, and a bandwidth computed
 * from it is a lower bound. */
#define SHARDSCOPE_END_IS_BOUND 0x8000U
/* ORed into `code`: a synchronous call on host memory, which returns when the operation has ended. The time
 * counts as communication, not as computation of the module whose span is around it. */
#define SHARDSCOPE_HOLDS_HOST 0x2000U
/* ORed into `code` of the end only: the operation failed, for example because another rank died. Analysis of
 * who waits for whom treats it as still open; such an end is not used to synchronize clocks. */
#define SHARDSCOPE_ENDED_BY_ERROR 0x4000U
/* `code` of a collective in a group described with shardscope_add_group(). */
static inline uint32_t shardscope_group_code(uint8_t dtype, uint32_t group) {
  return (uint32_t)dtype | (uint32_t)SHARDSCOPE_SCOPE_GROUP << 8 | (group & 0xFFFFU) << 16;
}
/* `sequence` of a collective in a group: `number` counts the group's collectives, equally on all its ranks;
 * no two collectives of a rank have the same sequence. */
static inline uint32_t shardscope_group_sequence(uint32_t group, uint32_t number) {
  return ((group + 1U) & 0xFFU) << 24 | (number & 0xFFFFFFU);
}

/* How NCCL transferred the bytes of a collective. */
enum {
  SHARDSCOPE_NCCL_ALGORITHM_UNKNOWN = 0,
  SHARDSCOPE_NCCL_TREE = 1,
  SHARDSCOPE_NCCL_RING = 2,
  SHARDSCOPE_NCCL_COLLNET_DIRECT = 3,
  SHARDSCOPE_NCCL_COLLNET_CHAIN = 4,
  SHARDSCOPE_NCCL_NVLS = 5,
  SHARDSCOPE_NCCL_NVLS_TREE = 6,
  SHARDSCOPE_NCCL_PAT = 7
};
enum {
  SHARDSCOPE_NCCL_PROTOCOL_UNKNOWN = 0,
  SHARDSCOPE_NCCL_LL = 1,
  SHARDSCOPE_NCCL_LL128 = 2,
  SHARDSCOPE_NCCL_SIMPLE = 3
};

enum {
  SHARDSCOPE_POOL_DEVICE = 0,
  SHARDSCOPE_POOL_HOST = 1,
  SHARDSCOPE_POOL_PINNED = 2,
  SHARDSCOPE_POOL_NVME = 3
};
enum {
  SHARDSCOPE_MEMORY_PARAM_SHARD = 0,
  SHARDSCOPE_MEMORY_PARAM_GATHERED = 1,
  SHARDSCOPE_MEMORY_PARAM_SECONDARY = 2,
  SHARDSCOPE_MEMORY_GRAD_FULL = 3,
  SHARDSCOPE_MEMORY_GRAD_SHARD = 4,
  SHARDSCOPE_MEMORY_MASTER_WEIGHT = 5,
  SHARDSCOPE_MEMORY_MOMENTUM = 6,
  SHARDSCOPE_MEMORY_VARIANCE = 7,
  SHARDSCOPE_MEMORY_REDUCE_BUCKET = 8,
  SHARDSCOPE_MEMORY_GATHER_BUFFER = 9,
  SHARDSCOPE_MEMORY_SWAP_BUFFER = 10,
  SHARDSCOPE_MEMORY_QUANTIZATION = 11,
  SHARDSCOPE_MEMORY_ACTIVATION = 12,
  SHARDSCOPE_MEMORY_INPUT = 13,
  SHARDSCOPE_MEMORY_TEMPORARY = 14,
  SHARDSCOPE_MEMORY_OTHER = 15
};

/* Why a bucket was flushed: full, a gradient larger than a bucket, the end of backward, a boundary, the next
 * gradient belongs to another parameter group, all gradients of the group are complete. */
enum {
  SHARDSCOPE_FLUSH_FULL = 0,
  SHARDSCOPE_FLUSH_EXTRA_LARGE = 1,
  SHARDSCOPE_FLUSH_EPILOGUE = 2,
  SHARDSCOPE_FLUSH_BOUNDARY = 3,
  SHARDSCOPE_FLUSH_GROUP_CHANGED = 4,
  SHARDSCOPE_FLUSH_GROUP_COMPLETE = 5
};
enum { SHARDSCOPE_TRACE_INVALID = 0, SHARDSCOPE_TRACE_RECORD = 1, SHARDSCOPE_TRACE_COMPLETE = 2 };

/* Why a recorded trace became invalid. */
enum {
  SHARDSCOPE_INVALIDATED_MODULE_DIFFERS = 0,
  SHARDSCOPE_INVALIDATED_TRACE_TOO_SHORT = 1,
  SHARDSCOPE_INVALIDATED_PARAMS_DIFFER = 2
};

/* Counters of a micro-step's fetches. FETCH_* count elements of one rank's shards, including padding;
 * PREFETCH_SUBMIT and ALL_GATHER count elements of whole parameters. */
enum {
  SHARDSCOPE_FORWARD_FETCH_SUBMIT = 0,
  SHARDSCOPE_FORWARD_FETCH_WAIT = 1,
  SHARDSCOPE_FORWARD_PREFETCH_SUBMIT = 2,
  SHARDSCOPE_FORWARD_ALL_GATHER = 3,
  SHARDSCOPE_BACKWARD_FETCH_SUBMIT = 4,
  SHARDSCOPE_BACKWARD_FETCH_WAIT = 5,
  SHARDSCOPE_BACKWARD_PREFETCH_SUBMIT = 6,
  SHARDSCOPE_BACKWARD_ALL_GATHER = 7
};
/* Why prefetching stopped. */
enum {
  SHARDSCOPE_PREFETCH_DISABLED = 0,
  SHARDSCOPE_PREFETCH_NO_TRACE = 1,
  SHARDSCOPE_PREFETCH_END_OF_TRACE = 2,
  SHARDSCOPE_PREFETCH_BUCKET_FULL = 3,
  SHARDSCOPE_PREFETCH_LIVE_LIMIT = 4,
  SHARDSCOPE_PREFETCH_OFFLOADED = 5,
  SHARDSCOPE_PREFETCH_RETURNED = 6 /* no fetch: a module returned a parameter, whose id is in prefetched */
};
/* Outcome of a prefetch: complete long before the use, just before it, after it (the use waited), discarded
 * with an invalid trace, released without a use. */
enum {
  SHARDSCOPE_PREFETCH_EARLY = 0,
  SHARDSCOPE_PREFETCH_JUST_IN_TIME = 1,
  SHARDSCOPE_PREFETCH_LATE = 2,
  SHARDSCOPE_PREFETCH_MISTARGETED = 3,
  SHARDSCOPE_PREFETCH_UNUSED = 4
};
/* Operations whose number in flight is limited. */
enum { SHARDSCOPE_LIMIT_GATHERS = 0, SHARDSCOPE_LIMIT_REDUCTIONS = 1 };
/* Why a parameter of the released module stays gathered. */
enum {
  SHARDSCOPE_KEEP_PERSISTENT = 0,
  SHARDSCOPE_KEEP_REUSED_SOON = 1,
  SHARDSCOPE_KEEP_ALREADY_FETCHED = 2,
  SHARDSCOPE_KEEP_IN_USE = 3,
  SHARDSCOPE_KEEP_EXTERNAL = 4,
  SHARDSCOPE_KEEP_NOT_AVAILABLE = 5,
  SHARDSCOPE_KEEP_RESHARD_OFF = 6 /* the framework is configured to keep it (FSDP2: reshard_after_forward) */
};
enum {
  SHARDSCOPE_HOST_TO_DEVICE = 0,
  SHARDSCOPE_DEVICE_TO_HOST = 1,
  SHARDSCOPE_NVME_READ = 2,
  SHARDSCOPE_NVME_WRITE = 3,
  SHARDSCOPE_INPUT_TO_DEVICE = 4 /* a micro-batch; the other kinds are offloaded states and parameters */
};

/* Kind of GPU work. */
enum {
  SHARDSCOPE_GPU_KERNEL = 0,
  SHARDSCOPE_GPU_HOST_TO_DEVICE = 1,
  SHARDSCOPE_GPU_DEVICE_TO_HOST = 2,
  SHARDSCOPE_GPU_DEVICE_TO_DEVICE = 3,
  SHARDSCOPE_GPU_PEER_TO_PEER = 4,
  SHARDSCOPE_GPU_OTHER_COPY = 5, /* between host and host, arrays */
  SHARDSCOPE_GPU_MEMSET = 6
};
/* What launched the work; the meaning of its `owner` id. */
enum {
  SHARDSCOPE_GPU_OWNER_NONE = 0,
  SHARDSCOPE_GPU_OWNER_FORWARD = 1, /* module, and its pass */
  SHARDSCOPE_GPU_OWNER_BACKWARD = 2,
  SHARDSCOPE_GPU_OWNER_RECOMPUTE = 3,
  SHARDSCOPE_GPU_OWNER_COLLECTIVE = 4, /* sequence of the collective */
  SHARDSCOPE_GPU_OWNER_TRANSFER = 5,   /* parameter */
  SHARDSCOPE_GPU_OWNER_OPTIMIZER = 6,  /* sub-group */
  SHARDSCOPE_GPU_OWNER_PHASE = 7       /* a SHARDSCOPE_PHASE_... */
};
/* The call in which the host waited. */
enum {
  SHARDSCOPE_GPU_SYNC_EVENT = 0,
  SHARDSCOPE_GPU_SYNC_STREAM_WAIT_EVENT = 1,
  SHARDSCOPE_GPU_SYNC_STREAM = 2,
  SHARDSCOPE_GPU_SYNC_CONTEXT = 3
};
/* What the ranks of a group share. */
enum {
  SHARDSCOPE_GROUP_OTHER = 0,
  SHARDSCOPE_GROUP_WORLD = 1,
  SHARDSCOPE_GROUP_DATA = 2,
  SHARDSCOPE_GROUP_SHARD = 3,   /* share one copy of the parameters */
  SHARDSCOPE_GROUP_REPLICA = 4, /* hold the same shard */
  SHARDSCOPE_GROUP_TENSOR = 5,
  SHARDSCOPE_GROUP_PIPELINE = 6,
  SHARDSCOPE_GROUP_CONTEXT = 7, /* a sequence: each rank has a part */
  SHARDSCOPE_GROUP_EXPERT = 8
};

/* What a program can record of a run: bits of `records` in shardscope_run_info. Where a bit is missing views
 * say "not recorded" and the reason instead of showing nothing. Bits are only ever appended. */
#define SHARDSCOPE_RECORDS_STEPS (UINT64_C(1) << 0)
#define SHARDSCOPE_RECORDS_MICRO_STEPS (UINT64_C(1) << 1)
#define SHARDSCOPE_RECORDS_PHASES (UINT64_C(1) << 2)
#define SHARDSCOPE_RECORDS_MODULES (UINT64_C(1) << 3)
#define SHARDSCOPE_RECORDS_PARAM_STATUS (UINT64_C(1) << 4)
#define SHARDSCOPE_RECORDS_LAYOUT (UINT64_C(1) << 5) /* slices: the rank that owns each element */
#define SHARDSCOPE_RECORDS_FETCH_WAITS (UINT64_C(1) << 6)
#define SHARDSCOPE_RECORDS_PREFETCHES (UINT64_C(1) << 7)
#define SHARDSCOPE_RECORDS_PREFETCH_REASONS (UINT64_C(1) << 8)
#define SHARDSCOPE_RECORDS_RELEASE_REASONS (UINT64_C(1) << 9)
#define SHARDSCOPE_RECORDS_TRACE (UINT64_C(1) << 10)
#define SHARDSCOPE_RECORDS_FETCH_COUNTERS (UINT64_C(1) << 11)
#define SHARDSCOPE_RECORDS_COLLECTIVES (UINT64_C(1) << 12)
#define SHARDSCOPE_RECORDS_COLLECTIVE_ENDS (UINT64_C(1) << 13) /* measured ends, not upper bounds */
#define SHARDSCOPE_RECORDS_COLLECTIVE_PARTS (UINT64_C(1) << 14)
#define SHARDSCOPE_RECORDS_GROUPS (UINT64_C(1) << 15)
#define SHARDSCOPE_RECORDS_BUCKETS (UINT64_C(1) << 16)
#define SHARDSCOPE_RECORDS_FLUSH_REASONS (UINT64_C(1) << 17)
#define SHARDSCOPE_RECORDS_REDUCE_WAITS (UINT64_C(1) << 18)
#define SHARDSCOPE_RECORDS_MEMORY (UINT64_C(1) << 19) /* by category */
#define SHARDSCOPE_RECORDS_ALLOCATOR (UINT64_C(1) << 20)
#define SHARDSCOPE_RECORDS_TRANSFERS (UINT64_C(1) << 21)
#define SHARDSCOPE_RECORDS_OPTIMIZER (UINT64_C(1) << 22)
#define SHARDSCOPE_RECORDS_LOSS (UINT64_C(1) << 23)
#define SHARDSCOPE_RECORDS_GRAD_NORM (UINT64_C(1) << 24)
#define SHARDSCOPE_RECORDS_LEARNING_RATE (UINT64_C(1) << 25)
#define SHARDSCOPE_RECORDS_LOSS_SCALE (UINT64_C(1) << 26)
#define SHARDSCOPE_RECORDS_TOKENS (UINT64_C(1) << 27)
#define SHARDSCOPE_RECORDS_DATA_WAITS (UINT64_C(1) << 28)
#define SHARDSCOPE_RECORDS_GATES (UINT64_C(1) << 29)
#define SHARDSCOPE_RECORDS_KERNELS (UINT64_C(1) << 30)
#define SHARDSCOPE_RECORDS_NCCL (UINT64_C(1) << 31)
#define SHARDSCOPE_RECORDS_NOT_FINITE_GRADIENTS (UINT64_C(1) << 32) /* the parameters they belong to */
#define SHARDSCOPE_RECORDS_ALL ((UINT64_C(1) << 33) - 1)

/* delay_ns of shardscope_gpu_begin and _end if the launch was not recorded. */
#define SHARDSCOPE_NO_DELAY INT64_MIN

#endif
