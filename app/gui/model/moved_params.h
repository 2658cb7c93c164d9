// Which parameters, and which module's, a collective moves.
#pragma once

#include <cstdint>
#include <span>

#include "app/gui/model/run_index.h"
#include "app/store/store.h"

namespace shardscope::gui {

/// Of a gather the parameters of its fetch, of a reduction its parts. Empty where not recorded or not indexed
/// (RunIndex::covers).
[[nodiscard]] std::span<const std::uint32_t> moved_params(const RunIndex& index, store::LaneId lane,
                                                          const store::Span& collective);
/// Of a gather the module it was started for; of a reduction the module of all its parameters. kNoId: of
/// several modules, or not known.
[[nodiscard]] std::uint32_t moved_for(const store::Store& store, const RunIndex& index, store::LaneId lane,
                                      const store::Span& collective);

}  // namespace shardscope::gui
