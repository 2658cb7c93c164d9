// A parameter at a time and on a rank: as DeepSpeed's ds_summary() prints it, or in another framework's
// words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/gui/model/details.h"

namespace shardscope::gui {

/// The fields of ds_summary() in its order, then attributes that it omits: ds_param_type, and in stage 3
/// final_location and the storage of the shard.
[[nodiscard]] std::vector<Field> ds_summary(const store::Store& store, std::uint32_t param,
                                            std::uint32_t rank, std::int64_t at_ns);

/// ds_summary() for DeepSpeed and this runtime, which has its fields. For other frameworks: status, elements,
/// shape, gradient, shard and running modules, in their words.
[[nodiscard]] std::vector<Field> param_summary(const store::Store& store, std::uint32_t param,
                                               std::uint32_t rank, std::int64_t at_ns);
/// Its heading: "ds_summary of lm_head.weight".
[[nodiscard]] std::string param_summary_heading(const store::Store& store, std::uint32_t param);

}  // namespace shardscope::gui
