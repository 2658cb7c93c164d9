// The place of a recording among other files: what is replaced there, and what is left alone.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::store {

/// Whether parts of this name are in the way where `path` itself is no link to one.
enum class Parts : std::uint8_t { left_alone, of_this_name };
/// Removes what is at `path`, and with a link to a part all parts of that name, if they are recordings that
/// nobody writes; as every program replaces its output. Throws std::runtime_error: path, reason, what to do.
void make_room(const std::string& path, Parts parts);
/// Removes a recording's file, with its log. What is not there is fine.
void remove_recording(const std::string& path) noexcept;
/// Of a recording in parts as well: its link, its parts, and one that was being made.
void remove_all_parts(const std::string& path) noexcept;

}  // namespace shardscope::store
