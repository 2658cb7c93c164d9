// A parameter as DeepSpeed's ds_summary() describes it, at a time and on a rank.
#pragma once

#include <cstdint>
#include <vector>

#include "app/gui/model/details.h"

namespace shardscope::gui {

/// The fields of ds_summary() in its order; after them attributes that it leaves out: ds_param_type, and in
/// stage 3 final_location and where the shard rests.
[[nodiscard]] std::vector<Field> ds_summary(const store::Store& store, std::uint32_t param,
                                            std::uint32_t rank, std::int64_t at_ns);

}  // namespace shardscope::gui
