// Texts for spans: duration, contents of a gather, where it was issued and for which module.
#pragma once

#include <cstdint>
#include <string>

#include "app/gui/model/run_index.h"
#include "app/store/span_time.h"
#include "app/store/store.h"

namespace shardscope::gui {

/// "1.42 ms", "1.42 ms + 6.47 s paused", "open, 1.42 ms so far"; for a rank that has ended or failed "not
/// ended, 1.42 ms up to the last event".
[[nodiscard]] std::string length_text(const store::SpanTime& time);
/// The same for a time range, for example a measured or noted one.
[[nodiscard]] std::string range_text(const store::Store& store, std::int64_t begin_ns, std::int64_t end_ns);
/// With the length in units of the step at its begin: "25.0 ms + 6.47 s paused, 2.50 steps".
[[nodiscard]] std::string measured_text(const store::Store& store, std::int64_t begin_ns,
                                        std::int64_t end_ns);
/// The reason of a wait on `rank`: "fetch at h.3.mlp, for h.4.attn", "fetch for h.4.attn", "bucket 3 to be
/// reduced"; "fetch at h.3.mlp" if `index` lacks the gather.
[[nodiscard]] std::string wait_text(const store::Store& store, std::uint32_t rank, const store::Span& wait,
                                    const RunIndex& index);
/// Tooltip for spans too narrow to draw one by one: their number around `at_ns` within `width_ns`, the busy
/// share and the most frequent kind.
[[nodiscard]] std::string fold_text(const store::Store& store, store::LaneId lane, std::uint8_t depth,
                                    std::int64_t at_ns, std::int64_t width_ns);
/// "Prefetched at h.3.mlp, for h.4.attn", "Fetched on demand for h.4.attn".
[[nodiscard]] std::string reason_of(const store::Store& store, const Fetch& fetch);
/// Why a parameter has its status: "prefetched at h.3.mlp, for h.4.attn" while in flight, "fetched for
/// h.4.attn", "released after h.4.attn".
[[nodiscard]] std::string reason_of(const store::Store& store, std::uint8_t status_code, std::uint32_t module,
                                    std::span<const std::uint32_t> params);

}  // namespace shardscope::gui
