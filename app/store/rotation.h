// A recording in parts: when it goes on in its next file, what the files are called, which of them stay. Pure
// decisions; RecordingWriter carries them out. docs/recording.md, "Parts".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace shardscope::store {

/// When a part ends, and how many parts stay. Without limits of a part the recording is one file.
struct Rotation {
  std::uint64_t part_bytes = 0;  ///< of a part's file; 0: no limit
  std::int64_t part_ns = 0;      ///< from its first event to its last; 0: no limit
  std::size_t max_files = 0;     ///< the newest ones that stay; 0: all
  [[nodiscard]] bool on() const noexcept { return part_bytes > 0 || part_ns > 0; }
};

/// Of two files one is being written, and the other one says what was before.
inline constexpr std::size_t kFewestParts = 2;

enum class PartEnd : std::uint8_t { size, age, run };
/// "size", "age", "end": as table `parts` has it.
[[nodiscard]] const char* name_of(PartEnd why) noexcept;

/// How full the part is that is being written.
struct PartFill {
  std::uint64_t bytes = 0;       ///< of its file, with its log
  std::uint64_t begun_with = 0;  ///< of these, what it was made with: tables, and sums of the parts before
  std::int64_t first_ns = 0, last_ns = 0;  ///< its first and last event, collector clock
  bool has_events = false;
};
/// Why the part ends now; nothing: it goes on. A part that begins with much (a thousand ranks) still takes
/// half of `part_bytes` of its own, or parts would hold little else than what they repeat.
[[nodiscard]] std::optional<PartEnd> end_of_part(const Rotation& rotation, const PartFill& fill) noexcept;

/// "run.zscope", 2: "run.0002.zscope".
[[nodiscard]] std::string part_path(const std::string& recording, std::uint32_t part);
/// While it is being made.
[[nodiscard]] std::string unfinished_part_path(const std::string& recording, std::uint32_t part);
struct PartName {
  std::string recording;  ///< "run.zscope"
  std::uint32_t part = 0;
};
/// The reverse of part_path(); nothing where a file is not called so.
[[nodiscard]] std::optional<PartName> part_name(const std::string& path);
/// The first part that stays when `newest` is begun.
[[nodiscard]] std::uint32_t first_kept(const Rotation& rotation, std::uint32_t newest) noexcept;

}  // namespace shardscope::store
