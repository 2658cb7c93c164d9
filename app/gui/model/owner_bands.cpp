#include "app/gui/model/owner_bands.h"

#include <algorithm>

#include "app/analysis/zero_settings.h"
#include "app/gui/model/block_name.h"

namespace shardscope::gui {

std::uint32_t owner_colours(std::uint32_t world) noexcept {
  return world <= kOwnColours ? std::max<std::uint32_t>(1, world) : kScaleColours;
}

std::uint32_t owner_colour(std::uint32_t rank, std::uint32_t world) noexcept {
  if (world <= kOwnColours) return rank;
  return static_cast<std::uint32_t>(std::uint64_t{std::min(rank, world - 1)} * kScaleColours / world);
}

OwnerBands::Copy& OwnerBands::copy_of(const store::Store& store, std::uint32_t rank) {
  if (const auto known = first_.find(rank); known != first_.end()) return copies_[known->second];
  const ev::RunTables* const own = store.rank_tables(rank);
  std::vector<std::uint32_t> ranks = analysis::ranks_of_copy(own != nullptr ? *own : store.tables());
  const std::uint32_t first = ranks.empty() ? rank : ranks.front();
  Copy& copy = copies_[first];
  if (copy.ranks.empty()) copy.ranks = std::move(ranks);
  first_[rank] = first;
  return copy;
}

const std::vector<OwnerBand>& OwnerBands::of(std::uint64_t run, const store::Store& store,
                                             const ElementAxis& elements, std::uint32_t rank,
                                             std::uint32_t param) {
  if (const TablesKey key = key_of_tables(run, store); key_ != key) {
    *this = {};
    key_ = key;
  }
  Copy& copy = copy_of(store, rank);
  const auto [found, made] = copy.bands.try_emplace(param);
  std::vector<OwnerBand>& bands = found->second;
  if (!made) return bands;
  const std::uint32_t world = store.tables().world;
  for (const std::uint32_t owner : copy.ranks) {
    for (const OwnedSlice& slice : elements.owned(owner, param)) {
      if (slice.elems > 0)
        bands.push_back({slice.param_offset, slice.param_offset + slice.elems, owner_colour(owner, world)});
    }
  }
  std::ranges::sort(bands, {}, &OwnerBand::begin);
  std::size_t kept = 0;
  for (const OwnerBand& band : bands) {
    if (kept > 0 && bands[kept - 1].colour == band.colour && bands[kept - 1].end == band.begin)
      bands[kept - 1].end = band.end;
    else
      bands[kept++] = band;
  }
  bands.resize(kept);
  bands.shrink_to_fit();
  return bands;
}

void Blocks::update(std::uint64_t run, const store::Store& store) {
  const ev::RunTables& tables = store.tables();
  const TablesKey key = key_of_tables(run, store);
  if (key_ == key) return;
  *this = {};
  key_ = key;
  for (const ev::ParamInfo& param : tables.params) {
    const std::string_view block = block_of(param.name);
    const auto known = std::ranges::find(names_, block);
    of_param_.push_back(static_cast<std::uint32_t>(known - names_.begin()));
    if (known == names_.end()) names_.emplace_back(block);
  }
}

}  // namespace shardscope::gui
