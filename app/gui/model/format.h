// Numbers as people read them: three or four digits and a unit. A value that is missing is "–", never 0.
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
/// A time since the run's first event, precise enough to tell apart points `resolution_ns` away.
[[nodiscard]] std::string timestamp(std::int64_t ns, std::int64_t resolution_ns);
[[nodiscard]] std::string shape_text(const std::vector<std::int64_t>& shape);  ///< "[2304, 768]"

/// Without its first component, and without numbers that would then stand in front: "h.3.attn" of
/// "transformer.h.3.attn", "attn" of "h.3.attn": beside "h.3.mlp", "3.attn" would look like another kind of
/// name. A path that ends with the number keeps it: "3" of "h.3". Of one component: itself.
[[nodiscard]] std::string_view shorter_path(std::string_view path);

/// A dotted path shortened from the left (shorter_path()) until it has at most `max_chars`: "h.3.attn" of
/// "transformer.h.3.attn"; at least the last component is kept.
[[nodiscard]] std::string_view short_path(std::string_view path, std::size_t max_chars);

/// Without the model's own name in front: "h.3.attn.weight" of "transformer.h.3.attn.weight". Paths of one or
/// two components stay whole, and those whose first names a list: "h.1.qkv". Of names in a list, which must
/// stay apart, NameCells knows more than one path does.
[[nodiscard]] std::string_view tail_path(std::string_view path);

}  // namespace shardscope::gui
