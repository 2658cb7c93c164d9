// The selection, shared by the whole window: selecting in one panel selects in all.
#pragma once

#include <cstdint>
#include <optional>

#include "app/store/store_rows.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

enum class SelectionKind : std::uint8_t { none, param, module, collective, wait, span, step, rank };

struct Selection {
  SelectionKind kind = SelectionKind::none;
  std::uint32_t rank = ev::kNoId;
  std::uint32_t param = ev::kNoId;
  std::uint32_t module = ev::kNoId;
  std::uint32_t collective = ev::kNoId;  ///< sequence number of the operation on `lane.stream`
  std::uint32_t gather = ev::kNoId;
  std::uint32_t step = ev::kNoId;
  store::LaneId lane;
  std::optional<store::Span> span;  ///< a copy: the store's vectors grow during a live run
};

}  // namespace shardscope::gui
