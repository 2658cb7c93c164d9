// The plans requested of host_cuda's cuDNN.
#pragma once

#include <string>
#include <vector>

namespace shardscope::host_cuda {

/// The operations of each graph that was planned, in order, one a line: what, compute type, tensors. Tensors
/// are numbered in the order in which operations name them and described where they are first named.
[[nodiscard]] std::vector<std::vector<std::string>> planned_operations();

}  // namespace shardscope::host_cuda
