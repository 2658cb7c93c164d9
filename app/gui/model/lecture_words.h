// Texts and colours of a lecture's scenes.
#pragma once

#include <cstdint>
#include <string>

#include "app/gui/model/lecture.h"
#include "app/gui/model/palette.h"
#include "app/store/framework.h"

namespace shardscope::gui {

/// The explanation of a kind, two sentences; empty for self-explanatory ones. `ranks`:
/// analysis::shard_ranks().
[[nodiscard]] std::string lesson_of(SceneKind kind, std::uint32_t ranks,
                                    store::Framework framework = store::Framework::zero);
[[nodiscard]] const char* name_of(SceneKind kind) noexcept;
[[nodiscard]] Meaning meaning_of(SceneKind kind) noexcept;

}  // namespace shardscope::gui
