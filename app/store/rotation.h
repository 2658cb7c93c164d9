// A recording in parts: when the next part begins, the names of the files, and which of them are kept. This
// file only decides; RecordingWriter writes and deletes. docs/recording.md, "Parts".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace shardscope::store {

/// When a part ends, and how many parts are kept. Without part_bytes and part_ns the recording is one file.
struct Rotation {
  std::uint64_t part_bytes = 0;  ///< size of a part's file; 0: no limit
  std::int64_t part_ns = 0;      ///< from first to last event of a part; 0: no limit
  std::size_t max_files = 0;     ///< number of newest parts kept; 0: all
  [[nodiscard]] bool on() const noexcept { return part_bytes > 0 || part_ns > 0; }
};

/// Smallest `max_files`: the part being written, and the one before it.
inline constexpr std::size_t kFewestParts = 2;

enum class PartEnd : std::uint8_t { size, age, run };
/// "size", "age", "end": as in column `ended` of table `parts`.
[[nodiscard]] const char* name_of(PartEnd why) noexcept;

/// Size and time range of the part being written.
struct PartFill {
  std::uint64_t bytes = 0;                 ///< of its file, pages in the log included
  std::uint64_t begun_with = 0;            ///< `bytes` when it was made: copied tables, sums
  std::int64_t first_ns = 0, last_ns = 0;  ///< first and last event, collector clock
  bool has_events = false;
};
/// Why the part ends now; nullopt: it does not end. By size it ends only after at least half of `part_bytes`
/// was added to what it began with: with a thousand ranks, parts would otherwise hold little but copied
/// tables and sums.
[[nodiscard]] std::optional<PartEnd> end_of_part(const Rotation& rotation, const PartFill& fill) noexcept;

/// "run.zscope", 2: "run.0002.zscope".
[[nodiscard]] std::string part_path(const std::string& recording, std::uint32_t part);
/// Name of a part while it is being made.
[[nodiscard]] std::string unfinished_part_path(const std::string& recording, std::uint32_t part);
struct PartName {
  std::string recording;  ///< "run.zscope"
  std::uint32_t part = 0;
};
/// The inverse of part_path(); nullopt for other file names.
[[nodiscard]] std::optional<PartName> part_name(const std::string& path);
/// Number of the oldest part that is kept when part `newest` begins.
[[nodiscard]] std::uint32_t first_kept(const Rotation& rotation, std::uint32_t newest) noexcept;

}  // namespace shardscope::store
