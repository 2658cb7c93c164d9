// A store's life and bounds; its input is in store_intake.cpp.
#include "app/store/store.h"

#include <algorithm>

#include "app/store/store_state.h"

namespace shardscope::store {

Store::Store(Keep keep) : StoreQuery(keep) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

void Store::seal_after(std::size_t events) { state_->seal_events = std::max<std::size_t>(events, 1); }
void Store::set_cache_bytes(std::size_t bytes) { state_->access.set_cache_bytes(bytes); }
void Store::bound(const Bounds& bounds) {
  state_->access.bounds = bounds;
  state_->steps.keep_at_most(bounds.steps);
}

}  // namespace shardscope::store
