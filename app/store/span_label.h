// Names and colours of spans: the same in the window, in exports and reports, and in
// `why`. Except steps and collectives, which exports and the report name as other tools do
// (app/export/span_walk.h).
#pragma once

#include <cstdint>
#include <string>

#include "app/store/store.h"

namespace shardscope::store {

/// "step 3", "h.3.attn", "all-gather 12", "waits for parameters of h.3.attn", in the framework's words
/// (vocabulary.h); kernels and the program's own spans have the names that the rank gave. Not
/// shortened, without a duration.
[[nodiscard]] std::string label_of(const Store& store, std::uint32_t rank, const Span& span);
/// What computation waits for: "parameters of h.3.attn", "bucket 7", "data"; empty: not a
/// wait.
[[nodiscard]] std::string awaited(const Store& store, const Span& span);

/// Plural name for spans whose begin is `kind`: "modules", "waits for parameters".
[[nodiscard]] std::string kind_label(const Store& store, ev::EventKind kind);

/// Meaning of a span's colour; each output has its own colours for these.
enum class SpanHue : std::uint8_t {
  compute,
  gather,
  reduce,
  optimizer,
  copy,
  wait,     ///< computation or the host waits
  neutral,  ///< structure, pauses, and any other
};
/// `code` of the kind: a phase, a collective, GPU work.
[[nodiscard]] SpanHue hue_of(ev::StreamId lane, ev::EventKind kind, std::uint8_t code) noexcept;

}  // namespace shardscope::store
