#include "app/store/recording_files.h"

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace shardscope::store {
namespace {

namespace fs = std::filesystem;

/// A running recorder renames the next part as soon as it is made; a reader that finds it unrenamed waits.
constexpr std::chrono::milliseconds kLookAgain{20};
constexpr int kLooks = 50;

std::string name_of_file(const std::string& path) { return fs::path(path).filename().string(); }

/// "part 3", "parts 3 to 5".
std::string parts_text(std::uint32_t first, std::uint32_t last) {
  return first == last ? "part " + std::to_string(first)
                       : "parts " + std::to_string(first) + " to " + std::to_string(last);
}

using Files = std::vector<std::unique_ptr<OpenFile>>;

/// Opens the files of one series, newer and older, starting from the named one.
class Search {
 public:
  Search(std::string recording, std::unique_ptr<OpenFile> named, std::size_t most, Problems& problems)
      : recording_(std::move(recording)), most_(most), problems_(problems) {
    files_.push_back(std::move(named));
  }

  Files look() {
    while (go_up()) {
    }
    while (files_.size() < most_ && go_down()) {
    }
    name_what_is_missing();
    return std::move(files_);
  }

 private:
  [[nodiscard]] const PartIdentity& oldest() const { return *files_.front()->identity; }
  [[nodiscard]] const PartIdentity& newest() const { return *files_.back()->identity; }

  /// Opens part number `part`; nullptr if it is missing, unreadable or of another series.
  std::unique_ptr<OpenFile> find(std::uint32_t part) {
    const std::string path = part_path(recording_, part);
    std::error_code ignored;
    if (!fs::exists(path, ignored)) return nullptr;
    const std::string which = name_of_file(path) + ", which is named as a part of this recording, ";
    try {
      auto found = std::make_unique<OpenFile>(path, problems_);
      const std::optional<PartIdentity>& identity = found->identity;
      if (identity && identity->series == newest().series && identity->part == part) return found;
      problems_.add(which + "is of another one and is not read");
    } catch (const std::runtime_error& error) {
      problems_.add(which + "is not read: " + error.what());
    }
    return nullptr;
  }

  bool go_up() {
    if (!newest().followed) return false;
    const std::uint32_t next = newest().part + 1;
    std::error_code ignored;
    for (int look = 0; look < kLooks && !fs::exists(part_path(recording_, next), ignored); ++look) {
      const bool being_made =
          fs::exists(unfinished_part_path(recording_, next), ignored) && files_.back()->end.being_written();
      if (!being_made) break;
      std::this_thread::sleep_for(kLookAgain);
    }
    std::unique_ptr<OpenFile> found = find(next);
    if (found == nullptr) return false;
    files_.push_back(std::move(found));
    if (files_.size() > most_) files_.erase(files_.begin());  // the newest parts are read
    return true;
  }

  bool go_down() {
    if (oldest().part <= 1) return false;
    std::unique_ptr<OpenFile> found = find(oldest().part - 1);
    if (found == nullptr) return false;
    files_.insert(files_.begin(), std::move(found));
    return true;
  }

  void name_what_is_missing() {
    const std::uint32_t first = oldest().part, last = newest().part;
    const std::uint32_t kept_from = newest().first_part;
    if (first > kept_from && files_.size() < most_) {
      problems_.add(parts_text(kept_from, first - 1) + " of this recording " +
                    (first - kept_from == 1 ? "is" : "are") +
                    " not here (deleted, or not copied): of what is in " +
                    (first - kept_from == 1 ? "it" : "them") + " there are sums only");
    }
    if (first > kept_from && files_.size() >= most_) {
      problems_.add("of " + parts_text(kept_from, first - 1) + " the sums are read only: at most " +
                    std::to_string(most_) + " files are read as one recording");
    }
    if (newest().followed) {
      std::error_code ignored;
      const bool began = fs::exists(unfinished_part_path(recording_, last + 1), ignored);
      problems_.add(began ? "the recorder was ended while it began part " + std::to_string(last + 1) +
                                ": the recording holds what came before that"
                          : "the recording goes on in part " + std::to_string(last + 1) + " (" +
                                name_of_file(part_path(recording_, last + 1)) +
                                "), which is not here: nothing is known of what came then");
    }
    name_separate_files(first, last);
  }

  /// Reports parts that are not read because a part between is missing.
  void name_separate_files(std::uint32_t first, std::uint32_t last) {
    std::vector<std::string> before, after;
    for (const NamedPart& named : parts_beside(recording_, Unfinished::without)) {
      if (named.part + 1 < first && files_.size() < most_) before.push_back(name_of_file(named.path));
      if (named.part > last + 1) after.push_back(name_of_file(named.path));
    }
    const auto name = [&](const std::vector<std::string>& files, std::uint32_t missing) {
      if (files.empty()) return;
      problems_.add(
          (files.size() == 1 ? files.front() + " is" : files.front() + " to " + files.back() + " are") +
          " not read with it, since part " + std::to_string(missing) + " lies between: open " + files.back() +
          " to read " + (files.size() == 1 ? "it" : "them"));
    };
    name(before, first - 1);
    name(after, last + 1);
  }

  std::string recording_;
  std::size_t most_;
  Files files_;
  Problems& problems_;
};

}  // namespace

OpenFile::OpenFile(const std::string& path_value, Problems& problems)
    : path(path_value), file(path_value), end(path_value) {
  file.open(problems);
  // A running recorder may delete rows or begin the next part while this reads. Reading everything in one
  // transaction keeps that from looking like damage.
  if (file.keeps_a_part()) file.database()->execute("BEGIN");
  problems.guard("meta", [&] { identity = part_identity(*file.database()); });
}

std::vector<std::unique_ptr<OpenFile>> open_files(const std::string& path, Problems& problems,
                                                  std::size_t most) {
  auto named = std::make_unique<OpenFile>(path, problems);
  std::error_code error;
  const std::string place = fs::canonical(path, error).string();
  const std::optional<PartIdentity> identity = named->identity;
  const std::optional<PartName> name = error ? std::nullopt : part_name(place);
  if (identity && name && name->part == identity->part)
    return Search(name->recording, std::move(named), most, problems).look();
  if (identity && (identity->part > identity->first_part || identity->followed)) {
    problems.add("it is part " + std::to_string(identity->part) +
                 " of a recording and is not named so: the other parts are not looked for; give them the "
                 "names that table parts has");
  }
  Files alone;
  alone.push_back(std::move(named));
  return alone;
}

}  // namespace shardscope::store
