// Part of the partition map: the cells. A cell shows a parameter on a rank: the part that the rank owns, and
// the state of its values, gradients or optimizer states.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/gui/model/element_axis.h"
#include "app/gui/model/gradient_states.h"
#include "app/gui/model/owner_bands.h"
#include "app/gui/model/param_uses.h"
#include "app/gui/model/shard_style.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// Which model state the cells show.
enum class PartitionLayer : std::uint8_t { parameters, gradients, optimizer };
/// Colouring of the cells; for parameters only.
enum class ColourBy : std::uint8_t { status, owner, module, age, place, use };
struct PartitionStyle {
  PartitionLayer layer = PartitionLayer::parameters;
  ColourBy colour_by = ColourBy::status;
};

/// A parameter on a rank, and its position.
struct PartitionCell {
  Rect box;
  std::uint32_t rank = 0, param = 0;
  store::ParamState state;
};

class PartitionCells {
 public:
  PartitionStyle style;
  void draw(Context& ctx, const ElementAxis& elements, const PartitionCell& cell);
  /// Gradient states of a rank at the cursor, by parameter.
  [[nodiscard]] const std::vector<GradientState>& gradients(const AppState& app, std::uint32_t rank) {
    return gradients_.of(app.store(), rank, app.now_ns());
  }
  /// Blocks used for colouring by module.
  [[nodiscard]] const Blocks& blocks(const Session& run) {
    blocks_.update(run.number(), run.store());
    return blocks_;
  }
  /// Storage of the shards, by parameter.
  [[nodiscard]] const ShardPlaces& places(const Session& run) {
    places_.update(run.number(), run.store());
    return places_;
  }
  /// Use of gathered parameters on a rank, after ParamUses::look_at.
  [[nodiscard]] ParamUses& uses() { return uses_; }
  /// Whether a secondary copy (hpZ) of this run was drawn: its legend is shown from then on.
  [[nodiscard]] bool saw_secondary(const Session& run) const { return secondary_of_ == run.number(); }

 private:
  void parameter(Context& ctx, const ElementAxis& elements, const PartitionCell& cell);
  void gradient(Context& ctx, const ElementAxis& elements, const PartitionCell& cell);
  void optimizer(Context& ctx, const ElementAxis& elements, const PartitionCell& cell);
  /// Draws the cell by owner, module, age, place or use; false when cells are coloured by status.
  [[nodiscard]] bool coloured(Context& ctx, const ElementAxis& elements, const PartitionCell& cell);
  void owners(Context& ctx, const ElementAxis& elements, const PartitionCell& cell, bool here);

  GradientStatesAt gradients_;
  OwnerBands bands_;
  Blocks blocks_;
  ShardPlaces places_;
  ParamUses uses_;
  std::uint64_t secondary_of_ = 0;  ///< Session::number()
};

/// Draws a parameter's name on its cell, as far as it fits.
void draw_cell_label(Context& ctx, const Rect& box, std::string_view name);

// Shared with the legend.

/// The theme's owner colours, or else hues a golden angle apart, so that neighbours differ.
[[nodiscard]] Rgb hue(std::size_t which, const Palette& colors);
/// Colour of an owner: a hue of its own, or with many ranks a step of the scale by number.
[[nodiscard]] Rgb owner_hue(std::uint32_t colour, std::uint32_t world, const Palette& colors);
/// Style of elements on a rank that does not own them: pale, or, in colour-blind themes, low and in full
/// colour, since pale colours cannot be distinguished.
struct RemoteShardStyle {
  Rgb color = 0;
  float height = 1;  ///< fraction of the cell, at its bottom
};
inline constexpr float kPale = 0.28F;
[[nodiscard]] RemoteShardStyle not_here(Rgb color, const Palette& colors, float alpha = kPale);
void fill_not_here(Context& ctx, const Rect& box, Rgb color, float alpha = kPale);
/// Fills a cell by use: in use, kept for a later use, or held without one.
void fill_use(Context& ctx, const Rect& box, ParamUse use);
/// Fades with `age` from 0 (1 us or less) to 1 (1 s or more).
[[nodiscard]] Rgb aged(Rgb color, const Palette& colors, float age);
/// Colour of a replica of elements owned by others, below stage 3.
[[nodiscard]] Rgb replica(const Palette& colors);
/// Draws a shard by its storage.
void draw_place(Context& ctx, const Rect& box, const analysis::ShardPlace& place);
/// Optimizer states on the device in their own colour, elsewhere as shards there.
void draw_optimizer_place(Context& ctx, const Rect& box,
                          const std::optional<analysis::OptimizerPlace>& place);
/// Marks a secondary copy (hpZ).
void double_outline(Context& ctx, const Rect& box);

}  // namespace shardscope::gui
