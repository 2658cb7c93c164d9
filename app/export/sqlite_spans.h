// The part of an SQLite export that is derived from spans: tables with the names of Nsight Systems, and
// collectives.
#pragma once

#include <cstdint>

#include "app/export/part.h"
#include "app/store/database.h"
#include "app/store/store.h"
#include "app/store/store_rows.h"
#include "instrumentation/event.h"

namespace shardscope::exporter {

/// Inserts kernels, copies, ranges and collectives of the part into existing tables (sqlite.cpp, kSchema).
void write_span_rows(store::Database& database, const store::Store& store, const ExportPart& part);

/// Binds NULL if the value is not known.
inline void bind_where(store::Statement& insert, int column, std::int64_t value, bool known) {
  if (known) {
    insert.bind(column, value);
  } else {
    insert.bind(column, store::StepRow::NAN_);
  }
}
/// Binds NULL for kNoId.
inline void bind_id(store::Statement& insert, int column, std::uint32_t id) {
  bind_where(insert, column, id, id != instrumentation::kNoId);
}

}  // namespace shardscope::exporter
