// What held memory at a time: every allocation that was not freed yet, by category and owner, since when and
// why; and the difference of two times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/palette.h"
#include "app/gui/model/session.h"

namespace shardscope::gui {

/// Allocations of one category and owner that are alive.
struct AliveBytes {
  ev::MemoryCategory category{};
  std::uint32_t owner = ev::kNoId;  ///< owner_kind() says of what
  std::int64_t bytes = 0;
  std::int64_t since_ns = 0;  ///< the first allocation since there was none
};

/// Table that the owner's id is of: activations, inputs and temporary memory are of modules, all else of
/// parameters.
enum class OwnerKind : std::uint8_t { param, module };
[[nodiscard]] OwnerKind owner_kind(ev::MemoryCategory category) noexcept;

struct AliveMemory {
  std::int64_t at_ns = 0;
  std::vector<AliveBytes> parts;  ///< by category in stacking order, largest owner first
  /// By category: what the pool held beyond the parts. Not 0 where allocations were lost, dropped or not
  /// recorded.
  store::CategoryBytes unexplained{};
  [[nodiscard]] std::int64_t total() const noexcept;
};
/// Plays the allocations of a rank up to `at_ns` again: reads all of them.
[[nodiscard]] AliveMemory alive_memory(const store::Store& store, std::uint32_t rank, ev::MemoryPool pool,
                                       std::int64_t at_ns);

/// A row of the tree: category, below it blocks of the model, below these owners.
struct AliveNode {
  std::string label;
  Meaning meaning = Meaning::neutral;
  std::int64_t bytes = 0;
  std::int64_t before = 0;               ///< at the other time, in a difference
  std::optional<std::int64_t> since_ns;  ///< of the oldest below it
  std::string why;
  std::vector<AliveNode> children;
};
/// Children of one are left out: a block with one owner is that owner.
[[nodiscard]] std::vector<AliveNode> alive_tree(const Session& run, std::uint32_t rank,
                                                const AliveMemory& alive);
/// What changed from `before` to `after`; what is the same is left out. Largest change first.
[[nodiscard]] std::vector<AliveNode> alive_difference(const Session& run, std::uint32_t rank,
                                                      const AliveMemory& before, const AliveMemory& after);

}  // namespace shardscope::gui
