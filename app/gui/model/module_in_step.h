// Time of a module in a step, by pass: for a module that was selected by name, without a span.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/store/store.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

struct ModuleInStep {
  struct Pass {
    ev::Pass pass{};
    std::uint64_t count = 0;
    std::int64_t time_ns = 0;  ///< pauses cut out
    friend bool operator==(const Pass&, const Pass&) = default;
  };
  std::uint32_t step = 0;
  std::vector<Pass> passes;  ///< in order of begin
};
/// For the step whose figures are shown at `at_ns` (measured_step_of()); nullopt without one.
[[nodiscard]] std::optional<ModuleInStep> module_in_step(const store::Store& store, std::uint32_t rank,
                                                         std::uint32_t module, std::int64_t at_ns);

/// module_in_step() cached for one module, step and store revision.
class ModuleInStepCache {
 public:
  const std::optional<ModuleInStep>& of(const store::Store& store, std::uint32_t rank, std::uint32_t module,
                                        std::int64_t at_ns);

 private:
  struct Key {
    std::uint64_t revision = 0;
    std::uint32_t rank = 0, module = 0;
    std::optional<std::size_t> step;
    friend bool operator==(const Key&, const Key&) = default;
  };
  std::optional<Key> key_;
  std::optional<ModuleInStep> kept_;
};

}  // namespace shardscope::gui
