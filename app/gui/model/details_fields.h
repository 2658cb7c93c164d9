// Helpers that build Details: fields with units, and the times of a span.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "app/gui/model/details.h"
#include "app/gui/model/format.h"
#include "app/store/span_time.h"

namespace shardscope::gui {

void add(Details& out, std::string label, const Quantity& value, std::string formula = {});
void add(Details& out, std::string label, std::string value, std::string formula = {});
/// "... and 12 more" where a list of `count` shows `shown` at most.
void add_count_left_out(std::size_t count, std::size_t shown, std::vector<HistoryRow>& rows);

/// Adds "duration", or "so far" for a running span, or "up to the last event" for one without an end; and
/// "paused" where it contains a pause.
void add_time(const store::SpanTime& time, const char* formula, Details& out);
/// Adds these times for a span of `rank`, its begin, and why it has not ended.
void add_span_times(const AppState& app, std::uint32_t rank, const store::Span& span, Details& out);

/// Static facts of a module: type, enclosing module, its parameters and those of nested modules.
void describe_module(const AppState& app, std::uint32_t module, Details& out);
/// For a module selected by name, not as a span: its time in the current step, and its parameters with their
/// state on `rank`.
void describe_unplaced_module(const AppState& app, std::uint32_t module, std::uint32_t rank, Details& out);

[[nodiscard]] Details describe_rank(const AppState& app, std::uint32_t rank);
[[nodiscard]] Details describe_step(const AppState& app, std::uint32_t step);

}  // namespace shardscope::gui
