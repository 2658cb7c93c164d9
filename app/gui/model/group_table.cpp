// Groups of spans as a table and as CSV.
#include <algorithm>
#include <numeric>

#include "app/gui/model/format.h"
#include "app/gui/model/name_cell.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_statistics.h"

namespace shardscope::gui {
namespace {

Cell time_cell(double ns) { return number_cell(ns, duration(static_cast<std::int64_t>(ns)).text()); }

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string group_name(const store::Store& store, const SpanSearch& search, GroupBy by, std::uint32_t key) {
  switch (by) {
    case GroupBy::name:
      return search.name(key);
    case GroupBy::rank:
      return "rank " + std::to_string(key);
    case GroupBy::module:
      return module_name(store, key);
    case GroupBy::step:
      return key == ev::kNoId ? "before the first step" : "step " + std::to_string(key);
    case GroupBy::stream:
      return word(static_cast<ev::StreamId>(key));
    case GroupBy::parent:
      return key == ev::kNoId ? "in no other span" : search.name(key);
  }
  return {};
}

GroupTable group_table(const store::Store& store, const SpanSearch& search, const SpanStatistics& statistics,
                       std::size_t most) {
  GroupTable out;
  out.table.columns = {{word(statistics.by()), 2, false, "", false, 130},
                       {"count", 0.6F, true},
                       {"total", 0.7F, true, "Sum of the times, pauses cut out"},
                       {"mean", 0.7F, true},
                       {"p50", 0.7F, true, "Median"},
                       {"p95", 0.7F, true},
                       {"p99", 0.7F, true},
                       {"max", 0.7F, true},
                       {"self", 0.7F, true, "Sum of the times without child spans on the same lane"},
                       {"min", 0.7F, true}};
  const std::vector<SpanGroup>& groups = statistics.groups();
  out.of_row.resize(groups.size());
  std::iota(out.of_row.begin(), out.of_row.end(), std::size_t{0});
  std::ranges::stable_sort(out.of_row, std::ranges::greater{},
                           [&](std::size_t i) { return groups[i].times.total(); });
  if (out.of_row.size() > most) out.of_row.resize(most);
  const NameCells names(store);
  for (const std::size_t i : out.of_row) {
    const SpanGroup& group = groups[i];
    const auto percentile = [&](double ns) {
      return group.settled ? time_cell(ns) : number_cell(std::nullopt, "");
    };
    const auto count = static_cast<std::int64_t>(group.times.count());
    out.table.add(
        {names.cell(group_name(store, search, statistics.by(), group.key)),
         number_cell(static_cast<double>(count), grouped(count)),
         time_cell(static_cast<double>(group.times.total())), time_cell(group.mean()), percentile(group.p50),
         percentile(group.p95), percentile(group.p99), time_cell(static_cast<double>(group.times.most())),
         group.parents ? time_cell(static_cast<double>(group.self_ns)) : number_cell(std::nullopt, ""),
         time_cell(static_cast<double>(group.times.least()))});
  }
  return out;
}

std::string groups_csv(const store::Store& store, const SpanSearch& search,
                       const SpanStatistics& statistics) {
  std::string out = std::string(word(statistics.by())) +
                    ",count,total_ns,self_ns,mean_ns,p50_ns,p95_ns,p99_ns,min_ns,max_ns\n";
  for (const SpanGroup& group : statistics.groups()) {
    const auto percentile = [&](double ns) { return "," + (group.settled ? decimal(ns, 1) : std::string()); };
    out += quoted(group_name(store, search, statistics.by(), group.key)) + "," +
           std::to_string(group.times.count()) + "," + std::to_string(group.times.total()) + "," +
           std::to_string(group.self_ns) + "," + decimal(group.mean(), 1) + percentile(group.p50) +
           percentile(group.p95) + percentile(group.p99) + "," + std::to_string(group.times.least()) + "," +
           std::to_string(group.times.most()) + "\n";
  }
  return out;
}

}  // namespace shardscope::gui
