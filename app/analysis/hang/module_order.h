// Where ranks ran different modules, which is why they issued different collectives, or none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/store/store.h"

namespace shardscope::analysis {

/// A module that one rank began, with its position in a pass, as recorded.
struct ModuleVisit {
  std::uint32_t micro_step = 0;
  instrumentation::Pass pass{};
  std::uint32_t module = 0;
  bool begun = true;  ///< false: it has passed the gate before the module, and waits for its parameters
  [[nodiscard]] bool operator==(const ModuleVisit& other) const noexcept {
    return micro_step == other.micro_step && pass == other.pass && module == other.module;
  }
};

/// Modules of one rank since `from_ns`, in the order of their begins, from the first micro-step whose root
/// forward was recorded; without evaluations. The last one may not have begun. Empty if modules were not
/// recorded.
[[nodiscard]] std::vector<ModuleVisit> module_visits(const store::Store& store, std::uint32_t rank,
                                                     std::int64_t from_ns);

/// "In the forward of micro-step 20 rank 1 ran blk.2 where ranks 0, 2 ran blk.1.": the first position at
/// which `rank` began a different module from others, which began the same one. Empty if there is none: a
/// rank that is behind began the same modules so far. Also empty if events of the run are missing, since the
/// order would be incomplete, and for runs with pipelines, experts or several models, in which ranks differ
/// normally.
[[nodiscard]] std::string other_modules_text(const store::Store& store, std::uint32_t rank,
                                             std::int64_t from_ns);

/// The one rank, of three or more, that diverges from all others at the same position, where these agree.
/// With two diverging ranks the second, though neither is the odd one. nullopt if there is none.
[[nodiscard]] std::optional<std::uint32_t> rank_of_other_modules(const store::Store& store,
                                                                 std::int64_t from_ns);

/// "rank 2", "ranks 0, 1, 3"; at most eight are listed.
[[nodiscard]] std::string ranks_text(const std::vector<std::uint32_t>& ranks);

}  // namespace shardscope::analysis
