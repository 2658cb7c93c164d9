// Writes the given steps of one rank in the format of PyTorch's profiler.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "app/analysis/spans.h"
#include "app/store/store.h"

namespace shardscope::exporter {

/// Throws std::runtime_error if `out` fails.
void write_kineto_steps(std::ostream& out, const store::Store& store, std::uint32_t rank,
                        const std::vector<analysis::StepWindow>& steps);

}  // namespace shardscope::exporter
