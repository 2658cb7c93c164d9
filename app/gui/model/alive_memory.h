// Allocations alive at a time, by category and owner, with their age and reason; and the difference between
// two times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/palette.h"
#include "app/gui/model/session.h"

namespace shardscope::gui {

/// Live allocations of one category and owner.
struct AliveBytes {
  ev::MemoryCategory category{};
  std::uint32_t owner = ev::kNoId;  ///< a module or parameter id, see owner_kind()
  std::int64_t bytes = 0;
  std::int64_t since_ns = 0;  ///< begin of the interval during which `bytes` has been above 0
};

/// Table that an owner id indexes: modules for activations, inputs and temporary memory, parameters for all
/// other categories.
enum class OwnerKind : std::uint8_t { param, module };
[[nodiscard]] OwnerKind owner_kind(ev::MemoryCategory category) noexcept;

struct AliveMemory {
  std::int64_t at_ns = 0;
  std::vector<AliveBytes> parts;  ///< by category in stacking order, then by size, largest first
  /// By category: bytes of the pool beyond `parts`. Not 0 where allocation events were lost, dropped or not
  /// recorded.
  store::CategoryBytes unexplained{};
  [[nodiscard]] std::int64_t total() const noexcept;
};
/// Replays all allocation events of a rank up to `at_ns`; linear in their number.
[[nodiscard]] AliveMemory alive_memory(const store::Store& store, std::uint32_t rank, ev::MemoryPool pool,
                                       std::int64_t at_ns);

/// A row of the tree: a category, its blocks of the model, their owners.
struct AliveNode {
  std::string label;
  ev::MemoryCategory category{};  ///< its own, or that of what it is inside of
  std::int64_t bytes = 0;
  std::int64_t before = 0;               ///< bytes at the earlier time; 0 outside of a difference
  std::optional<std::int64_t> since_ns;  ///< the earliest of its owners
  std::uint32_t owner = ev::kNoId;       ///< of a single owner: AliveBytes::owner
  std::string why;
  std::vector<AliveNode> children;
};
/// A node with a single child is merged with it: a block with one owner is shown as that owner.
[[nodiscard]] std::vector<AliveNode> alive_tree(const Session& run, std::uint32_t rank,
                                                const AliveMemory& alive);
/// The same by owner first: blocks of the model, in each the categories, in these their owners. What has no
/// owner comes as its category.
[[nodiscard]] std::vector<AliveNode> alive_by_owner(const Session& run, std::uint32_t rank,
                                                    const AliveMemory& alive);
/// Changes from `before` to `after`, largest first; unchanged owners are left out.
[[nodiscard]] std::vector<AliveNode> alive_difference(const Session& run, std::uint32_t rank,
                                                      const AliveMemory& before, const AliveMemory& after);

}  // namespace shardscope::gui
