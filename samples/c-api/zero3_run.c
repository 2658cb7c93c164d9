/* A training runtime in small that tells Shardscope about itself, using the C interface alone. It plays one
 * rank of a ZeRO-3 run: parameters are gathered for each module and released after it, gradients are reduced
 * into shards, an optimizer step follows. Nothing is computed; a real runtime puts its calls where the naps
 * are. The ranks do wait for one another (rendezvous.h): a collective is told as entered, and as ended, only
 * when it is true. docs/c-api.md explains each part.
 *
 *   ./shardscope record run.zscope --listen tcp://127.0.0.1:5711 &
 *   for r in 0 1; do zero3_run $r 2 tcp://127.0.0.1:5711 & done; wait
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rendezvous.h"
#include "shardscope/shardscope.h"

static volatile sig_atomic_t stop_wanted = 0; /* SIGTERM: end after this step */
static void on_sigterm(int signal) { stop_wanted = signal; }

enum { kModules = 4, kParamBytes = 4, kTokensPerRank = 128 };

/* The model: a root with three linear layers, one weight each; that in the middle is frozen. */
static const char* const kPaths[kModules] = {"", "embed", "hidden", "head"};
static const int64_t kShapes[kModules][2] = {{0, 0}, {65, 16}, {16, 48}, {48, 65}};
static const int kTrained[kModules] = {0, 1, 0, 1};

typedef struct Rank {
  uint32_t rank, world;
  shardscope_run* run;
  uint32_t module[kModules]; /* ids that the library gave */
  uint32_t param[kModules];  /* of the module's weight; none for the root */
  uint32_t matmul;           /* a kernel's name */
  uint32_t sequence;         /* collectives so far, the same on every rank */
  Rendezvous rendezvous;
  uint32_t gather, bucket;
  int64_t device_bytes;    /* in the device pool now */
  int64_t available_elems; /* of gathered parameters now */
} Rank;

static void check(shardscope_status status) {
  if (status == SHARDSCOPE_OK) return;
  fprintf(stderr, "zero3_run: %s\n", shardscope_last_error());
  exit(1);
}

static void nap(long microseconds) {
  const struct timespec time = {0, microseconds * 1000};
  nanosleep(&time, NULL);
}

static int64_t elems_of(int m) { return kShapes[m][0] * kShapes[m][1]; }
static int64_t shard_of(const Rank* r, int m) { return (elems_of(m) + r->world - 1) / r->world; }

/* ---- what the run is ---- */

static void describe(Rank* r, const char* run_id) {
  shardscope_run_info info = SHARDSCOPE_RUN_INFO_INIT;
  info.run_id = run_id;
  info.model = "three-layers";
  info.device = "played, no device";
  info.versions = "zero3_run 1";
  info.config_json = "{\"zero_optimization\": {\"stage\": 3}, \"gradient_accumulation_steps\": 1}";
  info.rank = r->rank;
  info.world = info.local_world = r->world;
  const char* local =
      getenv("LOCAL_WORLD_SIZE"); /* as torchrun says it; a node's collector waits for so many */
  if (local != NULL && atoi(local) > 0) info.local_world = (uint32_t)atoi(local);
  info.stage = 3;
  info.param_bytes = info.grad_bytes = kParamBytes;
  check(shardscope_run_create(&info, &r->run));

  for (int m = 0; m < kModules; ++m) {
    shardscope_module module = SHARDSCOPE_MODULE_INIT;
    module.parent = m == 0 ? SHARDSCOPE_NO_ID : r->module[0];
    module.path = kPaths[m];
    module.type = m == 0 ? "Sequential" : "Linear";
    check(shardscope_add_module(r->run, &module, &r->module[m]));
    if (m == 0) continue;

    char name[64];
    snprintf(name, sizeof name, "%s.weight", kPaths[m]);
    shardscope_param param = SHARDSCOPE_PARAM_INIT;
    param.name = name;
    param.dtype = "f32";
    param.shape = kShapes[m];
    param.dims = 2;
    param.shard_elems = shard_of(r, m);
    param.padding_elems = shard_of(r, m) * r->world - elems_of(m);
    check(shardscope_add_param(r->run, &param, &r->param[m]));
    check(shardscope_use_param(r->run, r->module[m], r->param[m]));
    if (!kTrained[m]) check(shardscope_freeze_param(r->run, r->param[m]));

    /* Every rank owns an equal piece; the last one is filled up with padding. */
    for (uint32_t owner = 0; owner < r->world; ++owner) {
      shardscope_slice slice = SHARDSCOPE_SLICE_INIT;
      slice.param = r->param[m];
      slice.rank = owner;
      slice.param_offset = owner * shard_of(r, m);
      if (slice.param_offset > elems_of(m)) slice.param_offset = elems_of(m);
      slice.elems = elems_of(m) - slice.param_offset;
      if (slice.elems > shard_of(r, m)) slice.elems = shard_of(r, m);
      slice.padding_elems = shard_of(r, m) - slice.elems;
      check(shardscope_add_slice(r->run, &slice));
    }
  }
}

