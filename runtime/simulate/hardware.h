// The simulated hardware, as data: assets/hardware/*.json, described in docs/simulate.md.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::simulate {

struct LinkSpeed {
  double gb_per_s = 0;    ///< 10^9 bytes per second and rank (busbw convention)
  double latency_us = 0;  ///< of one hop; a collective takes ceil(log2(ranks)) of them
  /// Of each step of a ring over this link. A collective of n ranks on m nodes has n - 1 steps, m - 1 of them
  /// between nodes. 0: none.
  double ring_step_us = 0;
};

/// All rates are per rank unless noted otherwise.
struct Hardware {
  std::string name;
  std::string description;
  std::uint32_t ranks_per_node = 8;
  double memory_gib = 0;         ///< of the device; 0: no limit
  double f32_tflops = 0;         ///< peak of matrix products, 10^12 operations per second
  double f16_tflops = 0;         ///< bf16 and fp16
  double matrix_efficiency = 1;  ///< part of the peak that a matrix product reaches
  /// Independent processors of the device (an NVIDIA GPU's streaming multiprocessors): a matrix product of
  /// fewer tiles leaves some idle, see CostModel. 0: every product uses all of them.
  std::uint32_t processors = 0;
  /// Depth of a product that reaches half of matrix_efficiency: start and end of a tile cost the same at any
  /// depth. 0: no such cost.
  double matrix_half_depth = 0;
  double attention_efficiency = 0;  ///< part of the peak in a fused attention; 0: as matrix products
  double memory_gb_per_s = 0;       ///< device memory, peak
  double memory_efficiency = 1;     ///< part of it that a kernel reaches
  double kernel_us = 0;             ///< added to every kernel: start and end
  double launch_us = 0;             ///< host time to queue one kernel, copy or collective
  /// Part of the rate of kernels that is lost to concurrent collectives, which use processors and memory
  /// bandwidth.
  double overlap_slowdown = 0;
  LinkSpeed inside;                 ///< among ranks of a node
  LinkSpeed between;                ///< among nodes: gb_per_s per node, all its links together
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
