/* Shardscope's C interface: how any training runtime describes itself to a collector, emits events, passes
 * gates and ends. Plain C99; link with -lshardscope. docs/c-api.md documents it, and
 * samples/c-api/zero3_run.c is a complete program.
 *
 * Rules that hold for every function:
 *  - Thread-safe. The functions called per event (shardscope_emit, shardscope_emit_at, shardscope_enabled)
 *    take no lock, allocate nothing and make no system call.
 *  - Errors are returned as shardscope_status; shardscope_last_error() returns the message, per thread. No
 *    C++ exception leaves the library.
 *  - Texts are UTF-8, null-terminated, and copied before the call returns. NULL is an empty text.
 *  - Every structure begins with its size, which the SHARDSCOPE_..._INIT macros fill in: fields are only
 *    ever added at the end, so a program built with an older header runs with a newer library.
 *  - One run at a time in a process, because there is one set of rings and one row of gates. A run may have
 *    several models.
 *  - After fork() the child is inert: it emits nothing, its gates do not hold, functions return
 *    SHARDSCOPE_INVALID_STATE, and destroying the parent's run frees nothing. */
#ifndef SHARDSCOPE_SHARDSCOPE_H
#define SHARDSCOPE_SHARDSCOPE_H

#include <stddef.h>
#include <stdint.h>

#include "shardscope/event_codes.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(SHARDSCOPE_BUILDING_LIBRARY)
#define SHARDSCOPE_API __attribute__((visibility("default")))
#else
#define SHARDSCOPE_API
#endif

/* Version of the interface in this header; shardscope_abi_version() returns the library's. Additions raise
 * it; existing functions and values keep their meaning as long as the file is called libshardscope.so.1. */
#define SHARDSCOPE_ABI_VERSION 8

/* Value of an id field of an event or a table that has no id. */
#define SHARDSCOPE_NO_ID UINT32_MAX

typedef enum shardscope_status {
  SHARDSCOPE_OK = 0,
  SHARDSCOPE_INVALID_ARGUMENT = 1, /* a value is out of range; nothing was changed */
  SHARDSCOPE_INVALID_STATE = 2,    /* wrong order: the run is or is not started, or another run exists */
  SHARDSCOPE_OUT_OF_MEMORY = 3,
  SHARDSCOPE_FAILED = 4 /* the system refused: endpoint, key file, threads */
} shardscope_status;

/* A run of this process: described, then started, then finished. */
typedef struct shardscope_run shardscope_run;

SHARDSCOPE_API uint32_t shardscope_abi_version(void);
/* "0.1.0" */
SHARDSCOPE_API const char* shardscope_version(void);
/* Message of the last call on this thread that did not return SHARDSCOPE_OK; never NULL. Valid until the next
 * call on this thread. */
SHARDSCOPE_API const char* shardscope_last_error(void);

/* ---- describing a run ------------------------------------------------------------------------------ */

typedef struct shardscope_run_info {
  size_t size;
  const char* run_id; /* equal on all ranks of a run, unique to the run; required */
  const char* model;
  const char* device;
  const char* hardware;
  const char* versions;    /* of your framework and its dependencies */
  const char* config_json; /* the whole effective configuration, with DeepSpeed's keys, as JSON */
  const char* host;        /* NULL: this machine's name */
  uint32_t rank, world;    /* world >= 1, rank < world */
  uint32_t local_world;    /* ranks on this machine */
  int32_t stage;           /* ZeRO stage, 0 to 3 */
  int64_t elems;           /* parameters of the model; 0: the sum of the described ones */
  uint32_t param_bytes;    /* bytes of one stored element: 2 or 4 */
  uint32_t grad_bytes;
  uint32_t master_bytes;             /* 4 if fp32 master weights are kept beside 16-bit ones, else 0 */
  int32_t simulated;                 /* 1: the events come from a simulation, and every view says so */
  double link_gbps, link_latency_us; /* an emulated link; 0: none */
  /* Since version 3. */
  const char* framework; /* "DeepSpeed 0.19.8" */
  uint64_t records;      /* SHARDSCOPE_RECORDS_... ORed: what you can record of a run; 0: unknown */
} shardscope_run_info;
#define SHARDSCOPE_RUN_INFO_INIT                                                                            \
  {                                                                                                         \
    sizeof(shardscope_run_info), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 1, 0, 0, 4, 4, 0, 0, 0, 0, \
        NULL, 0                                                                                             \
  }

