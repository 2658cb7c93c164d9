// How the partition map draws the storage of a shard between uses.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/analysis/shard_places.h"
#include "app/gui/model/palette.h"
#include "app/gui/model/tables_key.h"
#include "app/store/store.h"

namespace shardscope::gui {

/// Offloaded shards have the colour of offload and swap; NVMe is hatched and int8 dotted, so that colour is
/// never the only sign.
struct ShardStyle {
  Meaning meaning = Meaning::compute;
  bool hatched = false, dotted = false;
  friend bool operator==(const ShardStyle&, const ShardStyle&) = default;
};
[[nodiscard]] ShardStyle style_of(const analysis::ShardPlace& place) noexcept;

/// Storage of each shard of a run, computed once per tables: it needs the layout of all parameters.
class ShardPlaces {
 public:
  void update(std::uint64_t run, const store::Store& store);  ///< `run`: Session::number()
  /// nullopt if unknown, as below stage 3.
  [[nodiscard]] std::optional<analysis::ShardPlace> of(std::uint32_t param) const {
    return param < places_.size() ? std::optional(places_[param]) : std::nullopt;
  }
  [[nodiscard]] const std::vector<analysis::ShardPlace>& all() const noexcept { return places_; }
  /// Of the optimizer states; nullopt if unknown.
  [[nodiscard]] const std::optional<analysis::OptimizerPlace>& optimizer() const noexcept {
    return optimizer_;
  }

 private:
  TablesKey key_;
  std::vector<analysis::ShardPlace> places_;
  std::optional<analysis::OptimizerPlace> optimizer_;
};

}  // namespace shardscope::gui
