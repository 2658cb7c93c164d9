#include "app/cli/made_runs.h"

#include <fmt/format.h>

#include <filesystem>

#include "app/cli/verb.h"
#include "app/store/database.h"
#include "app/store/recording.h"
#include "app/store/schema_check.h"

namespace shardscope::cli {
namespace {

/// Simulated, or without anything; an unreadable one counts as made by a run.
bool can_be_made_again(const std::string& path) {
  try {
    store::Database file(path, store::Database::Access::read);
    constexpr std::uint64_t kWork = 10'000'000;  // of a few rows
    file.limit_work(kWork);
    if (!store::foreign_object(file).empty()) return false;
    return file.integer("SELECT simulated FROM run") == 1 ||
           file.integer("SELECT EXISTS(SELECT 1 FROM run) OR EXISTS(SELECT 1 FROM chunks)") == 0;
  } catch (const store::DatabaseError&) {
    return false;
  }
}

}  // namespace

void keep_made_run(const std::string& option, const std::string& path) {
  if (path.empty() || !store::is_recording(path) || can_be_made_again(path)) return;
  throw UserError(
      fmt::format("{} {}: is a recording of a run that was made, which nothing brings back; choose another "
                  "name or remove it",
                  option, path));
}

void keep_existing(const std::string& option, const std::string& path) {
  if (path.empty()) return;
  std::error_code error;
  for (const std::string& file : {path, path + "-wal"}) {
    if (!std::filesystem::exists(file, error)) continue;
    throw UserError(fmt::format("{} {}: {}; choose another name or give --overwrite", option, path,
                                file == path ? "exists" : "the log of a recording of this name is there"));
  }
}

}  // namespace shardscope::cli
