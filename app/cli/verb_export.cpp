// `export`: a recording in the formats of other tools.
#include "app/cli/verb_export.h"

#include <fmt/format.h>

#include "app/cli/rank_list.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "app/export/chrome.h"
#include "app/export/csv.h"
#include "app/export/kineto.h"
#include "app/export/otlp.h"
#include "app/export/perfetto.h"
#include "app/export/sqlite.h"
#include "app/store/wall_clock.h"
#include "runtime/base/build_facts.h"

namespace shardscope::cli {
namespace {

void write_otlp(const store::Store& store, const std::string& recording, const ExportChoice& choice) {
  const exporter::OtlpOptions options{.ranks = ranks_of(store, choice.ranks),
                                      .steps = steps_of(choice.steps),
                                      .unix_offset_ns = store::unix_offset_ns(recording),
                                      .version = base::version()};
  if (!options.unix_offset_ns)
    say(stderr, "shardscope: {}: when the run was is not recorded; its times are from 1970-01-01 on\n",
        recording);
  exporter::write_otlp(choice.out, store, options);
}

}  // namespace

const std::vector<std::string>& export_formats() {
  static const std::vector<std::string> kFormats{"chrome", "perfetto", "kineto", "csv", "sqlite", "otlp"};
  return kFormats;
}

int export_recording(const store::Store& store, const std::string& recording, const ExportChoice& choice) {
  if (choice.format != "kineto" && choice.format != "otlp" && !(choice.ranks.empty() && choice.steps.empty()))
    throw UserError("--ranks and --steps apply only to --format kineto and otlp", 2);
  std::vector<std::string> written{choice.out};
  if (choice.format == "chrome") {
    exporter::write_chrome(choice.out, store);
  } else if (choice.format == "perfetto") {
    exporter::write_perfetto(choice.out, store);
  } else if (choice.format == "sqlite") {
    exporter::write_sqlite(choice.out, store);
  } else if (choice.format == "csv") {
    written = exporter::write_csv(choice.out, store);
  } else if (choice.format == "otlp") {
    write_otlp(store, recording, choice);
  } else {
    written = exporter::write_kineto(
        choice.out, store, {.ranks = ranks_of(store, choice.ranks), .steps = steps_of(choice.steps)});
  }
  for (const std::string& path : written) say("{}\n", path);
  return 0;
}

}  // namespace shardscope::cli
