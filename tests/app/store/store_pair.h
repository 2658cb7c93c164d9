// One run in two stores: one keeps every event as it came, the other seals them into blocks.
#pragma once

#include <cstdint>

#include "app/store/store.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::store {

struct StorePair {
  Store whole, sealed;
  explicit StorePair(std::size_t seal_events) {
    whole.seal_after(SIZE_MAX);
    sealed.seal_after(seal_events);
  }
  void set_tables(std::uint32_t rank, const ev::RunTables& tables) {
    whole.set_tables(rank, tables);
    sealed.set_tables(rank, tables);
  }
  void ingest(const Chunk& chunk) {
    whole.ingest(chunk);
    sealed.ingest(chunk);
  }
  void fill(const SyntheticRun& run) {
    fill_store(whole, run);
    fill_store(sealed, run);
  }
};

}  // namespace shardscope::store
