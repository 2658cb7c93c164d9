// Blocks of a model, by the names of its modules and parameters.
#pragma once

#include <string_view>

namespace shardscope::gui {

/// "transformer.h.3" of "transformer.h.3.attn.c_attn.weight": up to the block's number, else the name without
/// its last component.
[[nodiscard]] std::string_view block_of(std::string_view name) noexcept;

}  // namespace shardscope::gui
