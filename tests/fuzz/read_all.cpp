#include "tests/fuzz/read_all.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "app/analysis/summary.h"
#include "app/export/chrome.h"
#include "app/export/html_report.h"
#include "app/export/kineto.h"
#include "app/export/perfetto.h"
#include "tests/fuzz/fuzz.h"

namespace shardscope::fuzz {

void read_all(const store::Store& store) {
  std::vector<store::Density> columns(16);
  for (const store::LaneId lane : store.lanes()) store.density(lane, 0, 0, store.end_ns() + 1, columns);
  for (const store::RankRow& rank : store.ranks()) {
    for (const std::int64_t at : {std::int64_t{0}, store.end_ns() / 2, store.end_ns()}) {
      (void)store.param_state(rank.rank, 0, at);
      (void)store.memory_at(rank.rank, instrumentation::MemoryPool::device, at);
    }
  }
  const analysis::Summary summary = analysis::summarize(store);
  must(nlohmann::json::accept(analysis::to_json(summary)));
  (void)exporter::html_report(store, summary, {});
  std::ostringstream chrome, perfetto;
  exporter::write_chrome(chrome, store);
  must(nlohmann::json::accept(chrome.str()));
  exporter::write_perfetto(perfetto, store);
  for (const store::RankRow& rank : store.ranks()) {
    std::ostringstream kineto;
    exporter::write_kineto(kineto, store, rank.rank);
    must(nlohmann::json::accept(kineto.str()));
  }
}

}  // namespace shardscope::fuzz
