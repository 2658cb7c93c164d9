#include "app/gui/model/heat_rows.h"

#include <algorithm>
#include <utility>

namespace shardscope::gui {
namespace {

constexpr std::uint64_t kNever = UINT64_MAX;  ///< no store has this revision

}  // namespace

void HeatRows::begin_frame(std::optional<std::chrono::nanoseconds> most) noexcept {
  std::erase_if(rows_, [&](const auto& row) { return row.second.frame != frame_; });
  ++frame_;
  until_.reset();
  if (most) until_ = std::chrono::steady_clock::now() + *most;
  // If that row is no longer drawn, waiting for it would stop all reading.
  waiting_ = stopped_ && rows_.contains(next_);
  stopped_ = read_one_ = behind_ = false;
}

bool HeatRows::has_time() const {
  // At least one row, so that a slow machine makes progress.
  return !until_ || !read_one_ || std::chrono::steady_clock::now() < *until_;
}

const HeatRow& HeatRows::of(const store::Store& store, std::span<const std::uint32_t> ranks, TimeRange range,
                            std::size_t columns) {
  const Key key{ranks.size() > 1, ranks.empty() ? ev::kNoId : ranks.front()};
  Kept& kept = rows_[key];
  kept.frame = frame_;
  if (next_ == key) waiting_ = false;
  const bool fresh =
      kept.revision == store.revision() && kept.row.range == range && kept.row.columns.size() == columns;
  if (fresh) return kept.row;
  if (waiting_ || !has_time()) {
    // Round robin: while events arrive every row is outdated in every frame.
    if (!waiting_ && !std::exchange(stopped_, true)) next_ = key;
    behind_ = true;
    if (kept.row.range != range || kept.row.columns.size() != columns)
      kept.asked = Asked{{ranks.begin(), ranks.end()}, range, columns};
    return kept.row;
  }
  read_one_ = true;
  read_again(store, ranks, range, columns, kept);
  return kept.row;
}

bool HeatRows::catch_up(const store::Store& store, std::chrono::nanoseconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  bool read_one = false;
  for (auto& [key, kept] : rows_) {
    if (!kept.asked || kept.frame != frame_) continue;
    if (std::exchange(read_one, true) && std::chrono::steady_clock::now() >= until) return true;
    const Asked asked = *kept.asked;
    read_again(store, asked.ranks, asked.range, asked.columns, kept);
  }
  return false;
}

void HeatRows::read_again(const store::Store& store, std::span<const std::uint32_t> ranks, TimeRange range,
                          std::size_t columns, Kept& kept) {
  kept.asked.reset();
  kept.row.range = range;
  kept.row.columns.assign(columns, {});
  read(store, ranks, kept.row);
  // Read again what the store could only answer coarsely.
  kept.revision = store.wants_more() ? kNever : store.revision();
}

void HeatRows::read(const store::Store& store, std::span<const std::uint32_t> ranks, HeatRow& row) {
  std::vector<float> longest(row.columns.size());
  const auto part = 1 / static_cast<float>(std::max<std::size_t>(ranks.size(), 1));
  for (const std::uint32_t rank : ranks) {
    const store::LaneId compute{rank, ev::StreamId::compute};
    const std::uint8_t depths = store.depth_count(compute);
    if (depths == 0) continue;
    // Deep enough for blocks of modules, not for single kernels.
    const auto depth = static_cast<std::uint8_t>(std::min(depths - 1, std::max(3, depths / 2)));
    for (const bool waits : {false, true}) {
      density_.assign(row.columns.size(), {});
      store.density(compute, waits ? store::Store::kWaits : depth, row.range.begin_ns, row.range.end_ns,
                    density_);
      for (std::size_t i = 0; i < density_.size(); ++i) {
        HeatColumn& column = row.columns[i];
        (waits ? column.waited : column.busy) += density_[i].busy * part;
        if (waits || density_[i].busy <= longest[i]) continue;
        longest[i] = density_[i].busy;
        column.most = density_[i].dominant;
        column.code = density_[i].dominant_code;
      }
    }
  }
}

}  // namespace shardscope::gui
