// What descriptions are built from: fields with their units, and the times of a span.
#pragma once

#include <cstdint>
#include <string>

#include "app/gui/model/details.h"
#include "app/gui/model/format.h"
#include "app/store/span_time.h"

namespace shardscope::gui {

void add(Details& out, std::string label, const Quantity& value, std::string formula = {});
void add(Details& out, std::string label, std::string value, std::string formula = {});

/// "duration", or "so far" of what goes on, "up to the last event" of what never ended, and "paused" where
/// there was a pause.
void add_time(const store::SpanTime& time, const char* formula, Details& out);
/// The same for a span of `rank`, with its begin and why it has not ended.
void add_span_times(const AppState& app, std::uint32_t rank, const store::Span& span, Details& out);

/// What it has, whether or not it ran: type, what it lies in, its parameters and those of what lies in it.
void describe_module(const AppState& app, std::uint32_t module, Details& out);
/// What there is to say of a module that was chosen by its name, not as a span: how long it ran in the step
/// that is looked at, and the parameters with their status on `rank`.
void describe_unplaced_module(const AppState& app, std::uint32_t module, std::uint32_t rank, Details& out);

[[nodiscard]] Details describe_rank(const AppState& app, std::uint32_t rank);
[[nodiscard]] Details describe_step(const AppState& app, std::uint32_t step);

}  // namespace shardscope::gui
