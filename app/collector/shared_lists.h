// Lists that the tables of all ranks of a run have in common, stored once. Pure.
#pragma once

#include <memory>
#include <utility>

#include "instrumentation/run_tables.h"

namespace shardscope::collector {

/// Whether the lists that RunTables::drop_lists() removes are equal.
[[nodiscard]] inline bool same_lists(const instrumentation::RunTables& a,
                                     const instrumentation::RunTables& b) {
  return a.modules == b.modules && a.params == b.params && a.slices == b.slices &&
         a.param_groups == b.param_groups;
}

class SharedLists {
 public:
  /// Tables of one rank. Lists are freed with the last tables that share them.
  struct Tables {
    instrumentation::RunTables own;  ///< without lists
    std::shared_ptr<const instrumentation::RunTables> lists;
    [[nodiscard]] instrumentation::RunTables whole() const {
      instrumentation::RunTables tables = own;
      tables.take_lists(*lists);
      return tables;
    }
  };
  /// Stores tables; lists equal to the last stored ones are shared.
  [[nodiscard]] Tables keep(const instrumentation::RunTables& tables) {
    Tables kept;
    kept.lists = last_.lock();
    if (kept.lists == nullptr || !same_lists(*kept.lists, tables)) {
      auto lists = std::make_shared<instrumentation::RunTables>();
      lists->take_lists(tables);
      kept.lists = std::move(lists);
      last_ = kept.lists;
    }
    kept.own = tables;
    kept.own.drop_lists();
    return kept;
  }

 private:
  std::weak_ptr<const instrumentation::RunTables> last_;
};

}  // namespace shardscope::collector
