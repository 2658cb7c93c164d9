#include "app/gui/model/lane_crops.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace shardscope::gui {
namespace {

void crop_in(LaneCrops::Levels& all, const store::Store& store, store::LaneId lane, std::uint8_t levels) {
  if (levels == 0 || levels >= store.depth_count(lane))
    all.erase(lane);
  else
    all[lane] = levels;
}

}  // namespace

LaneCrops::LaneCrops(Levels levels) {
  if (!levels.empty()) levels_ = std::make_shared<const Levels>(std::move(levels));
}

const LaneCrops::Levels& LaneCrops::levels() const {
  static const Levels kNone;
  return levels_ == nullptr ? kNone : *levels_;
}

std::uint8_t levels_shown(const LaneCrops& crops, store::LaneId lane, std::uint8_t all) {
  const auto found = crops.levels().find(lane);
  return found == crops.levels().end() ? all : std::min(all, found->second);
}

void crop(LaneCrops& crops, const store::Store& store, store::LaneId lane, std::uint8_t levels) {
  LaneCrops::Levels changed = crops.levels();
  crop_in(changed, store, lane, levels);
  crops = LaneCrops(std::move(changed));
}

void crop_everywhere(LaneCrops& crops, const store::Store& store, ev::StreamId stream, std::uint8_t levels) {
  LaneCrops::Levels changed = crops.levels();
  for (const store::RankRow& rank : store.ranks()) crop_in(changed, store, {rank.rank, stream}, levels);
  crops = LaneCrops(std::move(changed));
}

std::string cropped_text(const LaneCrops& crops) {
  if (crops.empty()) return {};
  return "deeper levels of " +
         (crops.size() == 1 ? std::string("a lane") : std::to_string(crops.size()) + " lanes");
}

std::string crops_line(const LaneCrops& crops) {
  std::string out;
  for (const auto& [lane, levels] : crops.levels())
    out += (out.empty() ? "" : ",") + std::to_string(lane.rank) + ":" +
           std::to_string(static_cast<unsigned>(lane.stream)) + ":" + std::to_string(levels);
  return out;
}

LaneCrops crops_from(std::string_view text) {
  LaneCrops::Levels out;
  while (!text.empty()) {
    std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    std::array<std::uint32_t, 3> numbers{};
    bool valid = true;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const char* const end = one.data() + one.size();
      const auto [at, error] = std::from_chars(one.data(), end, numbers[i]);
      const bool last = i + 1 == numbers.size();
      valid = valid && error == std::errc{} && (last ? at == end : at != end && *at == ':');
      if (!valid) break;
      one.remove_prefix(static_cast<std::size_t>(at - one.data()) + (last ? 0 : 1));
    }
    if (valid && numbers[1] <= UINT8_MAX && numbers[2] >= 1 && numbers[2] <= UINT8_MAX)
      out[{numbers[0], static_cast<ev::StreamId>(numbers[1])}] = static_cast<std::uint8_t>(numbers[2]);
  }
  return LaneCrops(std::move(out));
}

}  // namespace shardscope::gui
