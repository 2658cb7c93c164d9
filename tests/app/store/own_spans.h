// Spans of a program's own.
#pragma once

#include "tests/app/store/event_builder.h"

namespace shardscope::store {

/// Two ranks that have "load" and "save" for spans of their own, numbered the other way round on each: a load
/// from 0 to 10, a save from 10 to 13.
inline Store own_spans() {
  Store store;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::uint32_t load = 3 + rank, save = 4 - rank;
    store.add_name(rank, load, "load");
    store.add_name(rank, save, "save");
    ChunkBuilder events(rank);
    events.compute(0, ev::EventKind::span_begin, load).compute(10, ev::EventKind::span_end, load);
    events.compute(10, ev::EventKind::span_begin, save).compute(13, ev::EventKind::span_end, save);
    store.ingest(events.chunk);
  }
  return store;
}

}  // namespace shardscope::store
