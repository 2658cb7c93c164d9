#include "app/store/rotation.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace shardscope::store {
namespace {

constexpr std::string_view kEnding = ".zscope";
constexpr std::size_t kDigits = 4;  ///< fewest: files then sort by name

}  // namespace

const char* name_of(PartEnd why) noexcept {
  switch (why) {
    case PartEnd::size:
      return "size";
    case PartEnd::age:
      return "age";
    case PartEnd::run:
      return "end";
  }
  return "";
}

std::optional<PartEnd> end_of_part(const Rotation& rotation, const PartFill& fill) noexcept {
  if (!fill.has_events) return std::nullopt;
  const std::uint64_t own = fill.bytes - std::min(fill.begun_with, fill.bytes);
  if (rotation.part_bytes > 0 && fill.bytes >= rotation.part_bytes && own >= rotation.part_bytes / 2)
    return PartEnd::size;
  // Unsigned, to avoid overflow: times of a damaged run may have any value.
  const bool later = fill.last_ns > fill.first_ns;
  const std::uint64_t length =
      static_cast<std::uint64_t>(fill.last_ns) - static_cast<std::uint64_t>(fill.first_ns);
  if (rotation.part_ns > 0 && later && length >= static_cast<std::uint64_t>(rotation.part_ns))
    return PartEnd::age;
  return std::nullopt;
}

std::string part_path(const std::string& recording, std::uint32_t part) {
  std::string number = std::to_string(part);
  if (number.size() < kDigits) number.insert(0, kDigits - number.size(), '0');
  const bool usual = recording.ends_with(kEnding);
  const std::string stem = usual ? recording.substr(0, recording.size() - kEnding.size()) : recording;
  return stem + "." + number + (usual ? std::string(kEnding) : std::string());
}

std::string unfinished_part_path(const std::string& recording, std::uint32_t part) {
  return part_path(recording, part) + ".new";
}

std::optional<PartName> part_name(const std::string& path) {
  const bool usual = path.ends_with(kEnding);
  const std::string_view numbered =
      std::string_view(path).substr(0, path.size() - (usual ? kEnding.size() : 0));
  const std::size_t dot = numbered.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || numbered[dot - 1] == '/') return std::nullopt;
  const std::string_view digits = numbered.substr(dot + 1);
  std::uint32_t part = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), part);
  if (digits.size() < kDigits || error != std::errc() || end != digits.data() + digits.size() || part == 0)
    return std::nullopt;
  PartName out{
      .recording = std::string(numbered.substr(0, dot)) + (usual ? std::string(kEnding) : std::string()),
      .part = part};
  // Only the exact spelling: "run.00002.zscope" is not a part.
  if (part_path(out.recording, part) != path) return std::nullopt;
  return out;
}

std::uint32_t first_kept(const Rotation& rotation, std::uint32_t newest) noexcept {
  if (rotation.max_files == 0 || newest <= rotation.max_files) return 1;
  return newest - static_cast<std::uint32_t>(rotation.max_files) + 1;
}

}  // namespace shardscope::store
