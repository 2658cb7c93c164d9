// Writes JSON text from arbitrary values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardscope::exporter {

/// Appends `text` as a JSON string with its quotes. Control characters and quotes are escaped; bytes that
/// are not UTF-8 become U+FFFD, so that the result is always valid.
void append_json(std::string& out, std::string_view text);
/// Appends a finite number; false (and nothing) for NaN and infinities, which JSON does not have.
bool append_json(std::string& out, double value);
/// Appends nanoseconds as microseconds, exactly: 1234567 -> 1234.567.
void append_us(std::string& out, std::int64_t ns);

}  // namespace shardscope::exporter