/* ---- memory: every change with what the pool holds afterwards ---- */

static void allocate(Rank* r, uint8_t category, uint32_t owner, int64_t bytes) {
  r->device_bytes += bytes;
  shardscope_memory_alloc(SHARDSCOPE_POOL_DEVICE, category, owner, bytes, r->device_bytes);
}
static void release(Rank* r, uint8_t category, uint32_t owner, int64_t bytes) {
  r->device_bytes -= bytes;
  shardscope_memory_free(SHARDSCOPE_POOL_DEVICE, category, owner, bytes, r->device_bytes);
}

static void allocate_model_states(Rank* r) {
  for (int m = 1; m < kModules; ++m) {
    const int64_t bytes = shard_of(r, m) * kParamBytes;
    allocate(r, SHARDSCOPE_MEMORY_PARAM_SHARD, r->param[m], bytes);
    if (!kTrained[m]) continue; /* weights, and nothing else */
    allocate(r, SHARDSCOPE_MEMORY_GRAD_SHARD, r->param[m], bytes);
    allocate(r, SHARDSCOPE_MEMORY_MOMENTUM, r->param[m], bytes);
    allocate(r, SHARDSCOPE_MEMORY_VARIANCE, r->param[m], bytes);
  }
}

/* ---- the other ranks ---- */

/* Without one of them there is nothing left to train: the collector is told, and this rank ends too. */
static void end_alone(Rank* r) {
  check(shardscope_finish(r->run, 1, "another rank has ended or did not answer in time"));
  exit(1);
}

static int meet_others(Rank* r, int word) {
  const int of_all = meet(&r->rendezvous, (unsigned char)word);
  if (of_all < 0) end_alone(r);
  return of_all;
}

/* ---- one collective: issued by the host, run by its lane ---- */

static void collective(Rank* r, uint8_t lane, uint8_t op, uint32_t group, uint32_t param, int64_t elems) {
  const uint32_t sequence = r->sequence++;
  const int64_t bytes = elems * kParamBytes;
  const uint32_t code = shardscope_collective_code(SHARDSCOPE_F32, SHARDSCOPE_SCOPE_WORLD, r->world);
  shardscope_collective_submitted(op, sequence, group, 1, elems, bytes);
  shardscope_collective_part(op, sequence, param, elems, bytes);
  shardscope_collective_begin_among(lane, op, sequence, group, code, elems, bytes);
  meet_others(r, 0); /* nobody is through before all have come: what follows would be untrue otherwise */
  shardscope_collective_entered(lane, op, sequence, group);
  nap(30); /* transfer */
  shardscope_collective_end_among(lane, op, sequence, group, code, elems, bytes);
}

static void status(Rank* r, uint8_t lane, int m, uint8_t to, uint8_t cause) {
  if (to == SHARDSCOPE_AVAILABLE) r->available_elems += elems_of(m);
  if (to == SHARDSCOPE_NOT_AVAILABLE) r->available_elems -= elems_of(m);
  shardscope_param_status(lane, to, cause, r->param[m], r->module[m], r->gather, elems_of(m),
                          r->available_elems);
}

