#include "kernels/ops.h"
#include "runtime/offload/state_storage.h"

namespace shardscope::offload {
namespace {

using instrumentation::MemoryCategory;

// Longer than any sub-group: one tile each.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 48;

class ResidentStates final : public StateStorage {
 public:
  ResidentStates(device::Device& device, device::Arena& pool, const std::vector<plan::Range>& sub_groups,
                 std::uint32_t first_group)
      : tiles_(plan::make_update_tiles(sub_groups, first_group, kNoLimit)),
        first_(tiles_.front().range.begin),
        elems_(tiles_.back().range.end - first_),
        master_(make_zeroed(device, pool, MemoryCategory::master_weight)),
        momentum_(make_zeroed(device, pool, MemoryCategory::momentum)),
        variance_(make_zeroed(device, pool, MemoryCategory::variance)) {}

  [[nodiscard]] const std::vector<plan::UpdateTile>& tiles() const noexcept override { return tiles_; }
  // Nothing to wait for: the states are always in host memory.
  [[nodiscard]] TileStates open(std::size_t tile) override {
    const std::int64_t at = tiles_[tile].range.begin - first_;
    return {static_cast<float*>(master_.data()) + at, static_cast<float*>(momentum_.data()) + at,
            static_cast<float*>(variance_.data()) + at};
  }
  void close(std::size_t, TileUse) override {}
  void finish() override {}

 private:
  [[nodiscard]] device::Buffer make_zeroed(device::Device& device, device::Arena& pool,
                                           MemoryCategory category) const {
    device::Buffer buffer =
        pool.allocate(static_cast<std::size_t>(elems_) * sizeof(float), {category}, device.worker());
    device.worker().run([data = buffer.data(), bytes = buffer.bytes()](const kernels::Exec& exec) {
      kernels::fill_zero(exec, data, bytes);
    });
    return buffer;
  }

  const std::vector<plan::UpdateTile> tiles_;
  const std::int64_t first_, elems_;
  device::Buffer master_, momentum_, variance_;  ///< [elems_] fp32 in host memory, of the worker stream
};

}  // namespace

std::unique_ptr<StateStorage> make_resident_states(device::Device& device, device::Arena& pool,
                                                   const std::vector<plan::Range>& sub_groups,
                                                   std::uint32_t first_group) {
  return std::make_unique<ResidentStates>(device, pool, sub_groups, first_group);
}

}  // namespace shardscope::offload
