// Tokens of one or many files as one sequence: bytes of text, or 16-bit ids.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/mapped_file.h"

namespace shardscope::data {

class TokenFiles {
 public:
  /// A .bin file (16-bit tokens), any other file (bytes), or a folder (every text file below it, bytes, in
  /// order of their paths). Throws DataError, also for a token not below `vocabulary`.
  TokenFiles(const std::string& path, std::int64_t vocabulary);
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  /// Tokens [first, first + count) to `out`; the caller stays within size().
  void read(std::int64_t first, std::int64_t count, std::int32_t* out) const;
  /// Whether tokens are bytes of text, not 16-bit ids.
  [[nodiscard]] bool holds_bytes() const noexcept { return token_bytes_ == 1; }
  /// Token offsets of document ends, ascending: after every `separator` (adjacent ones end the same document)
  /// and at the end of every file.
  [[nodiscard]] std::vector<std::int64_t> document_ends(std::span<const std::int32_t> separator) const;
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] std::uint64_t fingerprint() const;

 private:
  struct Piece {
    std::string path;
    base::MappedFile file;
    std::size_t skip = 0;    ///< bytes of a header
    std::int64_t begin = 0;  ///< first token in the sequence
    std::int64_t tokens = 0;
  };
  void add(const std::string& path, base::MappedFile file, std::size_t skip);
  void add_folder(const std::string& path);
  [[nodiscard]] std::int32_t token(const Piece& piece, std::int64_t index) const noexcept;
  void check_vocabulary(std::int64_t vocabulary) const;

  std::string path_;
  std::size_t token_bytes_ = 1;
  std::vector<Piece> pieces_;
  std::int64_t size_ = 0;
};

}  // namespace shardscope::data
