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
  /// For the formats kineto and otlp: "0,4-7" and "10-20"; empty: all ranks; kineto: the steps that `summary`
  /// measures, otlp: all.
  std::string ranks, steps;
};

/// `recording`: the file that `store` was read from.
int export_recording(const store::Store& store, const std::string& recording, const ExportChoice& choice);

}  // namespace shardscope::cli
