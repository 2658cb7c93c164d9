// The fields of a kind of event as columns, by the table of kinds: a kind that is new has them without more
// ado.
#pragma once

#include <vector>

#include "app/arrow/batch.h"
#include "app/store/store_rows.h"

namespace shardscope::arrow {

namespace ev = shardscope::instrumentation;

struct EventColumn {
  Column column;
  /// The field's value as the next cell. Enumerations as their names, ids that are none as null.
  void (*append)(Batch& batch, const ev::Event& record) = nullptr;
};

[[nodiscard]] std::vector<EventColumn> columns_of(ev::EventKind kind);

/// An event with the fields of a span's begin.
[[nodiscard]] ev::Event begin_of(const store::Span& span);

}  // namespace shardscope::arrow
