// The user's notes as a table of the report.
#include <fmt/format.h>

#include <algorithm>

#include "app/export/html_parts.h"
#include "app/store/span_time.h"

namespace shardscope::exporter {

namespace {

std::string length_of(const store::Store& store, const Note& note) {
  if (!note.is_range()) return {};
  const store::SpanTime time = store::time_between(store, note.begin_ns, note.end_ns);
  return time_text(time.running_ns) +
         (time.paused_ns > 0 ? fmt::format(" (+ {} paused, not counted)", time_text(time.paused_ns)) : "");
}

}  // namespace

std::string notes_html(const store::Store& store, const std::vector<Note>& notes) {
  if (notes.empty()) return {};
  const bool ranks = std::ranges::any_of(notes, [](const Note& note) { return note.rank.has_value(); });
  std::string out = "<table><tr><th class=n>time<th class=n>length" +
                    std::string(ranks ? "<th class=n>rank" : "") + "<th>note</tr>";
  for (const Note& note : notes) {
    out += fmt::format("<tr><td class=n>{}<td class=n>{}", time_text(note.begin_ns), length_of(store, note));
    if (ranks) out += "<td class=n>" + (note.rank ? std::to_string(*note.rank) : std::string());
    out += "<td>" + (note.text.empty() ? "bookmark" : escape_html(note.text)) + "</tr>";
  }
  return folded(scrolling(out + "</table>", "notes"), notes.size(), "All notes");
}

}  // namespace shardscope::exporter
