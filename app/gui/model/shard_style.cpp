#include "app/gui/model/shard_style.h"

#include "runtime/plan/offload.h"

namespace shardscope::gui {

ShardStyle style_of(const analysis::ShardPlace& place) noexcept {
  ShardStyle look;
  if (place.place != plan::ShardPlace::device) look.meaning = Meaning::copy;
  look.hatched = place.place == plan::ShardPlace::nvme;
  look.dotted = place.int8;
  return look;
}

void ShardPlaces::update(std::uint64_t run, const store::Store& store) {
  const TablesKey key = key_of_tables(run, store);
  if (key_ == key) return;
  *this = {};
  key_ = key;
  if (!store.has_tables()) return;
  places_ = analysis::shard_locations(store.tables());
  optimizer_ = analysis::optimizer_place(store.tables());
}

}  // namespace shardscope::gui
