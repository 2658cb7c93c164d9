/* Constants of the events of Shardscope's C interface: lanes, kinds and the values that their codes take.
 * What they mean is in docs/events.md. Included by shardscope.h; include that. */
#ifndef SHARDSCOPE_EVENT_CODES_H
#define SHARDSCOPE_EVENT_CODES_H

#include <stdint.h>

/* Lanes of a rank: begin and end events nest within one. Only ever appended. */
enum {
  SHARDSCOPE_LANE_HOST = 0,
  SHARDSCOPE_LANE_COMPUTE = 1,
  SHARDSCOPE_LANE_GATHER = 2,
  SHARDSCOPE_LANE_REDUCE = 3,
  SHARDSCOPE_LANE_COPY = 4,
  SHARDSCOPE_LANE_NVME = 5,
  SHARDSCOPE_LANE_WORKER = 6,      /* arithmetic on host memory: the optimizer of offloaded states */
  SHARDSCOPE_LANE_GPU_COMPUTE = 7, /* CUDA streams, as a profiler of the driver saw them */
  SHARDSCOPE_LANE_GPU_GATHER = 8,
  SHARDSCOPE_LANE_GPU_REDUCE = 9,
  SHARDSCOPE_LANE_GPU_COPY = 10,
  SHARDSCOPE_LANE_GPU_OTHER_1 = 11,
  SHARDSCOPE_LANE_GPU_OTHER_2 = 12,
  SHARDSCOPE_LANE_GPU_OTHER_3 = 13,
  SHARDSCOPE_LANE_GPU_HOST = 14,   /* calls in which the host waited for the GPU */
  SHARDSCOPE_LANE_GPU_RECORDS = 15 /* stretches of which every record of the GPU is known */
};

/* Only ever appended. */
enum {
  /* clang-format off */
  /* written from event_kinds.def */
  /* end of what is written */
  /* clang-format on */
};

enum {
  SHARDSCOPE_PHASE_FORWARD = 0,
  SHARDSCOPE_PHASE_BACKWARD = 1,
  SHARDSCOPE_PHASE_REDUCE = 2, /* on the reduce lane */
  SHARDSCOPE_PHASE_OPTIMIZER = 3,
  SHARDSCOPE_PHASE_GATHER = 4, /* on the gather lane */
  /* Between two steps; the step is the number of steps made. Kept apart from computation. */
  SHARDSCOPE_PHASE_CHECKPOINT_SAVE = 5,
  SHARDSCOPE_PHASE_CHECKPOINT_LOAD = 6
};
/* Of a deferred update: its sum is complete and the worker may begin; the device has its parameters. */
enum { SHARDSCOPE_DEFERRED_BEGUN = 0, SHARDSCOPE_DEFERRED_PUBLISHED = 1 };
/* Why it began: nothing is chosen yet, its interval is over, the matrices voted for it, columns are chosen
   anew in the next step. */
enum {
  SHARDSCOPE_UPDATE_WARM_UP = 0,
  SHARDSCOPE_UPDATE_INTERVAL = 1,
  SHARDSCOPE_UPDATE_VOTES = 2,
  SHARDSCOPE_UPDATE_BEFORE_SELECTION = 3
};
/* Why columns were chosen: it is not told, for the first time, its interval is over. */
enum { SHARDSCOPE_SELECTION_NOT_TOLD = 0, SHARDSCOPE_SELECTION_FIRST = 1, SHARDSCOPE_SELECTION_INTERVAL = 2 };
enum { SHARDSCOPE_PASS_FORWARD = 0, SHARDSCOPE_PASS_BACKWARD = 1, SHARDSCOPE_PASS_RECOMPUTE = 2 };

