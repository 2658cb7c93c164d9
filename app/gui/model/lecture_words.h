// The words and colours of a lecture's scenes.
#pragma once

#include <cstdint>
#include <string>

#include "app/gui/model/lecture.h"
#include "app/gui/model/palette.h"
#include "app/store/framework.h"

namespace shardscope::gui {

/// Over how many ranks the parameters of one copy of the model are divided; 0: there are replicas (HSDP), and
/// their size was not described, or not as one number.
[[nodiscard]] std::uint32_t sharing_ranks(const ev::RunTables& tables);
/// What it is, in two sentences; empty for what is explained by its own text. `ranks`: sharing_ranks().
[[nodiscard]] std::string lesson_of(SceneKind kind, std::uint32_t ranks,
                                    store::Framework framework = store::Framework::zero);
[[nodiscard]] const char* name_of(SceneKind kind) noexcept;
[[nodiscard]] Meaning meaning_of(SceneKind kind) noexcept;

}  // namespace shardscope::gui
