// The time or range of a note as text that a user edits.
#pragma once

#include <cstdint>
#include <string>

#include "app/export/notes.h"

namespace shardscope::gui {

struct NoteTimes {
  std::string begin;
  std::string end;  ///< empty: a point in time
  friend bool operator==(const NoteTimes&, const NoteTimes&) = default;
};

/// All digits, in the largest unit below or at the time, without trailing zeros: "12.34567 ms", "1.5 s".
[[nodiscard]] std::string exact_time(std::int64_t ns);
[[nodiscard]] NoteTimes times_of(const exporter::Note& note);
/// Sets the note's time or range (time_from_text()), within a run of `run_ns`. Returns an error message,
/// empty on success; after an error the note is unchanged.
[[nodiscard]] std::string set_times(exporter::Note& note, const NoteTimes& times, std::int64_t run_ns);

}  // namespace shardscope::gui