/* A module of the model's tree. Describe a parent before its children. Ids count up from 0. */
typedef struct shardscope_module {
  size_t size;
  uint32_t parent;  /* SHARDSCOPE_NO_ID: the root */
  const char* path; /* "transformer.h.0.attn" */
  const char* type; /* "Linear" */
  int32_t hooks;    /* 1 if module events are emitted for it */
  uint32_t model;   /* of a root: id of shardscope_add_model(); others inherit it. Since version 3 */
} shardscope_module;
#define SHARDSCOPE_MODULE_INIT \
  { sizeof(shardscope_module), SHARDSCOPE_NO_ID, NULL, NULL, 1, 0 }

/* One of several models of a run. A run with one model does not need it. Since version 3. */
typedef struct shardscope_model {
  size_t size;
  const char* name; /* "Qwen2.5-7B" */
  const char* role; /* "policy", "reference", ... */
} shardscope_model;
#define SHARDSCOPE_MODEL_INIT \
  { sizeof(shardscope_model), NULL, NULL }

/* A process group that this rank belongs to. Ids are local to the rank: on other ranks the same group is the
 * one with the same name and ranks. Since version 3. */
typedef struct shardscope_group {
  size_t size;
  const char* name;      /* "tp", "mesh_dp_shard" */
  int32_t purpose;       /* a SHARDSCOPE_GROUP_... */
  const uint32_t* ranks; /* `count` ranks of the world */
  size_t count;
} shardscope_group;
#define SHARDSCOPE_GROUP_INIT \
  { sizeof(shardscope_group), NULL, SHARDSCOPE_GROUP_OTHER, NULL, 0 }

/* A parameter group of the optimizer, with its settings at the start. Since version 6. */
typedef struct shardscope_param_group {
  size_t size;
  const char* name; /* "no_decay" */
  double lr, beta1, beta2, eps, weight_decay;
  const uint32_t* params; /* `count` ids of shardscope_add_param() */
  size_t count;
} shardscope_param_group;
#define SHARDSCOPE_PARAM_GROUP_INIT \
  { sizeof(shardscope_param_group), NULL, 0, 0, 0, 0, 0, NULL, 0 }

typedef struct shardscope_param {
  size_t size;
  const char* name;
  const char* dtype;     /* "f32", "bf16", ... */
  const int64_t* shape;  /* `dims` extents; at most 16 */
  size_t dims;           /* 0: one element */
  int64_t shard_elems;   /* stage 3: elements of each rank's shard, with padding; else 0 */
  int64_t padding_elems; /* stage 3: shard_elems * world - elements of the parameter */
  int32_t persistent;    /* stage 3: 1 if it is never released */
} shardscope_param;
#define SHARDSCOPE_PARAM_INIT \
  { sizeof(shardscope_param), NULL, NULL, NULL, 0, 0, 0, 0 }

/* A piece of a parameter that a rank owns. Describe those of all ranks. */
typedef struct shardscope_slice {
  size_t size;
  uint32_t param, rank;
  int64_t param_offset;  /* first element in the parameter */
  int64_t shard_offset;  /* first element in the rank's shard */
  int64_t elems;         /* without padding */
  int64_t padding_elems; /* padding after them */
  /* `elems` elements in blocks of block_elems, whose starts are stride_elems apart: a tensor that is sharded
   * along a dimension other than the first. Both 0: one block. Since version 3. */
  int64_t block_elems, stride_elems;
} shardscope_slice;
#define SHARDSCOPE_SLICE_INIT \
  { sizeof(shardscope_slice), 0, 0, 0, 0, 0, 0, 0, 0 }

/* Creates a run that is not started. The caller owns it and frees it with shardscope_run_destroy(). */
SHARDSCOPE_API shardscope_status shardscope_run_create(const shardscope_run_info* info, shardscope_run** run);
/* `id`, if not NULL, receives the id of the module, which events and other tables refer to. */
SHARDSCOPE_API shardscope_status shardscope_add_module(shardscope_run* run, const shardscope_module* module,
                                                       uint32_t* id);
SHARDSCOPE_API shardscope_status shardscope_add_param(shardscope_run* run, const shardscope_param* param,
                                                      uint32_t* id);
