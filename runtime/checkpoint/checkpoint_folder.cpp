#include "runtime/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <vector>

#include "runtime/checkpoint/safetensors.h"

namespace shardscope::checkpoint {
namespace {

namespace fs = std::filesystem;

/// A file with one line, the name of a folder.
constexpr const char* kLatest = "latest";

[[noreturn]] void fail(const fs::path& path, const std::string& what, int code) {
  throw CheckpointError("checkpoint: " + path.string() + ": " + what + ": " +
                        std::generic_category().message(code));
}

std::string name_of(std::int64_t step) { return "step-" + std::to_string(step); }

/// N of "step-N", nullopt for another name.
std::optional<std::int64_t> step_of(const std::string& name) {
  constexpr std::string_view kPrefix = "step-";
  std::int64_t step = 0;
  if (name.rfind(kPrefix, 0) != 0) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  // name_of() again: "step-007" or "step-+7" is not what this program writes, and would not be found under
  // its number.
  if (error != std::errc{} || end != name.data() + name.size() || name != name_of(step)) return std::nullopt;
  return step;
}

class OpenFile {
 public:
  OpenFile(const fs::path& path, int flags)
      : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (fd_ < 0) fail(path, "cannot be opened", errno);
  }
  ~OpenFile() { ::close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  // A write may be partial or interrupted.
  void write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t done = ::write(fd_, text.data(), text.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) fail(path_, "cannot be written", errno);
      text.remove_prefix(static_cast<std::size_t>(done));
    }
  }
  void flush() const {
    if (::fsync(fd_) != 0) fail(path_, "cannot be flushed to the disk", errno);
  }

 private:
  const fs::path& path_;
  int fd_;
};

// Flushed before this returns, so that later references are to a complete file.
void write_file(const fs::path& path, std::string_view text) {
  const OpenFile file(path, O_WRONLY | O_CREAT | O_TRUNC);
  file.write(text);
  file.flush();
}

/// Flushes the names in a folder to the disk.
void flush_folder(const fs::path& path) { OpenFile(path, O_RDONLY | O_DIRECTORY).flush(); }

void give_name(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail(to, "cannot be given its name", errno);
}

// No error if the folder does not exist.
void delete_all(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail(path, "cannot be removed", error.value());
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  // A missing folder is empty.
  if (error && error != std::errc::no_such_file_or_directory)
    fail(folder, "cannot be read as a folder of checkpoints", error.value());
  // A listing has no order; messages and the order of deletion should not depend on it.
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

// With a leading dot: step_of() rejects the name, and begin() removes remains.
fs::path CheckpointFolder::partial(std::int64_t step) const {
  return folder_ / ("." + name_of(step) + ".partial");
}
fs::path CheckpointFolder::whole(std::int64_t step) const { return folder_ / name_of(step); }

void CheckpointFolder::begin(std::int64_t step) const {
  for (const std::string& name : names_in(folder_)) {
    // Remains of a killed run: partial folders, renamed folders to delete, and the temporary file of
    // `latest`.
    if (name.rfind(".step-", 0) == 0) delete_all(folder_ / name);
  }
  std::error_code error;
  fs::create_directories(partial(step), error);
  if (error)
    fail(partial(step), "cannot be made, give --checkpoint a folder that can be written to", error.value());
}

void CheckpointFolder::commit(const Manifest& manifest) const {
  const std::int64_t step = manifest.progress.step;
  // The manifest last: it has the checksums of the files, all of which are there by now.
  write_file(partial(step) / kManifestName, to_text(manifest));
  // Names of all files are on the disk before the folder gets its own.
  flush_folder(partial(step));

  // See [Note: a checkpoint appears at once]. A run resumed from an earlier step reaches this one again. A
  // rename cannot replace a folder that is not empty.
  const bool replaces = fs::exists(whole(step));
  if (!replaces) {
    give_name(partial(step), whole(step));
  } else if (::renameat2(AT_FDCWD, partial(step).c_str(), AT_FDCWD, whole(step).c_str(), RENAME_EXCHANGE) !=
             0) {
    fail(whole(step), "is there already and cannot be exchanged; remove it or save to another folder", errno);
  }
  // The folder's name before `latest` refers to it.
  flush_folder(folder_);
  const fs::path latest = folder_ / ".step-latest.partial";
  // Written next to it and renamed: `latest` is never incomplete.
  write_file(latest, name_of(step) + "\n");
  give_name(latest, folder_ / kLatest);
  flush_folder(folder_);
  // After the exchange the old checkpoint has the partial name. Last: until `latest` is right nothing is
  // deleted.
  if (replaces) delete_all(partial(step));
}

// No flush: the next save removes remains after a loss of power.
void CheckpointFolder::discard(std::int64_t step) const noexcept {
  std::error_code ignored;  // another failure is being reported
  fs::remove_all(partial(step), ignored);
}

void CheckpointFolder::prune(std::int64_t step, std::int64_t keep) const {
  if (keep == 0) return;
  std::vector<std::int64_t> steps;
  for (const std::string& name : names_in(folder_)) {
    if (const auto found = step_of(name); found && *found <= step) steps.push_back(*found);
  }
  std::sort(steps.rbegin(), steps.rend());
  // Newest first: removes those after the first `keep`.
  for (std::size_t i = static_cast<std::size_t>(keep); i < steps.size(); ++i) {
    const fs::path removed = folder_ / ("." + name_of(steps[i]) + ".removed");
    // Renamed first: a folder being deleted must not look like a checkpoint.
    give_name(whole(steps[i]), removed);
    delete_all(removed);
  }
}

// `latest` is written last: if it exists, there is a complete checkpoint.
bool CheckpointFolder::holds_checkpoint() const { return fs::exists(folder_ / kLatest); }

fs::path find_checkpoint(const fs::path& path) {
  // One checkpoint's own folder.
  if (fs::exists(path / kManifestName)) return path;
  std::ifstream file(path / kLatest);
  std::string name;
  if (!file || !std::getline(file, name)) {
    std::string found;
    for (const std::string& entry : names_in(path)) {
      if (step_of(entry)) found += (found.empty() ? "; it has " : ", ") + entry;
    }
    throw CheckpointError("checkpoint: " + path.string() + ": holds no checkpoint (neither " + kManifestName +
                          " nor " + kLatest + ")" + found + "; give the folder that --checkpoint wrote");
  }
  // `latest` may only name a checkpoint in the same folder.
  if (!step_of(name) || !fs::exists(path / name / kManifestName)) {
    throw CheckpointError("checkpoint: " + (path / kLatest).string() + ": names \"" + name +
                          "\", which is no checkpoint; give one as " + path.string() + "/step-N");
  }
  return path / name;
}

}  // namespace shardscope::checkpoint
