/* One rank of a run with one thing wrong, said through the C interface: provoked_run ENDPOINT CAUSE
 * [without]. `ends`: the hook at the begin of one module is missing. `fragments`: a caching allocator, really
 * played, whose blocks are pinned by small pieces. `host`: a GPU whose kernels are launched one by one, later
 * than it could begin them. `returns0`, `returns1`: the ranks of two, of which the second ends when the other
 * is in the next all-reduce, until its input is closed. `without`: the same run without the cause. Nothing is
 * computed; times are made, and each step is said when it is over. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shardscope/shardscope.h"

enum { kModules = 3, kSteps = 6 };
static int64_t step_ns = 8000000;

static void check(shardscope_status status) {
  if (status == SHARDSCOPE_OK) return;
  fprintf(stderr, "provoked_run: %s\n", shardscope_last_error());
  exit(1);
}

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void until(int64_t ns) {
  const struct timespec time = {ns / 1000000000, ns % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0) {
  }
}

static void at(int64_t ns, uint8_t kind, uint8_t lane, uint8_t code, uint32_t a, uint32_t b) {
  shardscope_record_at_(ns, kind, lane, code, a, b, SHARDSCOPE_NO_ID, 0, 0);
}

/* ---- a caching allocator: the largest free block, split and joined within its segment ---- */

enum { kMostBlocks = 256 };
typedef struct Block {
  int segment, used;
  int64_t bytes;
} Block;
typedef struct Allocator {
  Block blocks[kMostBlocks]; /* in order of their addresses */
  int count, segments;
  int one_segment; /* that grows at its end: what expandable segments are */
} Allocator;

static void insert(Allocator* all, int place, Block block) {
  if (all->count == kMostBlocks) exit(3);
  memmove(&all->blocks[place + 1], &all->blocks[place], (size_t)(all->count - place) * sizeof block);
  all->blocks[place] = block;
  ++all->count;
}

static void erase(Allocator* all, int place) {
  --all->count;
  memmove(&all->blocks[place], &all->blocks[place + 1], (size_t)(all->count - place) * sizeof(Block));
}

/* `tag` (above 0) names it. */
static void take(Allocator* all, int64_t bytes, int tag) {
  int best = -1;
  for (int i = 0; i < all->count; ++i) {
    const Block* one = &all->blocks[i];
    if (!one->used && one->bytes >= bytes && (best < 0 || one->bytes > all->blocks[best].bytes)) best = i;
  }
  if (best < 0) { /* from the driver */
    const int last = all->count - 1;
    if (all->one_segment && last >= 0 && !all->blocks[last].used) {
      all->blocks[last].bytes = bytes;
      best = last;
    } else {
      const Block fresh = {all->one_segment ? 0 : all->segments++, 0, bytes};
      best = all->count;
      insert(all, best, fresh);
    }
  }
  const Block rest = {all->blocks[best].segment, 0, all->blocks[best].bytes - bytes};
  all->blocks[best].bytes = bytes;
  all->blocks[best].used = tag;
  if (rest.bytes > 0) insert(all, best + 1, rest);
}

static void give(Allocator* all, int tag) {
  int i = 0;
  while (all->blocks[i].used != tag) ++i;
  all->blocks[i].used = 0;
  const int neighbours[2] = {i + 1, i};
  for (int k = 0; k < 2; ++k) { /* joins with the next, then with the one before */
    const int second = neighbours[k];
    if (second < 1 || second >= all->count) continue;
    Block *a = &all->blocks[second - 1], *b = &all->blocks[second];
    if (a->used || b->used || a->segment != b->segment) continue;
    a->bytes += b->bytes;
    erase(all, second);
  }
}

static void say_allocator(const Allocator* all, int64_t ns) {
  int64_t reserved = 0, split = 0;
  for (int i = 0; i < all->count; ++i) {
    const Block* one = &all->blocks[i];
    reserved += one->bytes;
    const int of_more = (i > 0 && all->blocks[i - 1].segment == one->segment) ||
                        (i + 1 < all->count && all->blocks[i + 1].segment == one->segment);
    if (!one->used && of_more) split += one->bytes;
  }
  shardscope_record_at_(ns, SHARDSCOPE_EVENT_ALLOCATOR_STATE, SHARDSCOPE_LANE_HOST, SHARDSCOPE_POOL_DEVICE, 0,
                        0, SHARDSCOPE_NO_ID, reserved, split);
}

/* Batches get longer; of each something small is kept, where its activations were. */
static void play_allocator(Allocator* all, uint32_t step, int64_t begin) {
  const int64_t mib = 1 << 20;
  take(all, (32 + 4 * (int64_t)step) * mib, 1000);
  say_allocator(all, begin + step_ns / 2); /* the forward is over: this much it holds */
  give(all, 1000);
  take(all, mib / 2, (int)step + 1);
  say_allocator(all, begin + step_ns - 1000); /* much is cached by now, for the next step */
}

/* ---- a GPU: 200 kernels of 20 us a step ---- */

