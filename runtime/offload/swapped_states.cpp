// Optimizer states on NVMe (docs/zero.md O4): every tile has one contiguous range of the swap file for master
// weights, momentum and variance, and passes through a slot of host memory.
//
// [Note: order of reads and writes]
// All transfers run in order on the nvme stream, so a read into a slot that was written out before needs no
// event. Pipelining changes only the order in which they are queued. With pipeline_read the read of tile t+1
// is queued before the update of tile t, with pipeline_write the write of tile t after the read of tile t+1;
// so both overlap an update. Without them the update waits for its read and the next tile for the write.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "runtime/execution/event_pool.h"
#include "runtime/offload/state_storage.h"
#include "runtime/offload/swap_space.h"

namespace shardscope::offload {
namespace {

namespace ev = shardscope::instrumentation;

class SwappedStates final : public StateStorage {
 public:
  SwappedStates(device::Device& device, device::Arena& pool, const std::vector<plan::Range>& sub_groups,
                std::uint32_t first_group, const plan::ZeroConfig& zero)
      : device_(device),
        events_(device),
        pipeline_read_(zero.offload_optimizer.pipeline_read),
        pipeline_write_(zero.offload_optimizer.pipeline_write),
        swap_(plan::plan_optimizer_swap(zero.offload_optimizer, sub_groups, first_group)),
        tiles_(plan::make_update_tiles(sub_groups, first_group, swap_.tile_elems)),
        space_(device, zero.offload_optimizer.nvme_path, zero.aio),
        slots_(swap_.slots) {
    // A slot holds the longest tile: master, momentum, variance, each at a whole block.
    const std::size_t state = io_round(static_cast<std::size_t>(swap_.tile_elems) * sizeof(float));
    for (Slot& slot : slots_) {
      slot.buffer = IoBuffer(pool, kStates * state, {ev::MemoryCategory::swap_buffer}, device.nvme());
      slot.read = device.make_event();
      slot.closed = device.make_event();
    }
    for (const plan::UpdateTile& tile : tiles_) {
      Places places;
      for (std::size_t i = 0; i < kStates; ++i)
        places[i] = space_.reserve(state_bytes(tile), {kCategories[i]});
      places_.push_back(std::move(places));
    }
  }

  [[nodiscard]] const std::vector<plan::UpdateTile>& tiles() const noexcept override { return tiles_; }

  // Returned pointers are for work on the worker stream, which waits for the read. Pipelining has two slots
  // (plan_optimizer_swap), so the slot of tile + 1 is not this one.
  [[nodiscard]] TileStates open(std::size_t tile) override {
    Slot& slot = slot_of(tile);
    if (slot.tile != tile) {
      // The write of the slot's old states must be queued before new ones are read into it.
      if (written_ && &slot_of(*written_) == &slot) flush();
      // Without pipeline_read the read begins when the worker has finished all queued work.
      if (!pipeline_read_) events_.order(device_.worker(), device_.nvme());
      read(tile);
    }
    flush();
    device_.worker().wait(*slot.read);
    if (pipeline_read_ && tile + 1 < tiles_.size()) read(tile + 1);
    // By the length of this tile, not of the longest one, as in parts_of(): the three states are adjacent, in
    // the file too, so that they are one part.
    std::byte* base = slot.buffer.data();
    const std::size_t state = state_bytes(tiles_[tile]);
    return {reinterpret_cast<float*>(base), reinterpret_cast<float*>(base + state),
            reinterpret_cast<float*>(base + 2 * state)};
  }

  void close(std::size_t tile, TileUse use) override {
    Slot& slot = slot_of(tile);
    events_.order(device_.worker(), device_.copy());  // all uses of the slot are queued on both
    if (use == TileUse::changed) {
      // At most one write is deferred: open() and finish() queue it. Its data is complete when `closed` is
      // reached, after the update (worker) and the copies of parameters (copy).
      written_.emplace(tile);
      device_.copy().record(*slot.closed);
      if (!pipeline_write_) {
        flush();
        // The next update begins after the write.
        events_.order(device_.nvme(), device_.worker());
      }
    } else {
      // Nothing to write; a later read into this slot waits for the last use.
      events_.order(device_.copy(), device_.nvme());
    }
  }

