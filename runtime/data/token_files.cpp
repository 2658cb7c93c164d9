#include "runtime/data/token_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>

#include "runtime/base/hash.h"
#include "runtime/data/input_file.h"

namespace shardscope::data {
namespace {

namespace fs = std::filesystem;

// llm.c's header: 256 int32, the first of which is this number, the second a version, the third the count.
constexpr std::uint32_t kLlmcMagic = 20240520;
constexpr std::size_t kLlmcHeaderBytes = 1024;

/// Text contains no zero byte; a few kilobytes distinguish it from images, archives and programs.
bool is_text(std::span<const std::byte> bytes) {
  const auto head = bytes.first(std::min<std::size_t>(bytes.size(), 16384));
  return !head.empty() && std::find(head.begin(), head.end(), std::byte{0}) == head.end();
}

/// Entries of a folder to skip: hidden ones, and build trees, which differ between machines.
bool is_skipped(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  if (name.empty() || name.front() == '.') return true;
  std::error_code ignored;
  return entry.is_directory(ignored) && fs::exists(entry.path() / "CMakeCache.txt", ignored);
}

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  auto entry = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
  if (error) fail_file(folder.string(), error.message() + "; check the path");
  while (entry != fs::recursive_directory_iterator()) {
    if (is_skipped(*entry)) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file(error) && !entry->is_symlink(error)) {
      files.push_back(entry->path().string());
    }
    entry.increment(error);
    if (error) break;
  }
  std::sort(files.begin(), files.end());  // the system's order is not the same everywhere
  return files;
}

std::uint32_t read_u32(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

}  // namespace

TokenFiles::TokenFiles(const std::string& path, std::int64_t vocabulary) : path_(path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    fail_file(path,
              "there is no such file or folder; give a text file, a folder, or a .bin file of 16-bit tokens");
  }
  if (fs::is_directory(status)) {
    add_folder(path);
  } else if (fs::path(path).extension() == ".bin") {
    token_bytes_ = 2;
    base::MappedFile file = open_input(path);
    const auto bytes = file.bytes();
    if (bytes.size() % 2 != 0) {
      fail_file(path, "has " + std::to_string(bytes.size()) +
                          " bytes, an odd number, but holds 16-bit tokens; rename it if it is text");
    }
    const bool header = bytes.size() >= kLlmcHeaderBytes && read_u32(bytes, 0) == kLlmcMagic;
    if (header && read_u32(bytes, 4) != 1) {
      fail_file(path, "has version " + std::to_string(read_u32(bytes, 4)) +
                          " of its header; version 1 (16-bit tokens) is read");
    }
    add(path, std::move(file), header ? kLlmcHeaderBytes : 0);
  } else {
    add(path, open_input(path), 0);
  }
  if (size_ == 0) fail_file(path, "holds no tokens");
  check_vocabulary(vocabulary);
}

void TokenFiles::add(const std::string& path, base::MappedFile file, std::size_t skip) {
  Piece piece;
  piece.path = path;
  piece.skip = skip;
  piece.begin = size_;
  piece.tokens = static_cast<std::int64_t>((file.bytes().size() - skip) / token_bytes_);
  piece.file = std::move(file);
  size_ += piece.tokens;
  pieces_.push_back(std::move(piece));
}

void TokenFiles::add_folder(const std::string& path) {
  for (const std::string& file : files_below(path)) {
    base::MappedFile mapped = open_input(file);
    if (is_text(mapped.bytes())) add(file, std::move(mapped), 0);
  }
  if (pieces_.empty()) fail_file(path, "holds no text file");
}

std::int32_t TokenFiles::token(const Piece& piece, std::int64_t index) const noexcept {
  const std::byte* const at =
      piece.file.bytes().data() + piece.skip + static_cast<std::size_t>(index) * token_bytes_;
  if (token_bytes_ == 1) return std::to_integer<std::int32_t>(*at);
  return std::to_integer<std::int32_t>(at[0]) | (std::to_integer<std::int32_t>(at[1]) << 8);
}

void TokenFiles::check_vocabulary(std::int64_t vocabulary) const {
  if (vocabulary >= (std::int64_t{1} << (8 * token_bytes_))) return;
  for (const Piece& piece : pieces_) {
    for (std::int64_t i = 0; i < piece.tokens; ++i) {
      if (token(piece, i) < vocabulary) continue;
      fail_file(piece.path, "token " + std::to_string(i) + " is " + std::to_string(token(piece, i)) +
                                ", but the model's vocabulary is " + std::to_string(vocabulary) +
                                "; use a model with a larger vocabulary, or other data");
    }
  }
}

void TokenFiles::read(std::int64_t first, std::int64_t count, std::int32_t* out) const {
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), first,
                                [](std::int64_t at, const Piece& p) { return at < p.begin; });
  --piece;
  while (count > 0) {
    const std::int64_t from = first - piece->begin;
    const std::int64_t here = std::min(count, piece->tokens - from);
    for (std::int64_t i = 0; i < here; ++i) *out++ = token(*piece, from + i);
    first += here;
    count -= here;
    ++piece;
  }
}

std::vector<std::int64_t> TokenFiles::document_ends(std::span<const std::int32_t> separator) const {
  const auto length = static_cast<std::int64_t>(separator.size());
  std::vector<std::int64_t> ends;
  for (const Piece& piece : pieces_) {
    const auto separates = [&](std::int64_t at) {
      if (at + length > piece.tokens) return false;
      for (std::int64_t i = 0; i < length; ++i) {
        if (token(piece, at + i) != separator[static_cast<std::size_t>(i)]) return false;
      }
      return true;
    };
    for (std::int64_t at = 0; at < piece.tokens;) {
      if (!separates(at)) {
        ++at;
        continue;
      }
      while (separates(at)) at += length;
      if (at < piece.tokens) ends.push_back(piece.begin + at);
    }
    if (piece.tokens > 0) ends.push_back(piece.begin + piece.tokens);
  }
  return ends;
}

std::string TokenFiles::describe() const {
  const std::string what = token_bytes_ == 1 ? " byte tokens" : " 16-bit tokens";
  if (pieces_.size() == 1) return std::to_string(size_) + what + " of " + pieces_.front().path;
  return std::to_string(size_) + what + " of " + std::to_string(pieces_.size()) + " files in " + path_;
}

std::uint64_t TokenFiles::fingerprint() const {
  std::uint64_t hash = base::hash64(token_bytes_);
  for (const Piece& piece : pieces_) {
    // File names without their folders, so that a copy in another place is the same data.
    for (const char c : fs::path(piece.path).filename().string())
      hash = base::hash64(hash ^ static_cast<unsigned char>(c));
    hash = base::hash64(hash ^ static_cast<std::uint64_t>(piece.tokens));
  }
  return hash;
}

}  // namespace shardscope::data
