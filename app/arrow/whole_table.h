// Rows of a table that is in memory as a whole: they are written into one batch.
#pragma once

#include <functional>
#include <utility>

#include "app/arrow/table.h"

namespace shardscope::arrow {

class WholeTable : public Rows {
 public:
  WholeTable(Schema schema, std::function<void(Batch&)> write)
      : schema_(std::move(schema)), write_(std::move(write)) {}
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  bool fill(Batch& batch, std::size_t) override {
    if (write_) write_(batch);
    write_ = nullptr;
    return false;
  }

 private:
  Schema schema_;
  std::function<void(Batch&)> write_;
};

}  // namespace shardscope::arrow
