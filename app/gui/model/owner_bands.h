// Whose the elements of a parameter are, for the partition map: neighbours of one colour as one band, found
// once for each parameter. And the blocks of the model, numbered.
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

/// Owners that have a colour of their own. With more ranks the colour runs along a scale by the rank's
/// number: so many colours cannot be distinguished, and a scale says about which rank it is.
inline constexpr std::uint32_t kOwnColours = 16;
inline constexpr std::uint32_t kScaleColours = 32;
/// Colours that a world of so many ranks has.
[[nodiscard]] std::uint32_t owner_colours(std::uint32_t world) noexcept;
/// Of these, a rank's.
[[nodiscard]] std::uint32_t owner_colour(std::uint32_t rank, std::uint32_t world) noexcept;

struct OwnerBand {
  std::int64_t begin = 0, end = 0;  ///< elements of the parameter
  std::uint32_t colour = 0;
  friend bool operator==(const OwnerBand&, const OwnerBand&) = default;
};

class OwnerBands {
 public:
  /// Of the parameter as `rank` has it: its copy of the model is partitioned among ranks of its own. By
  /// element. `run`: Session::number().
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
  std::unordered_map<std::uint32_t, std::uint32_t> first_;  ///< rank of the copy, by rank
  std::unordered_map<std::uint32_t, Copy> copies_;          ///< by its first rank
};

/// Blocks (block_name.h) in order of the model.
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
