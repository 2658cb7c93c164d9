// The machines that a run is simulated on, as data: assets/hardware/*.json, described in docs/simulate.md.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::simulate {

struct LinkSpeed {
  double gb_per_s = 0;    ///< 10^9 bytes per second, what one rank reaches (busbw convention)
  double latency_us = 0;  ///< of one hop; a collective takes ceil(log2(ranks)) of them
};

/// All rates are those of one rank unless said otherwise.
struct Hardware {
  std::string name;
  std::string description;
  std::uint32_t ranks_per_node = 8;
  double memory_gib = 0;         ///< of the device; 0: no limit
  double f32_tflops = 0;         ///< peak of matrix products, 10^12 operations per second
  double f16_tflops = 0;         ///< bf16 and fp16
  double matrix_efficiency = 1;  ///< part of the peak that a matrix product reaches
  /// Parts of the device that compute on their own (an NVIDIA GPU's streaming multiprocessors): a product of
  /// fewer pieces leaves some idle, see CostModel. 0: every product keeps all of it busy.
  std::uint32_t processors = 0;
  /// Depth of a product that reaches half of matrix_efficiency: each piece begins and ends, however deep it
  /// is. 0: none.
  double matrix_half_depth = 0;
  double attention_efficiency = 0;  ///< that the products of a fused attention reach; 0: as matrix products
  double memory_gb_per_s = 0;       ///< device memory, peak
  double memory_efficiency = 1;     ///< part of it that a kernel reaches
  double kernel_us = 0;             ///< added to every kernel: start and end
  double launch_us = 0;             ///< host time to queue one kernel, copy or collective
  /// Part of the rate of kernels that collectives moving beside them take: they use its processors and
  /// memory.
  double overlap_slowdown = 0;
  LinkSpeed inside;                 ///< among ranks of a node
  LinkSpeed between;                ///< among nodes: gb_per_s is a node's, all its links together
  LinkSpeed host;                   ///< between the device and host memory
  LinkSpeed nvme;                   ///< between host memory and local disks; gb_per_s 0: there are none
  double host_memory_gb_per_s = 0;  ///< of the CPU's work for this rank (offloaded optimizer)
};

/// Reads the text of a hardware file. `file` is named in messages. Throws config::ConfigError: file, line,
/// key, value, what to do.
[[nodiscard]] Hardware parse_hardware(const std::string& json_text, const std::string& file);
/// A file, or the name of one in `folder` (NAME.json). Throws std::invalid_argument listing the known names.
[[nodiscard]] Hardware load_hardware(const std::string& name_or_file, const std::string& folder);

}  // namespace shardscope::simulate
