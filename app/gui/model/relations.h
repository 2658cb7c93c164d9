// What a span waits for and what waits for it, by the ids that the run's events carry: a gather, the wait for
// it and the module that uses it; modules, the bucket that their gradients fill, its reduction, the wait for
// that and the optimizer step. Nothing is guessed from times: where events carry no id there is no relation.
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
  gather_to_wait,    ///< the first wait for it
  gather_to_module,  ///< that uses its parameters
  module_to_reduce,  ///< its gradients are in the bucket that is reduced
  reduce_to_wait,
  reduce_to_optimizer,  ///< of the same step
};
[[nodiscard]] const char* word(RelationKind kind) noexcept;
[[nodiscard]] bool is_gather(RelationKind kind) noexcept;

struct RelationEnd {
  store::LaneId lane;
  store::Span span;
  std::int64_t at_ns = 0;  ///< where on the span the arrow ends: of a wait its end, which this brings
};
struct Relation {
  RelationKind kind{};
  RelationEnd from, to;
  std::uint32_t id = ev::kNoId;  ///< of the gather or bucket
};
struct Relations {
  std::vector<Relation> list;
  bool cut = false;  ///< there are more than kMostRelations
  bool read = true;  ///< false: something has still to be read; asked again, there is more
  /// False: there may be more, but the step holds more events than a view reads, or the index of a long run
  /// has only a part of it. Asked again, it is the same.
  bool all = true;
};
inline constexpr std::size_t kMostRelations = 48;

/// Relations of a span of a rank's compute, gather, reduce or worker lane.
[[nodiscard]] Relations relations_of(const store::Store& store, const RunIndex& index, store::LaneId lane,
                                     const store::Span& span);

/// The same for one span, computed anew when the span or the store is another: it is asked in every frame.
class RelationCache {
 public:
  const Relations& of(const store::Store& store, const RunIndex& index, store::LaneId lane,
                      const store::Span& span);

 private:
  std::optional<SpanKey> key_;
  std::optional<IndexWindow> indexed_;  ///< of a long run it moves with what is shown
  Relations relations_;
};

}  // namespace shardscope::gui
