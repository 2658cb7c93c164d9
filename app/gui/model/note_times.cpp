#include "app/gui/model/note_times.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "app/gui/model/places.h"

namespace shardscope::gui {
namespace {

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t") == std::string_view::npos; }

}  // namespace

std::string exact_time(std::int64_t ns) {
  struct Unit {
    const char* name;
    std::int64_t ns;
    int digits;
  };
  static constexpr std::array kUnits{Unit{"s", 1'000'000'000, 9}, Unit{"ms", 1'000'000, 6},
                                     Unit{"us", 1'000, 3}};
  for (const Unit& unit : kUnits) {
    if (std::llabs(ns) < unit.ns) continue;
    char text[48];
    std::snprintf(text, sizeof text, "%s%lld.%0*lld", ns < 0 ? "-" : "",
                  static_cast<long long>(std::llabs(ns / unit.ns)), unit.digits,
                  static_cast<long long>(std::llabs(ns % unit.ns)));
    std::string out = text;
    out.erase(out.find_last_not_of('0') + 1);
    if (out.back() == '.') out.pop_back();
    return out + " " + unit.name;
  }
  return std::to_string(ns) + " ns";
}

NoteTimes times_of(const exporter::Note& note) {
  return {exact_time(note.begin_ns), note.is_range() ? exact_time(note.end_ns) : std::string()};
}

std::string set_times(exporter::Note& note, const NoteTimes& times, std::int64_t run_ns) {
  if (times == times_of(note)) return {};  // also of a note that was outside of the run before
  const std::optional<std::int64_t> begin = time_from_text(times.begin);
  if (!begin) return "begin: write a time with its unit, for example 12.5 ms";
  std::optional<std::int64_t> end = begin;
  if (!is_blank(times.end)) {
    end = time_from_text(times.end);
    if (!end) return "end: write a time with its unit, or nothing for a point in time";
    if (*end < *begin) return "the end is before the begin";
  }
  if (*begin < 0 || *end > run_ns) return "outside of the run, which is from 0 to " + exact_time(run_ns);
  note.begin_ns = *begin;
  note.end_ns = *end;
  return {};
}

}  // namespace shardscope::gui
