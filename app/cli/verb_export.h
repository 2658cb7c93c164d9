// The verb `export`: its formats and options, and the export itself.
#pragma once

#include <string>
#include <vector>

#include "app/store/store.h"

namespace shardscope::cli {

/// Formats by name, the default first.
[[nodiscard]] const std::vector<std::string>& export_formats();

struct ExportChoice {
  std::string format = "chrome", out;
  /// "0,4-7" and "10-20"; empty: all ranks and steps; kineto: the steps that `summary` measures.
  std::string ranks, steps;
  /// Times of the run ("1.25s"), of kineto and otlp for the steps that overlap them; a level of detail, not
  /// of kineto.
  std::string from, to, detail;
};

/// `recording`: the file that `store` was read from.
/// `problems`: found when it was opened. They become messages of the export (otlp: an attribute of its
/// resources), as does that it is of a part.
int export_recording(store::Store& store, const std::string& recording,
                     const std::vector<std::string>& problems, const ExportChoice& choice);

/// "writing run.pftrace  42 %": what a terminal shows meanwhile. `share`: from 0 to 1.
[[nodiscard]] std::string export_progress_line(const std::string& out, double share);

}  // namespace shardscope::cli
