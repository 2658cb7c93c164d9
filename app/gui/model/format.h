// Formatted numbers: three or four digits and a unit. A missing value is "–", never 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/analysis/quantity_text.h"

namespace shardscope::gui {

using analysis::bytes;
using analysis::duration;
using analysis::Quantity;

inline constexpr const char* kMissing = "\u2013";

[[nodiscard]] Quantity milliseconds(std::optional<double> ms);
[[nodiscard]] Quantity count(double value, const char* unit = "");  ///< "14.2k", "1.24M"
[[nodiscard]] Quantity percent(std::optional<double> value);
[[nodiscard]] Quantity bandwidth(std::optional<double> gb_per_s);  ///< GB = 1e9 bytes
[[nodiscard]] std::string grouped(std::int64_t value);             ///< "442 368", no-break spaces
[[nodiscard]] std::string decimal(double value, int digits);       ///< NaN: "–"
/// "0.0003", "2.718", "6.5e+04": at most this many significant digits. NaN: "–".
[[nodiscard]] std::string significant(double value, int digits);
/// A time since the run's first event, with digits that distinguish points `resolution_ns` apart.
[[nodiscard]] std::string timestamp(std::int64_t ns, std::int64_t resolution_ns);
[[nodiscard]] std::string shape_text(const std::vector<std::int64_t>& shape);  ///< "[2304, 768]"

/// Without the first component, and without list indexes that would then come first: "h.3.attn" of
/// "transformer.h.3.attn", "attn" of "h.3.attn" ("3.attn" beside "h.3.mlp" would look like another kind of
/// name). A final index is kept: "3" of "h.3". A single component is returned unchanged.
[[nodiscard]] std::string_view shorter_path(std::string_view path);

/// A dotted path shortened from the left by shorter_path() to at most `max_chars`: "h.3.attn" of
/// "transformer.h.3.attn"; keeps at least the last component.
[[nodiscard]] std::string_view short_path(std::string_view path, std::size_t max_chars);

/// Without the model's own name: "h.3.attn.weight" of "transformer.h.3.attn.weight". Unchanged: paths of one
/// or two components, and paths that begin with a list ("h.1.qkv"). To keep the names of a model distinct use
/// NameCells, which sees all of them.
[[nodiscard]] std::string_view tail_path(std::string_view path);

}  // namespace shardscope::gui
