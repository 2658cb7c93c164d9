// Which existing files a new recording replaces, and removal of recordings.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::store {

/// Whether make_room() also removes the parts of this name if `path` is not a link.
enum class Parts : std::uint8_t { left_alone, of_this_name };
/// Removes the recording at `path`, as every program replaces its output; if `path` is a link, all parts of
/// that name too. Removes nothing and throws std::runtime_error (path, reason, what to do) if one of these
/// files is neither empty nor a recording, or if a recorder writes it.
void make_room(const std::string& path, Parts parts);
/// Removes the file of a recording and its log. Missing files are ignored.
void remove_recording(const std::string& path) noexcept;
/// The same for a recording in parts: removes the link, all parts, and any unfinished part.
void remove_all_parts(const std::string& path) noexcept;

}  // namespace shardscope::store
