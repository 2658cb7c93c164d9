// How the partition map shows where a shard rests between uses.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/analysis/shard_places.h"
#include "app/gui/model/palette.h"
#include "app/gui/model/tables_key.h"
#include "app/store/store.h"

namespace shardscope::gui {

/// Off the device it has the colour of offload and swap; NVMe is hatched, int8 dotted: colour alone never
/// says it.
struct ShardStyle {
  Meaning meaning = Meaning::compute;
  bool hatched = false, dotted = false;
  friend bool operator==(const ShardStyle&, const ShardStyle&) = default;
};
[[nodiscard]] ShardStyle style_of(const analysis::ShardPlace& rest) noexcept;

/// Where the shards of a run rest, worked out once for its tables: it takes the layout of all parameters.
class ShardPlaces {
 public:
  void update(std::uint64_t run, const store::Store& store);  ///< `run`: Session::number()
  /// Nothing where it is not known, as below stage 3.
  [[nodiscard]] std::optional<analysis::ShardPlace> of(std::uint32_t param) const {
    return param < rests_.size() ? std::optional(rests_[param]) : std::nullopt;
  }
  [[nodiscard]] const std::vector<analysis::ShardPlace>& all() const noexcept { return rests_; }

 private:
  TablesKey key_;
  std::vector<analysis::ShardPlace> rests_;
};

}  // namespace shardscope::gui
