// The part of an SQLite export that is made of spans: the tables named as those of Nsight Systems, and
// collectives.
#pragma once

#include <cstdint>

#include "app/export/part.h"
#include "app/store/database.h"
#include "app/store/store.h"
#include "app/store/store_rows.h"
#include "instrumentation/event.h"

namespace shardscope::exporter {

/// Kernels, copies, ranges and collectives of the part, into tables that are there (sqlite.cpp, kSchema).
void write_span_rows(store::Database& database, const store::Store& store, const ExportPart& part);

/// NULL where it is not known.
inline void bind_where(store::Statement& insert, int column, std::int64_t value, bool known) {
  if (known) {
    insert.bind(column, value);
  } else {
    insert.bind(column, store::StepRow::NAN_);
  }
}
/// NULL where there is none.
inline void bind_id(store::Statement& insert, int column, std::uint32_t id) {
  bind_where(insert, column, id, id != instrumentation::kNoId);
}

}  // namespace shardscope::exporter