/* A parameter's status, and why it changed. */
enum { SHARDSCOPE_NOT_AVAILABLE = 0, SHARDSCOPE_IN_FLIGHT = 1, SHARDSCOPE_AVAILABLE = 2 };
/* Added to a status: this rank also holds its part of a secondary copy (hpZ). */
enum { SHARDSCOPE_SECONDARY_HELD = 8 };
enum {
  SHARDSCOPE_CAUSE_FETCH = 0,
  SHARDSCOPE_CAUSE_PREFETCH = 1,
  SHARDSCOPE_CAUSE_PERSISTENT = 2,
  SHARDSCOPE_CAUSE_EXTERNAL = 3,
  SHARDSCOPE_CAUSE_RELEASE = 4,
  SHARDSCOPE_CAUSE_PARTITION = 5,
  SHARDSCOPE_CAUSE_INVALIDATION = 6,
  SHARDSCOPE_CAUSE_CONTEXT = 7 /* gathered between two steps for the program to read or change */
};

enum {
  SHARDSCOPE_ALL_GATHER = 0,
  SHARDSCOPE_REDUCE_SCATTER = 1,
  SHARDSCOPE_REDUCE = 2,
  SHARDSCOPE_ALL_REDUCE = 3,
  SHARDSCOPE_BROADCAST = 4,
  SHARDSCOPE_BARRIER = 5,
  SHARDSCOPE_ALL_TO_ALL = 6
};
/* Type of a collective's elements. */
enum { SHARDSCOPE_F32 = 0, SHARDSCOPE_BF16 = 1, SHARDSCOPE_F16 = 2, SHARDSCOPE_I8 = 3 };
/* Which ranks a collective is among. */
enum {
  SHARDSCOPE_SCOPE_WORLD = 0,
  SHARDSCOPE_SCOPE_SECONDARY = 1,  /* hpZ: the ranks that share one secondary copy of the parameters */
  SHARDSCOPE_SCOPE_SHARD = 2,      /* MiCS: the ranks that share one copy of the model */
  SHARDSCOPE_SCOPE_REPLICA = 3,    /* MiCS: the ranks that hold the same shard */
  SHARDSCOPE_SCOPE_INTRA_NODE = 4, /* first hop inside a node */
  SHARDSCOPE_SCOPE_INTER_NODE = 5  /* one rank of each node */
};
/* `code` of shardscope_collective_begin_among and _end_among: the type, the scope, and how many ranks that is
 * (at most 65535; 0: the whole world). */
static inline uint32_t shardscope_collective_code(uint8_t dtype, uint8_t scope, uint32_t ranks) {
  return (uint32_t)dtype | (uint32_t)scope << 8 | (ranks & 0xFFFFU) << 16;
}

/* How NCCL moved the bytes of a collective. */
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

/* Why a bucket was flushed: full, a gradient larger than a bucket, the end of backward, a boundary. */
enum {
  SHARDSCOPE_FLUSH_FULL = 0,
  SHARDSCOPE_FLUSH_EXTRA_LARGE = 1,
  SHARDSCOPE_FLUSH_EPILOGUE = 2,
  SHARDSCOPE_FLUSH_BOUNDARY = 3
};
enum { SHARDSCOPE_TRACE_INVALID = 0, SHARDSCOPE_TRACE_RECORD = 1, SHARDSCOPE_TRACE_COMPLETE = 2 };

/* Why a recorded trace no longer holds. */
enum {
  SHARDSCOPE_INVALIDATED_MODULE_DIFFERS = 0,
  SHARDSCOPE_INVALIDATED_TRACE_TOO_SHORT = 1,
  SHARDSCOPE_INVALIDATED_PARAMS_DIFFER = 2
};

