#include "app/gui/model/shard_style.h"

#include "runtime/plan/offload.h"

namespace shardscope::gui {

ShardStyle style_of(const analysis::ShardPlace& rest) noexcept {
  ShardStyle look;
  if (rest.place != plan::ShardPlace::device) look.meaning = Meaning::copy;
  look.hatched = rest.place == plan::ShardPlace::nvme;
  look.dotted = rest.int8;
  return look;
}

void ShardPlaces::update(std::uint64_t run, const store::Store& store) {
  const TablesKey key = key_of_tables(run, store);
  if (key_ == key) return;
  *this = {};
  key_ = key;
  if (store.has_tables()) rests_ = analysis::shard_locations(store.tables());
}

}  // namespace shardscope::gui
