// golden_check FILE...: do our planners decide, and does our engine compute, what DeepSpeed was seen to?
// Exits 0 only if every case of every file agrees exactly.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>

#include "tests/runtime/engine/golden_gradients.h"
#include "tests/runtime/engine/golden_losses.h"
#include "tests/runtime/plan/golden.h"

namespace {

using shardscope::golden::Json;
using shardscope::golden::Report;

struct Format {
  const char* name;
  bool (*recognises)(const Json&);
  void (*check)(const Json&, Report&);
};

bool cases_have(const Json& file, const char* key) {
  if (!file.contains("cases") || !file["cases"].is_array()) return false;
  // Any case: a damaged first one must not hide what the file is.
  return std::any_of(file["cases"].begin(), file["cases"].end(),
                     [key](const Json& golden) { return golden.is_object() && golden.contains(key); });
}

void add(const std::vector<shardscope::engine::testing::LossOutcome>& outcomes, Report& report) {
  for (const auto& outcome : outcomes) {
    if (!outcome.compared) {
      report.note(outcome.title + ": " + outcome.text);
    } else if (outcome.agrees) {
      report.agree(outcome.title, outcome.text);
    } else {
      report.fail(outcome.title, outcome.text);
    }
  }
}

/// Losses need more than planners: the real engine trains every case at every stage.
void check_losses(const Json& file, Report& report) {
  add(shardscope::engine::testing::check_losses(file), report);
}

/// So do the gradients that a file records beside its layouts.
void check_stage12(const Json& file, Report& report) {
  shardscope::golden::check_stage12(file, report);
  add(shardscope::engine::testing::check_gradient_shards(file), report);
}

// The files name no format, so their content does.
constexpr Format kFormats[] = {
    {"coordinator", [](const Json& file) { return file.contains("traces") || file.contains("invalidation"); },
     shardscope::golden::check_coordinator},
    {"stage12", [](const Json& file) { return file.contains("layouts") && file.contains("sequences"); },
     check_stage12},
    {"loss_scale", [](const Json& file) { return cases_have(file, "overflow"); },
     shardscope::golden::check_loss_scale},
    {"estimator", [](const Json& file) { return cases_have(file, "rows"); },
     shardscope::golden::check_estimator},
    {"losses", [](const Json& file) { return cases_have(file, "stages"); }, check_losses},
};

int check_file(const char* path, bool quiet) {
  std::ifstream stream(path);
  if (!stream) {
    std::printf("%s: cannot be opened\n", path);
    return 1;
  }
  try {
    const Json file = Json::parse(stream);
    for (const Format& format : kFormats) {
      if (!format.recognises(file)) continue;
      Report report;
      format.check(file, report);
      if (!quiet) {
        for (const std::string& line : report.lines()) std::printf("%s\n", line.c_str());
      }
      std::printf("%s (%s): %d agree, %d disagree\n", path, format.name, report.agreed(), report.disagreed());
      return report.disagreed() == 0 && report.agreed() > 0 ? 0 : 1;
    }
    std::printf(
        "%s: not one of the golden formats: it has neither traces, layouts and sequences, nor cases with "
        "overflow, rows or stages\n",
        path);
  } catch (const std::exception& error) {
    std::printf("%s: %s\n", path, error.what());
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  bool quiet = false;
  int failed = 0;
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quiet") == 0) {
      quiet = true;
    } else {
      ++files;
      failed += check_file(argv[i], quiet);
    }
  }
  if (files == 0) {
    std::printf("usage: golden_check [--quiet] FILE.json...\n");
    return 2;
  }
  return failed == 0 ? 0 : 1;
}
