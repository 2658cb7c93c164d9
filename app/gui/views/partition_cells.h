// Part of the partition map: the cells. One shows a parameter on a rank: how much of it the rank owns, and
// what is there of its values, gradients or optimizer states.
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

/// What of the model states the cells show.
enum class PartitionLayer : std::uint8_t { parameters, gradients, optimizer };
/// By what they are coloured; of parameters alone.
enum class ColourBy : std::uint8_t { status, owner, module, age, place, use };
struct PartitionStyle {
  PartitionLayer layer = PartitionLayer::parameters;
  ColourBy colour_by = ColourBy::status;
};

/// A parameter on a rank, and where it is drawn.
struct PartitionCell {
  Rect box;
  std::uint32_t rank = 0, param = 0;
  store::ParamState state;
};

class PartitionCells {
 public:
  PartitionStyle style;
  void draw(Context& ctx, const ElementAxis& elements, const PartitionCell& cell);
  /// The gradients of a rank at the time that the window shows, by parameter.
  [[nodiscard]] const std::vector<GradientState>& gradients(const AppState& app, std::uint32_t rank) {
    return gradients_.of(app.store(), rank, app.now_ns());
  }
  /// That the cells are coloured by, by module.
  [[nodiscard]] const Blocks& blocks(const Session& run) {
    blocks_.update(run.number(), run.store());
    return blocks_;
  }
  /// Where their shards rest, by parameter.
  [[nodiscard]] const ShardPlaces& rests(const Session& run) {
    rests_.update(run.number(), run.store());
    return rests_;
  }
  /// Whether what is whole on a rank is used, once looked at (ParamUses::look_at).
  [[nodiscard]] ParamUses& uses() { return uses_; }
  /// Whether a secondary copy (hpZ) was drawn of this run: its legend is shown from then on.
  [[nodiscard]] bool saw_secondary(const Session& run) const { return secondary_of_ == run.number(); }

 private:
  void parameter(Context& ctx, const ElementAxis& elements, const PartitionCell& cell);
  void gradient(Context& ctx, const ElementAxis& elements, const PartitionCell& cell);
  /// By owner, module, age, place or use in place of the status; false where that says nothing here.
  [[nodiscard]] bool coloured(Context& ctx, const ElementAxis& elements, const PartitionCell& cell);
  void owners(Context& ctx, const ElementAxis& elements, const PartitionCell& cell, bool here);

  GradientStatesAt gradients_;
  OwnerBands bands_;
  Blocks blocks_;
  ShardPlaces rests_;
  ParamUses uses_;
  std::uint64_t secondary_of_ = 0;  ///< Session::number()
};

/// A parameter's name on its cell, as much of it as fits.
void draw_cell_label(Context& ctx, const Rect& box, std::string_view name);

// What the legend draws as the cells do.

/// The theme's colours of owners; without these, hues that neighbours do not share: the golden angle apart.
[[nodiscard]] Rgb hue(std::size_t which, const Palette& colors);
/// Of an owner: a hue of its own, or, with many ranks, a step of the scale by number.
[[nodiscard]] Rgb owner_hue(std::uint32_t colour, std::uint32_t world, const Palette& colors);
/// How the elements of an owner or a module are shown on a rank that does not have them: pale, or, in themes
/// for colour blindness, low and in the full colour, since pale ones are not distinguishable.
struct RemoteShardStyle {
  Rgb color = 0;
  float height = 1;  ///< share of the cell, at its bottom
};
inline constexpr float kPale = 0.28F;
[[nodiscard]] RemoteShardStyle not_here(Rgb color, const Palette& colors, float alpha = kPale);
void fill_not_here(Context& ctx, const Rect& box, Rgb color, float alpha = kPale);
/// Used, kept for a later use, or held for nothing.
void fill_use(Context& ctx, const Rect& box, ParamUse use);
/// Paler with `age`, from 0 (1 us and less) to 1 (1 s and more).
[[nodiscard]] Rgb aged(Rgb color, const Palette& colors, float age);
/// Colour of a replica of what others own, in stages below 3.
[[nodiscard]] Rgb replica(const Palette& colors);
/// A shard by where it rests.
void draw_rest(Context& ctx, const Rect& box, const analysis::ShardPlace& rest);
/// A secondary copy (hpZ).
void double_outline(Context& ctx, const Rect& box);

}  // namespace shardscope::gui
