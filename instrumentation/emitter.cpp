#include "instrumentation/emitter.h"

#include "instrumentation/ring.h"

namespace shardscope::instrumentation {

std::atomic<int> g_detail{-1};

namespace detail {

__thread Ring* t_ring __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

__thread bool t_ended = false;

/// Returns the ring to the registry when the thread ends.
struct Registration {
  ~Registration() {
    if (t_ring != nullptr) t_ring->retire();
    t_ring = nullptr;
    t_ended = true;
  }
};

}  // namespace

__attribute__((noinline, cold)) Ring* ring_slow() noexcept {
  if (!t_ended) {
    thread_local Registration registration;
    (void)registration;
    t_ring = RingRegistry::instance().attach();
  }
  if (t_ring == nullptr) RingRegistry::instance().count_lost();
  return t_ring;
}

}  // namespace detail
}  // namespace shardscope::instrumentation