/* `module` uses `param`. The first module of a parameter is its owner. */
SHARDSCOPE_API shardscope_status shardscope_use_param(shardscope_run* run, uint32_t module, uint32_t param);
/* `param` is not trained (requires_grad false): it has weights, but no gradient and no optimizer states; the
 * formulas of memory and communication volume leave those out. Since version 2. */
SHARDSCOPE_API shardscope_status shardscope_freeze_param(shardscope_run* run, uint32_t param);
SHARDSCOPE_API shardscope_status shardscope_add_slice(shardscope_run* run, const shardscope_slice* slice);

/* The functions below exist since version 3. They and the ones above may also be called after the start: they
 * extend the tables, and shardscope_publish() sends them. Ids continue; existing ones keep their meaning. */
SHARDSCOPE_API shardscope_status shardscope_add_model(shardscope_run* run, const shardscope_model* model,
                                                      uint32_t* id);
/* At most 255 groups. */
SHARDSCOPE_API shardscope_status shardscope_add_group(shardscope_run* run, const shardscope_group* group,
                                                      uint32_t* id);
/* Name of `lane` (SHARDSCOPE_LANE_...) in this run, such as "all-gather copy-in". */
SHARDSCOPE_API shardscope_status shardscope_name_lane(shardscope_run* run, uint8_t lane, const char* name);
/* `what` (SHARDSCOPE_RECORDS_... ORed) cannot be recorded in this run; `why` is shown to users: "compiled
 * with DeepCompile: there are no module hooks". Clears these bits of `records`. */
SHARDSCOPE_API shardscope_status shardscope_not_recorded(shardscope_run* run, uint64_t what, const char* why);
/* Replaces everything in `info` except run_id, rank, world, local_world and host. */
SHARDSCOPE_API shardscope_status shardscope_update_run(shardscope_run* run, const shardscope_run_info* info);
/* Sends the tables if they changed since the start or the last call. Before the start: does nothing. The
 * whole description is sent again: call it once after many additions, not every step. */
SHARDSCOPE_API shardscope_status shardscope_publish(shardscope_run* run);

/* Adds one of the optimizer's parameter groups; groups are numbered in the order of the calls. A run without
 * any has one, of all trained parameters. A parameter is in at most one group. Since version 6. */
SHARDSCOPE_API shardscope_status shardscope_add_param_group(shardscope_run* run,
                                                            const shardscope_param_group* group);

/* ---- the life of a run ------------------------------------------------------------------------------ */

typedef struct shardscope_options {
  size_t size;
  const char* endpoint; /* the collector: tcp://host:port or ipc://path; NULL or "": SHARDSCOPE_ENDPOINT of
                           the environment; if that is not set either, events are discarded */
  int32_t detail;       /* a SHARDSCOPE_DETAIL_...; viewers can change it during the run */
  uint64_t ring_events; /* capacity per emitting thread; 0: 65536 */
  uint64_t queue_bytes; /* limit of unsent batches while the collector is slow or absent; 0: 64 MiB */
  double linger_s;      /* longest wait at the end for the collector to receive the rest */
  const char* key_file; /* publishing key (docs/security.md); NULL or "": the file that SHARDSCOPE_KEY of the
                           environment names, else the one published by a collector of this user on this
                           machine; "none": without a key, to any listener */
} shardscope_options;
#define SHARDSCOPE_OPTIONS_INIT \
  { sizeof(shardscope_options), NULL, SHARDSCOPE_DETAIL_PARAMS, 0, 0, 5.0, NULL }

/* Records before a run starts: events go into the threads' rings, up to level `detail`, the first
 * `ring_events` of each thread (0: 65536). The run that starts next sends them, with their original
 * timestamps. For programs that emit before they can describe the run. `detail` -1: stop and discard.
 * SHARDSCOPE_INVALID_STATE while a run is started. Since version 3. */
SHARDSCOPE_API shardscope_status shardscope_keep(int32_t detail, uint64_t ring_events);

/* Starts publishing. Never waits for the collector, which may start later, disconnect and reconnect: events
 * that do not fit into the queue meanwhile are dropped, least important first, and counted. `options` may be
 * NULL. */
SHARDSCOPE_API shardscope_status shardscope_start(shardscope_run* run, const shardscope_options* options);
/* Reports the end of this rank: exit code (0: success) and a message. Emit nothing afterwards. */
SHARDSCOPE_API shardscope_status shardscope_finish(shardscope_run* run, int32_t exit_code, const char* text);
/* Sends the remaining events, for at most linger_s, and frees everything. NULL is allowed. No other thread
 * may still be in a function that was given `run`. */
