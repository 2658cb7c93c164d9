#include "app/store/tables_of_ranks.h"

#include <cstddef>
#include <utility>

namespace shardscope::store {

using instrumentation::RunTables;

void TablesOfRanks::take(std::uint32_t rank, const RunTables& tables) {
  const auto size = [](const RunTables& t) {
    const std::size_t configuration = t.config_json.empty() ? 0 : 1;
    return t.modules.size() + t.params.size() + t.slices.size() + t.param_groups.size() + configuration;
  };
  const bool poorer = run_ && size(tables) < size(*run_);
  const bool richer = run_ && size(tables) > size(*run_);
  if (!poorer && (!run_ || rank <= run_->rank || richer)) {
    run_ = tables;
    run_->rank = rank;
  }
  RunTables own = tables;
  own.drop_lists();
  own.config_json.clear();
  ranks_[rank] = std::move(own);
}

const RunTables& TablesOfRanks::of_run() const {
  static const RunTables none;
  return run_ ? *run_ : none;
}

const RunTables* TablesOfRanks::of_rank(std::uint32_t rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? nullptr : &found->second;
}

}  // namespace shardscope::store