static void fetch(Rank* r, int m) {
  const int64_t elems = shard_of(r, m) * r->world;
  allocate(r, SHARDSCOPE_MEMORY_PARAM_GATHERED, r->param[m], elems * kParamBytes);
  shardscope_fetch_decision(SHARDSCOPE_PREFETCH_DISABLED, r->module[m], r->gather, SHARDSCOPE_NO_ID, 0,
                            r->available_elems);
  status(r, SHARDSCOPE_LANE_GATHER, m, SHARDSCOPE_IN_FLIGHT, SHARDSCOPE_CAUSE_FETCH);
  shardscope_fetch_wait_begin(r->module[m], r->gather, elems * kParamBytes);
  collective(r, SHARDSCOPE_LANE_GATHER, SHARDSCOPE_ALL_GATHER, r->gather, r->param[m], elems);
  shardscope_fetch_wait_end(r->module[m], r->gather, elems * kParamBytes);
  status(r, SHARDSCOPE_LANE_COMPUTE, m, SHARDSCOPE_AVAILABLE, SHARDSCOPE_CAUSE_FETCH);
  ++r->gather;
}

static void release_param(Rank* r, int m) {
  status(r, SHARDSCOPE_LANE_COMPUTE, m, SHARDSCOPE_NOT_AVAILABLE, SHARDSCOPE_CAUSE_RELEASE);
  release(r, SHARDSCOPE_MEMORY_PARAM_GATHERED, r->param[m], shard_of(r, m) * r->world * kParamBytes);
}

/* ---- the passes ---- */

static void compute(Rank* r, int m, uint8_t pass) {
  shardscope_module_begin(pass, r->module[m], 0);
  if (shardscope_enabled(SHARDSCOPE_DETAIL_KERNELS)) shardscope_kernel_begin(r->matmul, r->module[m]);
  nap(50);
  if (shardscope_enabled(SHARDSCOPE_DETAIL_KERNELS)) shardscope_kernel_end(r->matmul, r->module[m]);
  shardscope_module_end(pass, r->module[m], 0);
}

static void forward(Rank* r, uint32_t step) {
  shardscope_phase_begin(SHARDSCOPE_LANE_COMPUTE, SHARDSCOPE_PHASE_FORWARD, step, 0);
  for (int m = 1; m < kModules; ++m) {
    check(shardscope_gate(SHARDSCOPE_GATE_PRE_FORWARD, r->module[m]));
    fetch(r, m);
    compute(r, m, SHARDSCOPE_PASS_FORWARD);
    release_param(r, m);
    check(shardscope_gate(SHARDSCOPE_GATE_POST_FORWARD, r->module[m]));
  }
  shardscope_phase_end(SHARDSCOPE_LANE_COMPUTE, SHARDSCOPE_PHASE_FORWARD, step, 0);
}

static void reduce_gradient(Rank* r, int m) {
  const int64_t elems = shard_of(r, m) * r->world;
  shardscope_bucket_open(r->bucket, 0);
  shardscope_bucket_add(r->bucket, r->param[m], elems, elems);
  check(shardscope_gate(SHARDSCOPE_GATE_BUCKET, r->bucket));
  shardscope_bucket_flush(SHARDSCOPE_FLUSH_FULL, r->bucket, r->param[m], 1, elems);
  collective(r, SHARDSCOPE_LANE_REDUCE, SHARDSCOPE_REDUCE_SCATTER, r->bucket, r->param[m], elems);
  release(r, SHARDSCOPE_MEMORY_GRAD_FULL, r->param[m], elems * kParamBytes);
  ++r->bucket;
}

