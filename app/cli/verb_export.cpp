// `export`: a recording in the formats of other tools.
#include <fmt/format.h>

#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "app/export/chrome.h"
#include "app/export/csv.h"
#include "app/export/perfetto.h"
#include "app/export/sqlite.h"
#include "app/store/store.h"

namespace shardscope::cli {

int export_recording(const store::Store& store, const std::string& format, const std::string& out) {
  if (format == "chrome") {
    exporter::write_chrome(out, store);
  } else if (format == "perfetto") {
    exporter::write_perfetto(out, store);
  } else if (format == "sqlite") {
    exporter::write_sqlite(out, store);
  } else if (format == "csv") {
    for (const std::string& path : exporter::write_csv(out, store)) say("{}\n", path);
    return 0;
  } else {
    throw UserError(fmt::format("--format {}: unknown; one of chrome, perfetto, csv, sqlite", format), 2);
  }
  say("{}\n", out);
  return 0;
}

}  // namespace shardscope::cli
