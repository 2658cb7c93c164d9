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
  /// Of the format kineto: "0,4-7" and "10-20"; empty: all ranks, the steps that `summary` measures.
  std::string ranks, steps;
};

int export_recording(const store::Store& store, const ExportChoice& choice);

}  // namespace shardscope::cli
