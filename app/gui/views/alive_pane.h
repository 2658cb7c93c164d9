// Part of Memory: allocations alive at the peak or at a time, or the change between two times.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/gui/model/alive_memory.h"
#include "app/gui/views/alive_table.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class AlivePane {
 public:
  enum class When : std::uint8_t { peak, now, difference };
  /// What the first level of the tree is; a difference is by category.
  enum class First : std::uint8_t { category, owner };
  First first = First::category;
  /// Draws the current rank and pool. `peak`: of that pool.
  void draw(Context& ctx, Rect room, const store::MemorySample& peak, When when);
  /// Begin time of the difference; nullopt before one was drawn.
  [[nodiscard]] std::optional<std::int64_t> from_ns() const noexcept { return from_ns_; }

 private:
  /// Key of nodes_.
  struct Of {
    std::uint64_t run = 0;  ///< Session::number()
    std::uint32_t rank = 0;
    ev::MemoryPool pool{};
    When when{};
    First first{};
    std::int64_t at_ns = 0, before_ns = 0;
    friend bool operator==(const Of&, const Of&) = default;
  };
  void read(const AppState& app, const Of& of);

  std::optional<std::int64_t> from_ns_;
  std::optional<Of> of_;
  std::vector<AliveNode> nodes_;
  AliveTable table_;
};

}  // namespace shardscope::gui
