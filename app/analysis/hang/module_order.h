// Where ranks ran different modules: what made them issue different collectives, or none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/store/store.h"

namespace shardscope::analysis {

/// The module that one rank began at one place of a pass, as it was recorded.
struct ModuleVisit {
  std::uint32_t micro_step = 0;
  instrumentation::Pass pass{};
  std::uint32_t module = 0;
  bool begun = true;  ///< false: it has passed the gate before the module, and waits for its parameters
  [[nodiscard]] bool operator==(const ModuleVisit& other) const noexcept {
    return micro_step == other.micro_step && pass == other.pass && module == other.module;
  }
};

/// Of one rank since `from_ns`, in the order in which it began them, from the first micro-step on that is
/// there from its root's forward; evaluations are left out. The last one may only have been come to. Empty
/// where modules were not recorded.
[[nodiscard]] std::vector<ModuleVisit> module_visits(const store::Store& store, std::uint32_t rank,
                                                     std::int64_t from_ns);

/// "In the forward of micro-step 20 rank 1 ran blk.2 where ranks 0, 2 ran blk.1.": the first place at which
/// `rank` began another module than others did, who began the same one there. Empty where there is none: a
/// rank that is behind has begun the same ones so far. Empty too where events of the run are missing, as an
/// order with gaps is none, and in runs of pipelines, experts or several models, whose ranks differ in
/// health.
[[nodiscard]] std::string other_modules_text(const store::Store& store, std::uint32_t rank,
                                             std::int64_t from_ns);

/// The one rank of three or more that parts from all others at the same place, who go on alike there. Of two
/// ranks that part, the second: neither is the odd one. Nothing where there is none.
[[nodiscard]] std::optional<std::uint32_t> rank_of_other_modules(const store::Store& store,
                                                                 std::int64_t from_ns);

/// "rank 2", "ranks 0, 1, 3": at most eight of them.
[[nodiscard]] std::string ranks_text(const std::vector<std::uint32_t>& ranks);

}  // namespace shardscope::analysis
