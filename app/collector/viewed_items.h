// Items that a collector sends to a viewer, as the store's types: decoded on the connection's thread, added
// to the store on its owner's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "app/collector/viewer.h"
#include "app/store/chunk.h"
#include "app/store/store.h"
#include "instrumentation/run_tables.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

/// Another collector answers from here on: earlier items were of the previous one.
struct AnotherRun {
  ViewTraffic before;
};
struct NamedId {
  std::uint32_t rank = 0, id = 0;
  std::string name;
};
struct ArrivedChunk {
  store::Chunk chunk;
  std::vector<std::uint8_t> encoded;  ///< with KeepEncoded::yes only
};
using ViewedItem =
    std::variant<AnotherRun, ArrivedChunk, instrumentation::RunTables, store::Message, NamedId>;
enum class KeepEncoded : std::uint8_t { no, yes };

/// Decodes an item. A damaged one becomes a message that reports it, and is counted in `damaged`.
[[nodiscard]] ViewedItem viewed_item(instrumentation::wire::ViewItem item, KeepEncoded encoded,
                                     std::uint64_t& damaged);
[[nodiscard]] store::RankRow viewed_row(instrumentation::wire::RankState state);
/// Approximate memory of an item until hand_over(), in bytes.
[[nodiscard]] std::size_t size_of(const ViewedItem& item);
/// Passes an item to the observer, if any, then adds it to the store; moves from it. AnotherRun replaces the
/// store by an empty one with the same bounds.
void hand_over(ViewedItem& item, store::Store& store, ViewObserver* observer);

}  // namespace shardscope::collector