SHARDSCOPE_API void shardscope_run_destroy(shardscope_run* run);

typedef struct shardscope_counts {
  size_t size;
  uint64_t dropped; /* events lost on this rank: full rings, full queue */
  uint64_t invalid; /* events rejected because their kind, lane or timestamp is out of range */
} shardscope_counts;
#define SHARDSCOPE_COUNTS_INIT \
  { sizeof(shardscope_counts), 0, 0 }
SHARDSCOPE_API shardscope_status shardscope_get_counts(shardscope_run* run, shardscope_counts* counts);

/* ---- events: kinds and fields are in events.h -------------------------------------------------------- */

/* 32 bytes, no pointers. Unused ids are SHARDSCOPE_NO_ID, unused values 0. */
typedef struct shardscope_event {
  uint16_t kind; /* SHARDSCOPE_EVENT_... */
  uint8_t lane;  /* SHARDSCOPE_LANE_... */
  uint8_t code;
  uint32_t a, b, c;
  int64_t v0, v1;
} shardscope_event;

/* Detail levels; each includes those before it. */
enum {
  SHARDSCOPE_DETAIL_STEPS = 0,
  SHARDSCOPE_DETAIL_PHASES = 1,
  SHARDSCOPE_DETAIL_MODULES = 2,
  SHARDSCOPE_DETAIL_PARAMS = 3,
  SHARDSCOPE_DETAIL_KERNELS = 4
};

/* Not 0 if events of this level are recorded now. shardscope_emit() checks this itself; call it to avoid the
 * cost of filling in an event. */
SHARDSCOPE_API int32_t shardscope_enabled(int32_t detail);
/* Emits an event, timestamped now, on the calling thread. Discarded before the start (except after
 * shardscope_keep) and below the current level of detail. */
SHARDSCOPE_API void shardscope_emit(const shardscope_event* event);
/* With a timestamp taken elsewhere, such as a GPU's: nanoseconds of CLOCK_MONOTONIC. Begin and end events
 * must nest within a lane; a lane's events may come from different threads. */
SHARDSCOPE_API void shardscope_emit_at(int64_t monotonic_ns, const shardscope_event* event);
/* Emits `count` events, each at its own timestamp, or all now if `monotonic_ns` is NULL. Since version 3.
 * */
SHARDSCOPE_API void shardscope_emit_many(const shardscope_event* events, const int64_t* monotonic_ns,
                                         size_t count);
/* A category of a pool (SHARDSCOPE_POOL_..., SHARDSCOPE_MEMORY_...) holds `bytes` now. For programs that
 * sample levels instead of reporting every allocation; do not mix both in one pool. An unchanged level emits
 * no event. Since version 3. */
SHARDSCOPE_API void shardscope_memory_level(uint8_t pool, uint8_t category, int64_t bytes);
/* Called for every recorded event of shardscope_emit(), on the emitting thread and before the event is
 * stored: a GPU profiler attributes the work that this thread launches next to it. It must be fast and must
 * not emit. One per process; NULL: none. The previous one may still be running when this returns. Since
 * version 5. */
typedef void (*shardscope_observer)(const shardscope_event* event);
SHARDSCOPE_API void shardscope_observe(shardscope_observer observer);
/* From now on the calling thread's NCCL calls belong to collective `sequence`; SHARDSCOPE_NO_ID: to none that
 * is recorded. NCCL's profiler plugin labels its events of a call with that sequence. After the first call in
 * a process the plugin assigns no sequence numbers of its own. Since version 7. */
SHARDSCOPE_API void shardscope_nccl_calls(uint32_t sequence);
/* For that plugin: returns 1 and, if `sequence` is not NULL, stores the calling thread's latest sequence; 0
 * if shardscope_nccl_calls() was never called in this process. Since version 7. */
SHARDSCOPE_API int32_t shardscope_nccl_calls_of_thread(uint32_t* sequence);
/* Now: nanoseconds of CLOCK_MONOTONIC. */
SHARDSCOPE_API int64_t shardscope_now_ns(void);
/* Id of a kernel's or a span's name; equal texts have equal ids. Not for the hot path: store the id. Allowed
 * before the start since version 3. */
SHARDSCOPE_API shardscope_status shardscope_name_id(shardscope_run* run, const char* name, uint32_t* id);

