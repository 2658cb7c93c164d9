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
  if (run_ != run) *this = {};
  run_ = run;
  if (!store.has_tables() || params_ == store.tables().params.size()) return;
  params_ = store.tables().params.size();
  rests_ = analysis::shard_rests(store.tables());
}

}  // namespace shardscope::gui
