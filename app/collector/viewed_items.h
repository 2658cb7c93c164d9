// What a collector sends to a viewer, in the store's terms: read on the thread of the connection, handed over
// on that of whoever has the store.
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

/// Another collector answers: what was shown belongs to the one before.
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

/// One that is damaged becomes a message about that, and is counted in `damaged`.
[[nodiscard]] ViewedItem viewed_item(instrumentation::wire::ViewItem item, KeepEncoded encoded,
                                     std::uint64_t& damaged);
[[nodiscard]] store::RankRow viewed_row(instrumentation::wire::RankState state);
/// Bytes that it takes until it is handed over, about.
[[nodiscard]] std::size_t size_of(const ViewedItem& item);
/// To the observer, if there is one, then to the store; the item is used up. Of another run the store begins
/// anew, within its bounds.
void hand_over(ViewedItem& item, store::Store& store, ViewObserver* observer);

}  // namespace shardscope::collector