static void backward(Rank* r, uint32_t step) {
  shardscope_phase_begin(SHARDSCOPE_LANE_COMPUTE, SHARDSCOPE_PHASE_BACKWARD, step, 0);
  for (int m = kModules - 1; m >= 1; --m) {
    check(shardscope_gate(SHARDSCOPE_GATE_PRE_BACKWARD, r->module[m]));
    fetch(r, m);
    if (kTrained[m])
      allocate(r, SHARDSCOPE_MEMORY_GRAD_FULL, r->param[m], shard_of(r, m) * r->world * kParamBytes);
    compute(r, m, SHARDSCOPE_PASS_BACKWARD);
    release_param(r, m);
    if (kTrained[m]) reduce_gradient(r, m);
    check(shardscope_gate(SHARDSCOPE_GATE_POST_BACKWARD, r->module[m]));
  }
  shardscope_phase_end(SHARDSCOPE_LANE_COMPUTE, SHARDSCOPE_PHASE_BACKWARD, step, 0);
}

static void optimize(Rank* r, uint32_t step) {
  int64_t elems = 0;
  for (int m = 1; m < kModules; ++m) elems += kTrained[m] ? shard_of(r, m) : 0;
  check(shardscope_gate(SHARDSCOPE_GATE_OPTIMIZER, step));
  shardscope_phase_begin(SHARDSCOPE_LANE_COMPUTE, SHARDSCOPE_PHASE_OPTIMIZER, step, 0);
  shardscope_optimizer_begin(SHARDSCOPE_LANE_COMPUTE, 0, step, elems);
  nap(40);
  shardscope_optimizer_end(SHARDSCOPE_LANE_COMPUTE, 0, step, elems);
  shardscope_phase_end(SHARDSCOPE_LANE_COMPUTE, SHARDSCOPE_PHASE_OPTIMIZER, step, 0);
}

static void train_step(Rank* r, uint32_t step) {
  check(shardscope_gate(SHARDSCOPE_GATE_STEP, step));
  shardscope_step_begin(step);
  shardscope_micro_step_begin(0, step);
  forward(r, step);
  shardscope_loss(step, 0, 4.0 / (step + 1)); /* what training would have measured */
  backward(r, step);
  shardscope_micro_step_end(0, step);
  optimize(r, step);
  shardscope_grad_norm(step, 1.0);
  shardscope_learning_rate(step, 1e-3);
  shardscope_tokens(step, kTokensPerRank);
  shardscope_step_end(step, 0, (int64_t)kTokensPerRank * r->world);
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: zero3_run RANK WORLD ENDPOINT [STEPS [RUN_ID]]\n");
    return 2;
  }
  Rank r = {0};
  r.rank = (uint32_t)strtoul(argv[1], NULL, 10);
  r.world = (uint32_t)strtoul(argv[2], NULL, 10);
  const uint32_t steps = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 3;
  signal(SIGTERM, on_sigterm);
  const char* run_id = argc > 5 ? argv[5] : "c-api-sample";
  describe(&r, run_id);

  shardscope_options options = SHARDSCOPE_OPTIONS_INIT;
  options.endpoint = argv[3];
  options.detail = SHARDSCOPE_DETAIL_KERNELS;
  check(shardscope_start(r.run, &options));
  check(shardscope_name_id(r.run, "matmul_f32", &r.matmul));
  check(shardscope_message(r.run, SHARDSCOPE_INFO, "a run described through the C interface"));

  if (rendezvous_begin(&r.rendezvous, r.rank, r.world, run_id) != 0) end_alone(&r);
  allocate_model_states(&r);
  /* All stop after the same step, whoever is asked to: half a collective would never end. */
  for (uint32_t step = 0; step < steps && meet_others(&r, stop_wanted != 0) == 0; ++step)
    train_step(&r, step);

  shardscope_counts counts = SHARDSCOPE_COUNTS_INIT;
  check(shardscope_get_counts(r.run, &counts));
  printf("%llu events dropped, %llu invalid\n", (unsigned long long)counts.dropped,
         (unsigned long long)counts.invalid);
  check(shardscope_finish(r.run, 0, "played to the end"));
  shardscope_run_destroy(r.run);
  return 0;
}
