// A file that appears whole or not at all: written beside its place, renamed at the end. What is there and no
// file (a pipe, /dev/stdout, /dev/full) is written to and stays what it is.
#pragma once

#include <fstream>
#include <string>

namespace shardscope::exporter {

/// Throws std::runtime_error if `path` is a recording: what is written from one must not take its place (or
/// another's), which nothing brings back.
void refuse_recording(const std::string& path);

class OutputFile {
 public:
  /// Throws std::runtime_error: path, reason. Other files are replaced, a recording is not.
  explicit OutputFile(std::string path);
  ~OutputFile();  ///< removes what was not committed
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  [[nodiscard]] std::ostream& stream() { return out_; }
  /// Gives the stream to what writes long: it ends, as commit() does, as soon as anything cannot be written.
  template <typename Write>
  void write(const Write& write) {
    try {
      out_.exceptions(std::ios::badbit | std::ios::failbit);
      write(stream());
      out_.exceptions(std::ios::goodbit);
    } catch (const std::ios_base::failure&) {
      not_written();
    }
  }
  /// Where it is written until commit().
  [[nodiscard]] const std::string& temporary() const { return temporary_; }
  /// Throws std::runtime_error when anything could not be written (disk full).
  void commit();

 private:
  [[noreturn]] void not_written() const;
  std::string path_, temporary_;  ///< equal where it is written in its place
  int lock_ = -1;                 ///< held while `temporary_` is written, so that no other process removes it
  std::ofstream out_;
  bool committed_ = false;
};

}  // namespace shardscope::exporter
