// Finds and reads the dumps of PyTorch's Flight Recorder: files, or folders of them.
#pragma once

#include <string>
#include <vector>

#include "app/analysis/torch_flight.h"

namespace shardscope::cli {

struct TorchDumps {
  analysis::FlightTexts texts;
  std::vector<analysis::FlightDump> dumps;  ///< ascending by rank, each once
  std::vector<std::string> problems;        ///< for files that could not be read, as text
};

/// The rank is the number at the end of a file's name, as PyTorch writes it (nccl_trace_rank_0; before .json,
/// .pkl or .pickle). From a folder and its subfolders, files with such names. Throws UserError where nothing
/// can be read.
[[nodiscard]] TorchDumps read_torch_dumps(const std::vector<std::string>& paths);

}  // namespace shardscope::cli
