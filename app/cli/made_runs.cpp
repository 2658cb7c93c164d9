#include "app/cli/made_runs.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "app/cli/verb.h"
#include "app/store/database.h"
#include "app/store/recording.h"
#include "app/store/recording_parts.h"
#include "app/store/recording_place.h"
#include "app/store/schema_check.h"

namespace shardscope::cli {
namespace {

/// Whether it is simulated or empty; an unreadable file counts as a real run.
bool can_be_made_again(const std::string& path) {
  try {
    store::Database file(path, store::Database::Access::read);
    constexpr std::uint64_t kWork = 10'000'000;  // for a few rows
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
  // Of one in several files, without the link to the newest.
  const std::vector<store::NamedPart> parts = store::parts_beside(path, store::Unfinished::without);
  if (parts.empty()) return;
  throw UserError(
      fmt::format("{} {}: {} is there, a file of a recording of this name; choose another name or "
                  "give --overwrite",
                  option, path, parts.front().path));
}

void keep_written(const std::string& option, const std::string& path, Written written) {
  std::error_code error;
  const bool folder = written == Written::folder;
  // A device or a pipe is written to, not replaced.
  const bool there =
      folder ? std::filesystem::is_directory(path, error) && !std::filesystem::is_empty(path, error)
             : std::filesystem::is_regular_file(path, error) && !store::is_recording(path);
  if (!there) return;
  throw UserError(fmt::format("{} {}: exists{}; choose another name or give --overwrite", option, path,
                              folder ? " and is not empty" : ""));
}

NewRecording::NewRecording(std::string path) : path_(std::move(path)) {
  std::error_code error;
  // Only a path that does not exist yet will be a new file (not /dev/null).
  if (std::filesystem::symlink_status(path_, error).type() != std::filesystem::file_type::not_found ||
      !store::parts_beside(path_, store::Unfinished::with).empty())
    path_.clear();
}

NewRecording::~NewRecording() {
  if (path_.empty()) return;
  store::remove_all_parts(path_);
}

}  // namespace shardscope::cli
