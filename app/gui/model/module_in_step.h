// How long a module ran in a step, by pass: for a module that was chosen by its name, of which no span is.
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
  std::vector<Pass> passes;  ///< in the order in which they begin
};
/// Of the step whose figures are shown at `at_ns` (measured_step_of()); nothing where there is none.
[[nodiscard]] std::optional<ModuleInStep> module_in_step(const store::Store& store, std::uint32_t rank,
                                                         std::uint32_t module, std::int64_t at_ns);

/// Of one module, computed anew when it is another, at another step, or the store has changed.
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