  // The next step reads every tile again.
  void finish() override {
    flush();
    for (Slot& slot : slots_) slot.tile.reset();
  }

  [[nodiscard]] std::string describe_swap() const override {
    return "optimizer states on NVMe, " + std::to_string(tiles_.size()) + " tiles through " +
           std::to_string(slots_.size()) + " slots: " + space_.describe();
  }

 private:
  static constexpr std::size_t kStates = 3;
  static constexpr std::array<ev::MemoryCategory, kStates> kCategories{
      ev::MemoryCategory::master_weight, ev::MemoryCategory::momentum, ev::MemoryCategory::variance};
  /// A tile's ranges of the swap file, by state: [tile elements] fp32 each, rounded up to whole blocks.
  using Places = std::array<device::Buffer, kStates>;
  struct Slot {
    IoBuffer buffer;  ///< [3, elements of its tile] fp32: master, momentum, variance, each in whole blocks
    std::optional<std::size_t> tile;        ///< whose states it contains or is reading
    std::unique_ptr<device::Event> read;    ///< recorded on the nvme stream after the read of the tile
    std::unique_ptr<device::Event> closed;  ///< recorded on the copy stream when the tile may be written
  };

  [[nodiscard]] static std::size_t state_bytes(const plan::UpdateTile& tile) noexcept {
    return io_round(static_cast<std::size_t>(tile.range.size()) * sizeof(float));
  }
  // Tiles use the slots round-robin, so consecutive tiles are in different slots if there are two or more.
  [[nodiscard]] Slot& slot_of(std::size_t tile) noexcept { return slots_[tile % slots_.size()]; }

  /// Ranges adjacent in memory and in the file become one part.
  [[nodiscard]] std::vector<IoPart> parts_of(std::size_t tile) {
    std::vector<IoPart> parts;
    const std::size_t bytes = state_bytes(tiles_[tile]);
    std::byte* data = slot_of(tile).buffer.data();
    for (std::size_t i = 0; i < kStates; ++i) {
      const IoPart part{SwapSpace::position(places_[tile][i]), data + i * bytes, bytes};
      if (!parts.empty() &&
          parts.back().offset + static_cast<std::int64_t>(parts.back().bytes) == part.offset) {
        parts.back().bytes += bytes;
      } else {
        parts.push_back(part);
      }
    }
    return parts;
  }
  [[nodiscard]] std::int64_t slots_in_use() const noexcept {
    return std::count_if(slots_.begin(), slots_.end(),
                         [](const Slot& slot) { return slot.tile.has_value(); });
  }

  void read(std::size_t tile) {
    Slot& slot = slot_of(tile);
    slot.tile = tile;
    space_.queue(IoDirection::read, parts_of(tile), {ev::kNoId, tiles_[tile].group}, slots_in_use());
    device_.nvme().record(*slot.read);
  }

  /// Queues the deferred write.
  void flush() {
    if (!written_) return;
    const std::size_t tile = *std::exchange(written_, std::nullopt);
    Slot& slot = slot_of(tile);
    device_.nvme().wait(*slot.closed);
    space_.queue(IoDirection::write, parts_of(tile), {ev::kNoId, tiles_[tile].group}, slots_in_use());
  }

  device::Device& device_;
  execution::EventPool events_;
  const bool pipeline_read_, pipeline_write_;
  const plan::OptimizerSwap swap_;
  const std::vector<plan::UpdateTile> tiles_;
  SwapSpace space_;
  std::vector<Slot> slots_;
  std::vector<Places> places_;          ///< by tile
  std::optional<std::size_t> written_;  ///< tile whose write is deferred
};

}  // namespace

std::unique_ptr<StateStorage> make_swapped_states(device::Device& device, device::Arena& pool,
                                                  const std::vector<plan::Range>& sub_groups,
                                                  std::uint32_t first_group, const plan::ZeroConfig& zero) {
  return std::make_unique<SwappedStates>(device, pool, sub_groups, first_group, zero);
}

}  // namespace shardscope::offload
