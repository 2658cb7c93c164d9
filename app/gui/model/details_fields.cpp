#include "app/gui/model/details_fields.h"

#include <utility>

namespace shardscope::gui {

void add(Details& out, std::string label, const Quantity& value, std::string formula) {
  out.fields.push_back({std::move(label), value.number, value.unit, std::move(formula)});
}
void add(Details& out, std::string label, std::string value, std::string formula) {
  out.fields.push_back({std::move(label), std::move(value), {}, std::move(formula)});
}

void add_count_left_out(std::size_t count, std::size_t shown, std::vector<HistoryRow>& rows) {
  if (count > shown)
    rows.push_back(
        {std::nullopt, "... and " + grouped(static_cast<std::int64_t>(count - shown)) + " more", ""});
}

void add_time(const store::SpanTime& time, const char* formula, Details& out) {
  add(out,
      time.ended           ? "duration"
      : time.still_running ? "so far"
                           : "up to the last event",
      duration(time.running_ns), formula);
  if (time.paused_ns > 0)
    add(out, "paused", duration(time.paused_ns), "paused by the user; not in durations");
}

void add_span_times(const AppState& app, std::uint32_t rank, const store::Span& span, Details& out) {
  const store::SpanTime time = store::time_of(app.store(), rank, span);
  add_time(time, time.paused_ns > 0 ? "end - begin, pauses cut out" : "", out);
  if (!time.ended) add(out, "not ended", store::why_open(app.store(), rank));
  add(out, "begin", timestamp(span.begin_ns, 1000));
}

}  // namespace shardscope::gui
