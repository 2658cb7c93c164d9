#include "tests/gpu/host_cuda/block.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <vector>

#include "tests/gpu/host_cuda/runtime.h"

namespace shardscope::host_cuda {
namespace {

constexpr std::size_t kStackBytes = 64U << 10;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kMostShared = 227U << 10;    ///< of a block on sm_90
constexpr std::size_t kSharedUnasked = 48U << 10;  ///< without cudaFuncSetAttribute
constexpr unsigned kWarp = 32;

/// Leaves the stack pointer in *from and continues where `to` was left. System V ABI: rbx, rbp and r12 to r15
/// are the callee's to keep; nothing here changes the floating-point environment.
extern "C" void host_cuda_switch(void** from, void* to);
asm(R"(
  .text
  .globl host_cuda_switch
  .type host_cuda_switch, @function
host_cuda_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size host_cuda_switch, .-host_cuda_switch
)");

enum class State : std::uint8_t { ready, at_warp, at_barrier, ended };

struct Fiber {
  Indices indices;
  State state = State::ready;
  std::uint64_t waits_behind = 0;  ///< of its warp's exchanges, or the block's barriers
  void* stack_pointer = nullptr;
};

struct Warp {
  std::uint64_t exchanges = 0;
  unsigned arrived = 0;
  LaneWords words[2][kWarp];
};

struct Block {
  const char* name = "";
  const std::function<void()>* body = nullptr;
  unsigned threads = 0;
  unsigned running = 0;
  std::uint64_t barriers = 0;
  unsigned at_barrier = 0, ended = 0;
  bool vote[2] = {false, false};
  void* shared = nullptr;
  void* scheduler = nullptr;
  std::array<Fiber, kMostThreads> fibers;
  std::array<Warp, kMostThreads / kWarp> warps;
  std::byte* stacks = nullptr;
  std::byte* shared_pages = nullptr;

  Block() {
    const auto map = [](std::size_t bytes) {
      void* at =
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (at == MAP_FAILED) std::abort();
      return static_cast<std::byte*>(at);
    };
    stacks = map(kMostThreads * kStackBytes);
    shared_pages = map(kMostShared + 2 * kPage);
    // No memory is mapped behind a block's shared memory.
    mprotect(shared_pages + kMostShared + kPage, kPage, PROT_NONE);
  }
};
thread_local Block* t_block = nullptr;

Block& block() { return *t_block; }
Fiber& current() { return block().fibers[block().running]; }

void leave() { host_cuda_switch(&current().stack_pointer, block().scheduler); }

extern "C" void host_cuda_fiber() {
  (*block().body)();
  current().state = State::ended;
  ++block().ended;
  leave();
  std::abort();  // a block that has ended is never resumed
}

bool can_run(const Block& all, unsigned thread) {
  const Fiber& fiber = all.fibers[thread];
  switch (fiber.state) {
    case State::ready:
      return true;
    case State::at_warp:
      return all.warps[thread / kWarp].exchanges > fiber.waits_behind;
    case State::at_barrier:
      return all.barriers > fiber.waits_behind;
    case State::ended:
      return false;
  }
  return false;
}

void release_barrier(Block& all) {
  if (all.at_barrier == 0 || all.at_barrier + all.ended != all.threads) return;
  all.at_barrier = 0;
  ++all.barriers;
  all.vote[all.barriers % 2] = false;  // the next one's
}

void run_warp(Block& all, unsigned warp, bool backwards) {
  const unsigned first = warp * kWarp;
  const unsigned count = std::min(kWarp, all.threads - first);
  for (bool any = true; any;) {
    any = false;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned thread = first + (backwards ? count - 1 - i : i);
      if (!can_run(all, thread)) continue;
      any = true;
      all.running = thread;
      all.fibers[thread].state = State::ready;
      host_cuda_switch(&all.scheduler, all.fibers[thread].stack_pointer);
    }
  }
}

void run_block(Block& all, const Launch& launch, uint3 index, bool backwards) {
  all.threads = launch.block.x;
  all.barriers = 0;
  all.at_barrier = all.ended = 0;
  all.vote[0] = all.vote[1] = false;
  for (Warp& warp : all.warps) warp.exchanges = warp.arrived = 0;
  all.shared = all.shared_pages + kPage + kMostShared - (launch.shared_bytes + 127) / 128 * 128;
  std::memset(all.shared, 0xFF, (launch.shared_bytes + 127) / 128 * 128);  // not zeros, as on a GPU
  for (unsigned i = 0; i < all.threads; ++i) {
    Fiber& fiber = all.fibers[i];
    fiber.indices = {{i, 0, 0}, index, launch.block, launch.grid};
    fiber.state = State::ready;
    fiber.waits_behind = 0;
    // What host_cuda_switch pops: six registers and where to go on; the stack is then as behind a call.
    auto** top = reinterpret_cast<void**>(all.stacks + (i + 1) * kStackBytes) - 2;
    *top = reinterpret_cast<void*>(&host_cuda_fiber);
    fiber.stack_pointer = top - 6;
  }
  const unsigned warps = (all.threads + kWarp - 1) / kWarp;
  while (all.ended < all.threads) {
    const unsigned ended = all.ended;
    const std::uint64_t barriers = all.barriers;
    for (unsigned i = 0; i < warps; ++i) run_warp(all, backwards ? warps - 1 - i : i, backwards);
    release_barrier(all);
    if (all.ended == ended && all.barriers == barriers)
      undefined("some threads wait for others that do not come");
  }
}

std::mutex g_allowed_mutex;
std::map<const void*, std::size_t> g_allowed;  ///< shared memory of a kernel, by cudaFuncSetAttribute

}  // namespace

