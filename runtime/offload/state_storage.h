// Storage of master weights, momentum and variance of offloaded sub-groups: always in host memory, or on NVMe
// and in host buffers one tile at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/optim/optimizer_state.h"
#include "runtime/plan/offload.h"

namespace shardscope::offload {

/// fp32, the elements of one tile each.
struct TileStates {
  float* master = nullptr;
  float* momentum = nullptr;
  float* variance = nullptr;
};

/// Whether a tile's states were changed while they were open.
enum class TileUse : std::uint8_t { read, changed };

class StateStorage {
 public:
  StateStorage() = default;
  virtual ~StateStorage() = default;
  StateStorage(const StateStorage&) = delete;
  StateStorage& operator=(const StateStorage&) = delete;

  /// Ascending; together the offloaded elements.
  [[nodiscard]] virtual const std::vector<plan::UpdateTile>& tiles() const noexcept = 0;
  /// The states of tile number `tile`, in host memory for work queued on the worker stream from now on.
  [[nodiscard]] virtual TileStates open(std::size_t tile) = 0;
  /// Call when all work that uses the tile is queued on the worker and copy streams.
  virtual void close(std::size_t tile, TileUse use) = 0;
  /// After the last tile of a step.
  virtual void finish() = 0;
  /// OptimizerState::describe_swap.
  [[nodiscard]] virtual std::string describe_swap() const { return {}; }
};

/// Host memory (pinned or pageable), initially zero; the worker stream owns it. One tile per sub-group.
[[nodiscard]] std::unique_ptr<StateStorage> make_resident_states(device::Device& device, device::Arena& pool,
                                                                 const std::vector<plan::Range>& sub_groups,
                                                                 std::uint32_t first_group);

/// A swap file under offload_optimizer.nvme_path, and slots in `pool` through which tiles pass. Throws
/// BackendError if the file cannot be created or the disk is too small.
[[nodiscard]] std::unique_ptr<StateStorage> make_swapped_states(device::Device& device, device::Arena& pool,
                                                                const std::vector<plan::Range>& sub_groups,
                                                                std::uint32_t first_group,
                                                                const plan::ZeroConfig& zero);

}  // namespace shardscope::offload
