#include "app/store/recording_place.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "app/store/recording.h"
#include "app/store/recording_lock.h"
#include "app/store/recording_parts.h"
#include "app/store/recording_schema.h"

namespace shardscope::store {
namespace {

constexpr std::array kSuffixes = {"", "-wal", "-shm", "-journal"};

/// Throws if the file must not be replaced: only recordings and empty files are replaced.
void refuse_others(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) {
    throw std::runtime_error("recording " + path + ": is a folder; name a file in it");
  }
  // Before anything here opens the file: closing it again would drop this process's SQLite locks on it.
  RecordingLock::check(path);
  if (fs::exists(status) && fs::file_size(path, ignored) > 0 && !is_recording(path)) {
    throw std::runtime_error("recording " + path +
                             ": this file exists and is not a recording; choose another name or remove it");
  }
}

void remove_old(const std::string& path) {
  for (const char* suffix : kSuffixes) {
    const std::string file = path + suffix;
    if (::unlink(file.c_str()) != 0 && errno != ENOENT) {
      throw std::runtime_error("recording " + path +
                               ": cannot replace the old file: " + std::strerror(errno));
    }
  }
}

}  // namespace

bool is_recording(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;  // opening a pipe would block
  constexpr std::size_t kApplicationId = 68;                           // big-endian
  std::array<unsigned char, kApplicationId + 4> head{};
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(head.data()), sizeof head);
  std::uint32_t id = 0;
  for (std::size_t i = kApplicationId; i < head.size(); ++i) id = id << 8 | head[i];
  return std::memcmp(head.data(), "SQLite format 3", 16) == 0 && id == std::uint32_t{kRecordingApplicationId};
}

void make_room(const std::string& path, Parts parts) {
  refuse_others(path);
  std::error_code ignored;
  const bool is_link = std::filesystem::is_symlink(std::filesystem::symlink_status(path, ignored));
  if (is_link || parts == Parts::of_this_name) {
    const std::vector<NamedPart> old = parts_beside(path, Unfinished::with);
    for (const NamedPart& part : old) refuse_others(part.path);
    for (const NamedPart& part : old) remove_old(part.path);
  }
  remove_old(path);
}

void remove_recording(const std::string& path) noexcept {
  for (const char* suffix : kSuffixes) ::unlink((path + suffix).c_str());
}

void remove_all_parts(const std::string& path) noexcept {
  for (const NamedPart& part : parts_beside(path, Unfinished::with)) remove_recording(part.path);
  remove_recording(path);
}

}  // namespace shardscope::store
