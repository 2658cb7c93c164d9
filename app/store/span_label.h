// What a span is called and what its colour means: the same in the window, in exports and reports, and in
// `why`. But for steps and collectives, which exports and the report call as other tools do
// (app/export/span_walk.h).
#pragma once

#include <cstdint>
#include <string>

#include "app/store/store.h"

namespace shardscope::store {

/// "step 3", "h.3.attn", "all-gather 12", "waits for parameters of h.3.attn", in the framework's words
/// (vocabulary.h); names of kernels and of spans of the program's own as the rank gave them. Neither
/// shortened nor with a duration.
[[nodiscard]] std::string label_of(const Store& store, std::uint32_t rank, const Span& span);
/// What computation waits for: "parameters of h.3.attn", "bucket 7", "data"; empty: the span is no
/// wait.
[[nodiscard]] std::string awaited(const Store& store, const Span& span);

/// Spans of a kind, which begin with `kind`, in the plural: "modules", "waits for parameters".
[[nodiscard]] std::string kind_label(const Store& store, ev::EventKind kind);

/// What the colour of a span says; each output has its own colours for these.
enum class SpanHue : std::uint8_t {
  compute,
  gather,
  reduce,
  optimizer,
  copy,
  wait,     ///< computation or the host waits
  neutral,  ///< structure, pauses, and what no other says
};
/// `code` is the kind's own: of a phase, a collective, work of the GPU.
[[nodiscard]] SpanHue hue_of(ev::StreamId lane, ev::EventKind kind, std::uint8_t code) noexcept;

}  // namespace shardscope::store
