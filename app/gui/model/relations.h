// What a span waits for and what waits for it, by the ids in the run's events: a gather, the wait for it and
// the module that uses it; modules, the bucket of their gradients, its reduction, the wait for that and the
// optimizer step. Times are not used to guess: events without an id have no relation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/run_index.h"
#include "app/gui/model/selection.h"
#include "app/gui/model/span_key.h"

namespace shardscope::gui {

enum class RelationKind : std::uint8_t {
  gather_to_wait,    ///< the first wait for the gather
  gather_to_module,  ///< a module that uses its parameters
  module_to_reduce,  ///< whose gradients are in the reduced bucket
  reduce_to_wait,
  reduce_to_optimizer,  ///< of the same step
};
[[nodiscard]] const char* word(RelationKind kind) noexcept;
[[nodiscard]] bool is_gather(RelationKind kind) noexcept;

struct RelationEnd {
  store::LaneId lane;
  store::Span span;
  std::int64_t at_ns = 0;  ///< where on the span the arrow ends; for a wait its end
};
struct Relation {
  RelationKind kind{};
  RelationEnd from, to;
  std::uint32_t id = ev::kNoId;  ///< of the gather or bucket
};
struct Relations {
  std::vector<Relation> list;
  bool cut = false;  ///< truncated at kMostRelations
  bool read = true;  ///< false: data is still to be read; call again
  /// False: possibly incomplete, since the step has more events than a view reads, or the index of a long run
  /// covers only a part of it. Calling again does not help.
  bool all = true;
};
inline constexpr std::size_t kMostRelations = 48;

/// Relations of a span of a rank's compute, gather, reduce or worker lane.
[[nodiscard]] Relations relations_of(const store::Store& store, const RunIndex& index, store::LaneId lane,
                                     const store::Span& span);

/// relations_of() cached for one span and store revision, as it is called in every frame.
class RelationCache {
 public:
  const Relations& of(const store::Store& store, const RunIndex& index, store::LaneId lane,
                      const store::Span& span);

 private:
  std::optional<SpanKey> key_;
  std::optional<IndexWindow> indexed_;  ///< of a long run; moves with the visible range
  Relations relations_;
};

}  // namespace shardscope::gui