static void play_gpu(uint32_t name, uint32_t step, int64_t begin, int one_by_one) {
  enum { kKernels = 200 };
  const int64_t kernel = 20000, launch = one_by_one ? 39000 : 1000, latency = 5000;
  int64_t free_at = begin;
  shardscope_gpu_records_begin(begin, step, 0, 0, kKernels, 0);
  for (int i = 0; i < kKernels; ++i) {
    const int64_t launched = begin + i * launch, ready = launched + latency;
    const int64_t start = ready > free_at ? ready : free_at;
    shardscope_gpu_begin(start, SHARDSCOPE_LANE_GPU_COMPUTE, SHARDSCOPE_GPU_KERNEL, SHARDSCOPE_GPU_OWNER_NONE,
                         name, SHARDSCOPE_NO_ID, 7, start - launched, 1024);
    free_at = start + kernel;
    shardscope_gpu_end(free_at, SHARDSCOPE_LANE_GPU_COMPUTE, SHARDSCOPE_GPU_KERNEL, SHARDSCOPE_GPU_OWNER_NONE,
                       name, SHARDSCOPE_NO_ID, 7, start - launched, 1024);
  }
  shardscope_gpu_records_end(begin + step_ns, step, 0, 0, kKernels, 0);
}

/* ---- two ranks that all-reduce at the end of a step ---- */

static void all_reduce(uint32_t step, int64_t begin, int ends) {
  const int64_t from = begin + step_ns - 1000000;
  const uint32_t code = shardscope_collective_code(0, SHARDSCOPE_SCOPE_WORLD, 0);
  shardscope_record_at_(from, SHARDSCOPE_EVENT_COLLECTIVE_BEGIN, SHARDSCOPE_LANE_REDUCE,
                        SHARDSCOPE_ALL_REDUCE, step, SHARDSCOPE_NO_ID, code, 1000, 4000);
  if (!ends) return;
  shardscope_record_at_(from + 900000, SHARDSCOPE_EVENT_COLLECTIVE_END, SHARDSCOPE_LANE_REDUCE,
                        SHARDSCOPE_ALL_REDUCE, step, SHARDSCOPE_NO_ID, code, 1000, 4000);
}

static void play_step(uint32_t step, int64_t begin, int ends, const uint32_t* modules) {
  const uint8_t compute = SHARDSCOPE_LANE_COMPUTE;
  at(begin + 10, SHARDSCOPE_EVENT_PHASE_BEGIN, compute, SHARDSCOPE_PHASE_FORWARD, step, 0);
  for (int m = 1; m < kModules; ++m) {
    const int64_t from = begin + 20 + m * 1000000;
    if (!(ends && m == 2))
      at(from, SHARDSCOPE_EVENT_MODULE_BEGIN, compute, SHARDSCOPE_PASS_FORWARD, modules[m], 0);
    at(from + 900000, SHARDSCOPE_EVENT_MODULE_END, compute, SHARDSCOPE_PASS_FORWARD, modules[m], 0);
  }
  at(begin + step_ns - 2000, SHARDSCOPE_EVENT_PHASE_END, compute, SHARDSCOPE_PHASE_FORWARD, step, 0);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int with = argc < 4;
  const int ends = !strcmp(argv[2], "ends"), fragments = !strcmp(argv[2], "fragments"),
            host = !strcmp(argv[2], "host"), pair = !strncmp(argv[2], "returns", 7);
  shardscope_run_info info = SHARDSCOPE_RUN_INFO_INIT;
  info.run_id = "provoked";
  info.model = "two-layers";
  info.device = "played GPU";
  info.world = info.local_world = pair ? 2 : 1;
  info.rank = pair ? (uint32_t)(argv[2][7] - '0') : 0;
  shardscope_run* run;
  check(shardscope_run_create(&info, &run));
  static const char* const paths[kModules] = {"", "body", "head"};
  uint32_t modules[kModules], kernel;
  for (int m = 0; m < kModules; ++m) {
    shardscope_module module = SHARDSCOPE_MODULE_INIT;
    module.parent = m == 0 ? SHARDSCOPE_NO_ID : modules[0];
    module.path = paths[m];
    module.type = "Linear";
    check(shardscope_add_module(run, &module, &modules[m]));
  }
  shardscope_options options = SHARDSCOPE_OPTIONS_INIT;
  options.endpoint = argv[1];
  options.detail = SHARDSCOPE_DETAIL_KERNELS;
  check(shardscope_start(run, &options));
  check(shardscope_name_id(run, "matmul", &kernel));

  Allocator allocator = {0};
  allocator.one_segment = !with;
  if (host && !with) step_ns = 4050000; /* the kernels' own time */
  const int64_t start = now_ns();
  for (uint32_t step = 0; step < kSteps; ++step) {
    const int64_t begin = start + step * step_ns;
    until(begin + step_ns);
    at(begin, SHARDSCOPE_EVENT_STEP_BEGIN, SHARDSCOPE_LANE_HOST, 0, step, SHARDSCOPE_NO_ID);
    if (host) play_gpu(kernel, step, begin, with);
    play_step(step, begin, ends && with, modules);
    if (pair) all_reduce(step, begin, 1);
    if (fragments) play_allocator(&allocator, step, begin);
    at(begin + step_ns, SHARDSCOPE_EVENT_STEP_END, SHARDSCOPE_LANE_HOST, 0, step, SHARDSCOPE_NO_ID);
  }
  if (pair && with && info.rank == 0) { /* is in one more, for which the other does not come */
    at(start + kSteps * step_ns, SHARDSCOPE_EVENT_STEP_BEGIN, SHARDSCOPE_LANE_HOST, 0, kSteps,
       SHARDSCOPE_NO_ID);
    all_reduce(kSteps, start + kSteps * step_ns, 0);
    while (getchar() != EOF) {
    }
  }
  check(shardscope_finish(run, 0, "played to the end"));
  shardscope_run_destroy(run);
  return 0;
}
