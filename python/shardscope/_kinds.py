"""Numbers of lanes and of the values that codes take: those of instrumentation/include/shardscope/event_codes.h, which a test compares."""
NO_ID = 0xFFFFFFFF

HOST, COMPUTE, GATHER, REDUCE, COPY, NVME, WORKER = range(7)
EXTRA_1, EXTRA_2 = 16, 17
STEPS, PHASES, MODULES, PARAMS, KERNELS = range(5)
FORWARD, BACKWARD, PHASE_REDUCE, OPTIMIZER, PHASE_GATHER, CHECKPOINT_SAVE, CHECKPOINT_LOAD, GENERATION, EVALUATION = range(9)
PASS_FORWARD, PASS_BACKWARD, PASS_RECOMPUTE = range(3)

NOT_AVAILABLE, IN_FLIGHT, AVAILABLE = range(3)
FETCH, PREFETCH, PERSISTENT, EXTERNAL, RELEASE, PARTITION, INVALIDATION, CONTEXT = range(8)

ALL_GATHER, REDUCE_SCATTER, OP_REDUCE, ALL_REDUCE, BROADCAST, BARRIER, ALL_TO_ALL = range(7)
SEND, RECEIVE, OP_GATHER, OP_SCATTER = range(7, 11)
FULL, EXTRA_LARGE, EPILOGUE, BOUNDARY, GROUP_CHANGED, GROUP_COMPLETE = range(6)
KEEP_PERSISTENT, KEEP_REUSED_SOON, KEEP_ALREADY_FETCHED, KEEP_IN_USE, KEEP_EXTERNAL, KEEP_NOT_AVAILABLE, \
    KEEP_RESHARD_OFF = range(7)
STOP_DISABLED, STOP_NO_TRACE, STOP_END_OF_TRACE, STOP_BUCKET_FULL, STOP_LIVE_LIMIT, STOP_OFFLOADED = range(6)

GATE_STEP, GATE_MICRO_STEP, GATE_PRE_FORWARD, GATE_POST_FORWARD, GATE_PRE_BACKWARD, GATE_POST_BACKWARD, GATE_BUCKET, \
    GATE_OPTIMIZER = range(8)

DTYPE_NAMES = {"torch.float32": "f32", "torch.bfloat16": "bf16", "torch.float16": "f16", "torch.int8": "i8",
               "torch.float64": "f64"}
DTYPE_CODES = {"torch.float32": 0, "torch.bfloat16": 1, "torch.float16": 2, "torch.int8": 3, "torch.float64": 4,
               "torch.float8_e4m3fn": 5, "torch.float8_e5m2": 6, "torch.uint8": 7, "torch.int16": 8, "torch.int32": 9,
               "torch.int64": 10, "torch.bool": 11}
OTHER_TYPE = 12
ENDED_BY_ERROR = 0x4000  # in the code of a collective's end: it failed
END_IS_BOUND = 0x8000  # in a collective's code: it had ended by then, not known when
SCOPE_GROUP = 6
GROUP_OTHER, GROUP_WORLD, GROUP_DATA, GROUP_SHARD, GROUP_REPLICA, GROUP_TENSOR, GROUP_PIPELINE, GROUP_CONTEXT, \
    GROUP_EXPERT = range(9)