/* What the fetches of a micro-step did. Elements of FETCH_* are those of one rank's shards with their
   padding, of PREFETCH_SUBMIT and ALL_GATHER those of whole parameters. */
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
/* Why prefetching stopped where it did. */
enum {
  SHARDSCOPE_PREFETCH_DISABLED = 0,
  SHARDSCOPE_PREFETCH_NO_TRACE = 1,
  SHARDSCOPE_PREFETCH_END_OF_TRACE = 2,
  SHARDSCOPE_PREFETCH_BUCKET_FULL = 3,
  SHARDSCOPE_PREFETCH_LIVE_LIMIT = 4,
  SHARDSCOPE_PREFETCH_OFFLOADED = 5,
  SHARDSCOPE_PREFETCH_RETURNED = 6 /* no fetch: a module returned a parameter, whose id is in prefetched */
};
/* What became of a prefetch: there long before it was used, just before, after it was needed (somebody
   waited), given up with an invalid trace, released without a use. */
enum {
  SHARDSCOPE_PREFETCH_EARLY = 0,
  SHARDSCOPE_PREFETCH_JUST_IN_TIME = 1,
  SHARDSCOPE_PREFETCH_LATE = 2,
  SHARDSCOPE_PREFETCH_MISTARGETED = 3,
  SHARDSCOPE_PREFETCH_UNUSED = 4
};
/* What there may be no more of in flight. */
enum { SHARDSCOPE_LIMIT_GATHERS = 0, SHARDSCOPE_LIMIT_REDUCTIONS = 1 };
/* Why a parameter of the released module stays. */
enum {
  SHARDSCOPE_KEEP_PERSISTENT = 0,
  SHARDSCOPE_KEEP_REUSED_SOON = 1,
  SHARDSCOPE_KEEP_ALREADY_FETCHED = 2,
  SHARDSCOPE_KEEP_IN_USE = 3,
  SHARDSCOPE_KEEP_EXTERNAL = 4,
  SHARDSCOPE_KEEP_NOT_AVAILABLE = 5
};
enum {
  SHARDSCOPE_HOST_TO_DEVICE = 0,
  SHARDSCOPE_DEVICE_TO_HOST = 1,
  SHARDSCOPE_NVME_READ = 2,
  SHARDSCOPE_NVME_WRITE = 3,
  SHARDSCOPE_INPUT_TO_DEVICE = 4 /* a micro-batch; the others are of offloaded states and parameters */
};

/* What a GPU did. */
enum {
  SHARDSCOPE_GPU_KERNEL = 0,
  SHARDSCOPE_GPU_HOST_TO_DEVICE = 1,
  SHARDSCOPE_GPU_DEVICE_TO_HOST = 2,
  SHARDSCOPE_GPU_DEVICE_TO_DEVICE = 3,
  SHARDSCOPE_GPU_PEER_TO_PEER = 4,
  SHARDSCOPE_GPU_OTHER_COPY = 5, /* between host and host, arrays */
  SHARDSCOPE_GPU_MEMSET = 6
};
/* For whom: what `owner` is the id of. */
enum {
  SHARDSCOPE_GPU_OWNER_NONE = 0,
  SHARDSCOPE_GPU_OWNER_FORWARD = 1, /* a module, and its pass */
  SHARDSCOPE_GPU_OWNER_BACKWARD = 2,
  SHARDSCOPE_GPU_OWNER_RECOMPUTE = 3,
  SHARDSCOPE_GPU_OWNER_COLLECTIVE = 4, /* its sequence number */
  SHARDSCOPE_GPU_OWNER_TRANSFER = 5,   /* a parameter */
  SHARDSCOPE_GPU_OWNER_OPTIMIZER = 6,  /* a sub-group */
  SHARDSCOPE_GPU_OWNER_PHASE = 7       /* a SHARDSCOPE_PHASE_... */
};
/* In which call the host waited. */
enum {
  SHARDSCOPE_GPU_SYNC_EVENT = 0,
  SHARDSCOPE_GPU_SYNC_STREAM_WAIT_EVENT = 1,
  SHARDSCOPE_GPU_SYNC_STREAM = 2,
  SHARDSCOPE_GPU_SYNC_CONTEXT = 3
};
/* delay_ns of shardscope_gpu_begin and _end where the launch was not recorded. */
#define SHARDSCOPE_NO_DELAY INT64_MIN

#endif
