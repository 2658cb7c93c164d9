#include "app/gui/model/held_long.h"

#include <string>
#include <utility>

#include "app/gui/model/format.h"
#include "app/gui/model/name_cell.h"
#include "app/gui/model/names.h"

namespace shardscope::gui {

Table held_table(const store::Store& store, const HeldLong& held) {
  Table table;
  table.columns = {
      {.name = "parameter", .weight = 2, .smallest = 140},
      {"bytes", 0.6F, true, "Of the whole parameter"},
      {"longest", 0.6F, true, "From the end of its last use to its release, the longest of the step"},
      {"all", 0.6F, true, "The same, summed over the step"},
      {"times", 0.4F, true, "Released in the step"},
      {"bytes \u00d7 time", 0.8F, true, "Bytes x the summed time"}};
  const NameCells names(store);
  for (const HeldParam& one : held.params) {
    const double kib_s = one.byte_seconds() / 1024;
    Cell parameter = names.cell(param_name(store, one.param));
    parameter.swatch = Meaning::gather;
    table.add({std::move(parameter), number_cell(static_cast<double>(one.bytes), bytes(one.bytes).text()),
               number_cell(static_cast<double>(one.longest_ns), duration(one.longest_ns).text()),
               number_cell(static_cast<double>(one.total_ns), duration(one.total_ns).text()),
               number_cell(one.times, std::to_string(one.times)),
               number_cell(one.byte_seconds(), decimal(kib_s, kib_s < 10 ? 3 : 0) + " KiB\u00b7s")});
  }
  return table;
}

}  // namespace shardscope::gui
