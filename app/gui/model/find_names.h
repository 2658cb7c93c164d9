// Name search over a run's steps, ranks, findings, modules and parameters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/gui/model/app_state.h"

namespace shardscope::gui {

enum class NameKind : std::uint8_t { step, rank, finding, module, param };
[[nodiscard]] const char* word(NameKind kind) noexcept;

struct NameHit {
  NameKind kind{};
  std::uint32_t id = 0;  ///< step, rank, module, parameter; index of the finding
  std::string text;
  std::string detail;  ///< duration of a step, shape of a parameter
};

/// At most `most` hits of each kind, in the run's order. Empty input returns no hits.
[[nodiscard]] std::vector<NameHit> find_names(const AppState& app, std::string_view typed,
                                              std::size_t most = 40);
/// Selects the hit and moves to it.
void go_to_name(AppState& app, const NameHit& hit);

}  // namespace shardscope::gui