/* The GPU of this rank, by PCI bus id ("0000:17:00.0", as cudaDeviceGetPCIBusId returns it). Its energy,
 * clocks and temperature are read through NVML (libnvidia-ml.so.1) on the publishing thread when a step ends,
 * at most once a second, and emitted as events. NULL: no longer. SHARDSCOPE_FAILED without NVML or such a
 * GPU. Since version 8. */
SHARDSCOPE_API shardscope_status shardscope_set_gpu(shardscope_run* run, const char* pci_bus_id);

enum { SHARDSCOPE_INFO = 0, SHARDSCOPE_WARNING = 1, SHARDSCOPE_ERROR = 2 };
/* Emits a text for users, with one of the severities above. Not for the hot path. */
SHARDSCOPE_API shardscope_status shardscope_message(shardscope_run* run, int32_t severity, const char* text);

/* ---- requests ---------------------------------------------------------------------------------------- */

/* What a viewer can request from a running rank. Since version 4. */
enum {
  SHARDSCOPE_REQUEST_STACKS = 0 /* the stack of each thread of the program, the training thread first */
};
/* Writes the answer into `text`, at most `capacity` bytes of UTF-8, and returns its full length: more than
 * `capacity` if it was truncated, which the message then notes. Called on a thread of the library on which
 * nothing else waits, one request at a time: it may be slow and take locks, but shardscope_run_destroy()
 * waits for it. It must not destroy the run. */
typedef size_t (*shardscope_on_request)(void* context, int32_t request, char* text, size_t capacity);
/* Sets the function that answers requests; the answer becomes a message of this rank, shown by every viewer
 * and recorded. NULL: requests are answered with "none". The previous function may still be running when this
 * returns. Since version 4. */
SHARDSCOPE_API shardscope_status shardscope_set_on_request(shardscope_run* run,
                                                           shardscope_on_request on_request, void* context);

/* ---- gates ------------------------------------------------------------------------------------------- */

/* Places where a run can be paused. Every rank must pass the same gates in the same order: gates are
 * numbered, and a number must denote the same place on all ranks. */
enum {
  SHARDSCOPE_GATE_STEP = 0,        /* id: step */
  SHARDSCOPE_GATE_MICRO_STEP = 1,  /* id: micro-step */
  SHARDSCOPE_GATE_PRE_FORWARD = 2, /* id: module */
  SHARDSCOPE_GATE_POST_FORWARD = 3,
  SHARDSCOPE_GATE_PRE_BACKWARD = 4,
  SHARDSCOPE_GATE_POST_BACKWARD = 5,
  SHARDSCOPE_GATE_BUCKET = 6,   /* before a bucket is flushed; id: bucket */
  SHARDSCOPE_GATE_OPTIMIZER = 7 /* before the optimizer; id: step */
};
/* Passes a gate; blocks while a viewer holds the run there. Different threads may pass gates one after
 * another; two at once return SHARDSCOPE_INVALID_STATE, because their order would be undefined. */
SHARDSCOPE_API shardscope_status shardscope_gate(int32_t kind, uint32_t id);
/* The same in two halves, for callers that must release a lock before waiting (Python's GIL). Passes the gate
 * without waiting. 1: the run may be held here; call shardscope_gate_wait() with the same arguments before
 * continuing. 0: continue. No other gate may be passed in between. Since version 3. */
SHARDSCOPE_API int32_t shardscope_gate_pass(int32_t kind, uint32_t id, uint64_t* ticket);
SHARDSCOPE_API shardscope_status shardscope_gate_wait(int32_t kind, uint32_t id, uint64_t ticket);
/* Pointer to a flag that is not 0 while the next gate may hold. Never NULL; valid until the process ends. */
SHARDSCOPE_API const volatile int32_t* shardscope_gate_flag(void);
/* Inline; one load after the first call. */
static inline int32_t shardscope_gate_armed(void) {
  static const volatile int32_t* flag;
  if (!flag) flag = shardscope_gate_flag();
  return *flag;
}
/* Called on the thread that passes the gate, before the library reports the hold: wait for your device here,
 * so that no work is in progress. NULL: no call. It must not call back into this library. */
SHARDSCOPE_API shardscope_status shardscope_set_on_hold(shardscope_run* run, void (*on_hold)(void* context),
                                                        void* context);

#ifdef __cplusplus
}
#endif

#include "shardscope/events.h"

#endif