void undefined(const char* what) {
  std::fprintf(stderr, "host_cuda: %s: %s\n", t_block == nullptr ? "launch" : t_block->name, what);
  std::abort();
}

const Indices& indices() { return current().indices; }
void* dynamic_shared_memory() { return block().shared; }
unsigned thread_number() { return block().running; }
unsigned lane() { return block().running % kWarp; }

bool block_barrier(bool vote) {
  Block& all = block();
  Fiber& fiber = current();
  const std::uint64_t mine = all.barriers;
  all.vote[mine % 2] |= vote;
  fiber.state = State::at_barrier;
  fiber.waits_behind = mine;
  ++all.at_barrier;
  leave();
  return all.vote[mine % 2];
}

const LaneWords* warp_exchange(const LaneWords& mine) {
  Block& all = block();
  Warp& warp = all.warps[all.running / kWarp];
  const std::uint64_t number = warp.exchanges;
  LaneWords* const words = warp.words[number % 2];
  words[lane()] = mine;
  if (++warp.arrived == kWarp) {
    warp.arrived = 0;
    ++warp.exchanges;
    return words;
  }
  current().state = State::at_warp;
  current().waits_behind = number;
  leave();
  return words;
}

void launch_kernel(const Launch& launch, const void* function, const char* name, std::function<void()> body) {
  if (launch.grid.x == 0 || launch.grid.y == 0 || launch.grid.z == 0 || launch.grid.x > 0x7FFFFFFFU ||
      launch.grid.y > 65535 || launch.grid.z > 65535 || launch.block.x == 0 ||
      launch.block.x > kMostThreads || launch.block.y != 1 || launch.block.z != 1) {
    std::fprintf(stderr, "host_cuda: %s: no GPU takes such a grid\n", name);
    std::abort();
  }
  if (launch.shared_bytes > kSharedUnasked) {
    const std::lock_guard lock(g_allowed_mutex);
    if (g_allowed[function] < launch.shared_bytes) {
      std::fprintf(stderr, "host_cuda: %s: more shared memory than the launch has\n", name);
      std::abort();
    }
  }
  static std::atomic<unsigned> launches{0};
  const bool backwards = launches.fetch_add(1) % 2 == 1;
  const auto run = [launch, name, backwards, body = std::move(body)] {
    if (t_block == nullptr) t_block = new Block;  // of a stream's thread; the process's end takes it
    Block& all = *t_block;
    all.name = name;
    all.body = &body;
    const std::uint64_t blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t at = backwards ? blocks - 1 - i : i;
      run_block(all, launch,
                {static_cast<unsigned>(at % launch.grid.x),
                 static_cast<unsigned>(at / launch.grid.x % launch.grid.y),
                 static_cast<unsigned>(at / launch.grid.x / launch.grid.y)},
                backwards);
    }
  };
  host_cuda::launch(launch.stream, name, run, launch.grid, launch.block);
}

}  // namespace shardscope::host_cuda

extern "C" cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  using namespace shardscope::host_cuda;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<std::size_t>(value) > kMostShared) return cudaErrorInvalidValue;
  const std::lock_guard lock(g_allowed_mutex);
  g_allowed[function] = static_cast<std::size_t>(value);
  return cudaSuccess;
}
