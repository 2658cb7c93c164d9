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
  /// "0,4-7" and "10-20"; empty: all ranks and steps; kineto: the steps measured by `summary`.
  std::string ranks, steps;
  /// Times of the run ("1.25s"), for kineto and otlp the steps that overlap them; a level of detail, not
  /// for kineto.
  std::string from, to, detail;
};

/// `recording`: the file from which `store` was read.
/// `problems`: found on opening. They become messages of the export (otlp: an attribute of its
/// resources), as does a note where it is a part of the recording.
int export_recording(store::Store& store, const std::string& recording,
                     const std::vector<std::string>& problems, const ExportChoice& choice);

/// "writing run.pftrace  42 %": progress on a terminal. `share`: from 0 to 1.
[[nodiscard]] std::string export_progress_line(const std::string& out, double share);

}  // namespace shardscope::cli
