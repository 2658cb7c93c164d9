// Texts: how long a span took, what a gather holds, where it was issued and for which module.
#pragma once

#include <cstdint>
#include <string>

#include "app/gui/model/run_index.h"
#include "app/store/span_time.h"
#include "app/store/store.h"

namespace shardscope::gui {

/// "1.42 ms", "1.42 ms + 6.47 s paused", "open, 1.42 ms so far"; of a rank that has ended or is no
/// more: "not ended, 1.42 ms up to the last event".
[[nodiscard]] std::string length_text(const store::SpanTime& time);
/// The same for a stretch of the run, as of a range that was measured or noted.
[[nodiscard]] std::string range_text(const store::Store& store, std::int64_t begin_ns, std::int64_t end_ns);
/// With how many steps as long as the one at its begin that is: "25.0 ms + 6.47 s paused, 2.50 steps".
[[nodiscard]] std::string measured_text(const store::Store& store, std::int64_t begin_ns,
                                        std::int64_t end_ns);
/// What a wait of computation on `rank` is for: "fetch at h.3.mlp, for h.4.attn", "fetch for h.4.attn",
/// "bucket 3 to be reduced"; "fetch at h.3.mlp" where `index` does not hold the gather.
[[nodiscard]] std::string wait_text(const store::Store& store, std::uint32_t rank, const store::Span& wait,
                                    const RunIndex& index);
/// Text for spans that are too narrow to be drawn one by one: how many there are about `at_ns` within
/// `width_ns`, how busy they keep their row, and what most of that is.
[[nodiscard]] std::string fold_text(const store::Store& store, store::LaneId lane, std::uint8_t depth,
                                    std::int64_t at_ns, std::int64_t width_ns);
/// "Prefetched at h.3.mlp, for h.4.attn", "Fetched on demand for h.4.attn".
[[nodiscard]] std::string reason_of(const store::Store& store, const Fetch& fetch);
/// Why a parameter's status became what it is: "prefetched at h.3.mlp, for h.4.attn" while it is in flight,
/// "fetched for h.4.attn", "released after h.4.attn".
[[nodiscard]] std::string reason_of(const store::Store& store, std::uint8_t status_code, std::uint32_t module,
                                    std::span<const std::uint32_t> params);

}  // namespace shardscope::gui
