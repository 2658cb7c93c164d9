// A child of fork() has its parent's memory but only one thread: rings that no thread drains, locks that may
// never be released, sockets that belong to the parent. The library is inert in it.
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

/// Creates the gate keeper before any fork: it allocates memory, which a forked child must not do.
[[maybe_unused]] const bool g_registered = [] {
  (void)GateKeeper::instance();
  return pthread_atfork(nullptr, nullptr, become_inert) == 0;
}();

}  // namespace

bool is_forked_child() noexcept { return g_child.load(std::memory_order_relaxed); }

}  // namespace shardscope::instrumentation::c_api
