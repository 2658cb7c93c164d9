// A parameter as DeepSpeed's ds_summary() prints it, at a time and on a rank.
#pragma once

#include <cstdint>
#include <vector>

#include "app/gui/model/details.h"

namespace shardscope::gui {

/// The fields of ds_summary() in its order, then attributes that it omits: ds_param_type, and in stage 3
/// final_location and the storage of the shard.
[[nodiscard]] std::vector<Field> ds_summary(const store::Store& store, std::uint32_t param,
                                            std::uint32_t rank, std::int64_t at_ns);

}  // namespace shardscope::gui
