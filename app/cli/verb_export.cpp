// `export`: a recording in the formats of other tools.
#include "app/cli/verb_export.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

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

using Range = std::pair<std::uint32_t, std::uint32_t>;

/// "3" or "3-7".
std::optional<Range> range_of(std::string_view text) {
  const auto number = [](std::string_view digits) -> std::optional<std::uint32_t> {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
  };
  const std::size_t dash = text.find('-');
  const auto first = number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return Range{*first, *last};
}

/// Those of the recording that the list names.
std::vector<std::uint32_t> ranks_of(const store::Store& store, std::string_view list) {
  std::vector<std::uint32_t> ranks;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view part = list.substr(0, comma);
    const auto range = range_of(part);
    if (!range) throw UserError(fmt::format("--ranks {}: is not like 0,4-7", part), 2);
    const std::size_t before = ranks.size();
    for (const store::RankRow& row : store.ranks()) {
      if (row.rank >= range->first && row.rank <= range->second) ranks.push_back(row.rank);
    }
    if (ranks.size() == before)
      throw UserError(fmt::format("--ranks {}: the recording has no such rank", part));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return ranks;
}

std::optional<Range> steps_of(const ExportChoice& choice) {
  if (choice.steps.empty()) return std::nullopt;
  const auto steps = range_of(choice.steps);
  if (!steps) throw UserError(fmt::format("--steps {}: is not like 10 or 10-20", choice.steps), 2);
  return steps;
}

void write_otlp(const store::Store& store, const std::string& recording, const ExportChoice& choice) {
  const exporter::OtlpOptions options{.ranks = ranks_of(store, choice.ranks),
                                      .steps = steps_of(choice),
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
    written = exporter::write_kineto(choice.out, store,
                                     {.ranks = ranks_of(store, choice.ranks), .steps = steps_of(choice)});
  }
  for (const std::string& path : written) say("{}\n", path);
  return 0;
}

}  // namespace shardscope::cli
