// The fields of an event kind as columns, generated from the table of kinds: a new kind needs no code here.
#pragma once

#include <vector>

#include "app/arrow/batch.h"
#include "app/store/store_rows.h"

namespace shardscope::arrow {

namespace ev = shardscope::instrumentation;

struct EventColumn {
  Column column;
  /// Appends the field's value. Enumerations are written as their names, missing ids as null.
  void (*append)(Batch& batch, const ev::Event& record) = nullptr;
};

[[nodiscard]] std::vector<EventColumn> columns_of(ev::EventKind kind);

/// A begin event with the fields of `span`.
[[nodiscard]] ev::Event begin_of(const store::Span& span);

}  // namespace shardscope::arrow
