#include "app/gui/model/element_axis.h"

#include <algorithm>
#include <cmath>

namespace shardscope::gui {

ElementAxis::ElementAxis(const ev::RunTables& tables, ElementScale scale) : world_(tables.world) {
  const std::size_t params = tables.params.size();
  starts_.reserve(params + 1);
  elems_.reserve(params);
  double at = 0;
  for (const ev::ParamInfo& param : tables.params) {
    starts_.push_back(at);
    elems_.push_back(param.elems);
    const auto elems = static_cast<double>(std::max<std::int64_t>(1, param.elems));
    at += scale == ElementScale::linear ? elems : std::sqrt(elems);
  }
  starts_.push_back(at);
  for (double& start : starts_) start /= std::max(1.0, at);

  // Slices by (rank, parameter): counting sort, because the tables list them in any order.
  const auto cell = [&](const ev::SliceInfo& slice) {
    return static_cast<std::size_t>(slice.rank) * params + slice.param;
  };
  slice_begin_.assign(world_ * params + 1, 0);
  for (const ev::SliceInfo& slice : tables.slices) {
    if (slice.rank < world_ && slice.param < params) ++slice_begin_[cell(slice) + 1];
  }
  for (std::size_t i = 1; i < slice_begin_.size(); ++i) slice_begin_[i] += slice_begin_[i - 1];
  slices_.resize(slice_begin_.back());
  std::vector<std::size_t> next(slice_begin_.begin(), slice_begin_.end() - 1);
  for (const ev::SliceInfo& slice : tables.slices) {
    if (slice.rank >= world_ || slice.param >= params) continue;
    slices_[next[cell(slice)]++] = {slice.param_offset, slice.elems, slice.padding_elems};
  }
}

double ElementAxis::position(std::uint32_t param, std::int64_t element) const noexcept {
  const double share =
      static_cast<double>(element) / static_cast<double>(std::max<std::int64_t>(1, elems_[param]));
  return begin(param) + (end(param) - begin(param)) * std::clamp(share, 0.0, 1.0);
}

std::uint32_t ElementAxis::param_at(double where) const noexcept {
  if (size() == 0 || where < 0 || where >= 1) return ev::kNoId;
  const auto found = std::upper_bound(starts_.begin(), starts_.end(), where);
  return static_cast<std::uint32_t>(
      std::min<std::ptrdiff_t>(found - starts_.begin() - 1, static_cast<std::ptrdiff_t>(size()) - 1));
}

std::int64_t ElementAxis::element_at(std::uint32_t param, double where) const noexcept {
  const double width = end(param) - begin(param);
  const double share = width > 0 ? (where - begin(param)) / width : 0;
  const std::int64_t element = static_cast<std::int64_t>(share * static_cast<double>(elems_[param]));
  return std::clamp<std::int64_t>(element, 0, std::max<std::int64_t>(0, elems_[param] - 1));
}

std::span<const OwnedSlice> ElementAxis::owned(std::uint32_t rank, std::uint32_t param) const noexcept {
  if (rank >= world_ || param >= size()) return {};
  const std::size_t index = static_cast<std::size_t>(rank) * size() + param;
  return std::span<const OwnedSlice>(slices_).subspan(slice_begin_[index],
                                                      slice_begin_[index + 1] - slice_begin_[index]);
}

std::int64_t ElementAxis::owned_elems(std::uint32_t rank) const noexcept {
  std::int64_t total = 0;
  for (std::uint32_t param = 0; param < size(); ++param) {
    for (const OwnedSlice& slice : owned(rank, param)) total += slice.elems;
  }
  return total;
}

std::int64_t ElementAxis::padding_elems(std::uint32_t rank) const noexcept {
  std::int64_t total = 0;
  for (std::uint32_t param = 0; param < size(); ++param) {
    for (const OwnedSlice& slice : owned(rank, param)) total += slice.padding_elems;
  }
  return total;
}

void UnitRange::zoom(double factor, double anchor) noexcept {
  const double length = std::clamp((end - begin) * factor, 1e-7, 1.0);
  const double share = (anchor - begin) / (end - begin);
  begin = std::clamp(anchor - length * share, 0.0, 1.0 - length);
  end = begin + length;
}

void UnitRange::pan(double delta) noexcept {
  const double length = end - begin;
  begin = std::clamp(begin + delta, 0.0, 1.0 - length);
  end = begin + length;
}

}  // namespace shardscope::gui
