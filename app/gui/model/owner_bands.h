// Owners of a parameter's elements, for the partition map: adjacent elements of one colour form a band,
// computed once per parameter. And the blocks of the model, numbered.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/gui/model/element_axis.h"
#include "app/gui/model/tables_key.h"
#include "app/store/store.h"

namespace shardscope::gui {

/// Number of owners with a colour of their own. In a larger world colours follow a scale by rank number: more
/// colours could not be distinguished, and a scale still shows the rank approximately.
inline constexpr std::uint32_t kOwnColours = 16;
inline constexpr std::uint32_t kScaleColours = 32;
/// Number of colours used for a world of this size.
[[nodiscard]] std::uint32_t owner_colours(std::uint32_t world) noexcept;
/// Colour of a rank, below owner_colours(world).
[[nodiscard]] std::uint32_t owner_colour(std::uint32_t rank, std::uint32_t world) noexcept;

struct OwnerBand {
  std::int64_t begin = 0, end = 0;  ///< elements of the parameter
  std::uint32_t colour = 0;
  friend bool operator==(const OwnerBand&, const OwnerBand&) = default;
};

class OwnerBands {
 public:
  /// Bands of the parameter within the copy of the model that `rank` belongs to (each copy is partitioned
  /// among its own ranks), in order of element. `run`: Session::number().
  [[nodiscard]] const std::vector<OwnerBand>& of(std::uint64_t run, const store::Store& store,
                                                 const ElementAxis& elements, std::uint32_t rank,
                                                 std::uint32_t param);

 private:
  struct Copy {
    std::vector<std::uint32_t> ranks;
    std::unordered_map<std::uint32_t, std::vector<OwnerBand>> bands;  ///< by parameter
  };
  Copy& copy_of(const store::Store& store, std::uint32_t rank);
  TablesKey key_;
  std::unordered_map<std::uint32_t, std::uint32_t> first_;  ///< first rank of the copy, by rank
  std::unordered_map<std::uint32_t, Copy> copies_;          ///< by first rank
};

/// Blocks (block_name.h) in model order.
class Blocks {
 public:
  void update(std::uint64_t run, const store::Store& store);  ///< `run`: Session::number()
  [[nodiscard]] std::uint32_t of(std::uint32_t param) const noexcept {
    return param < of_param_.size() ? of_param_[param] : 0;
  }
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  TablesKey key_;
  std::vector<std::uint32_t> of_param_;
  std::vector<std::string> names_;
};

}  // namespace shardscope::gui
