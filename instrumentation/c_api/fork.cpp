// A child of fork() has the memory of its parent and one thread of its own: rings that no thread drains,
// locks that may be held for ever, sockets that are the parent's. It is inert.
#include <pthread.h>

#include <atomic>

#include "instrumentation/c_api/status.h"
#include "instrumentation/emitter.h"
#include "instrumentation/gate.h"

namespace shardscope::instrumentation::c_api {
namespace {

std::atomic<bool> g_child{false};

void become_inert() {
  g_child.store(true, std::memory_order_relaxed);
  g_detail.store(-1, std::memory_order_relaxed);
  GateKeeper::instance().never_hold();
}

/// The keeper of gates exists before any fork: making it takes memory, which a child may not ask for.
[[maybe_unused]] const bool g_registered = [] {
  (void)GateKeeper::instance();
  return pthread_atfork(nullptr, nullptr, become_inert) == 0;
}();

}  // namespace

bool is_forked_child() noexcept { return g_child.load(std::memory_order_relaxed); }

}  // namespace shardscope::instrumentation::c_api
