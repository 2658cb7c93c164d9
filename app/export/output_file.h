// A file that appears whole or not at all: written to a temporary file beside it, which is renamed at the
// end. An existing path that is not a regular file (a pipe, /dev/stdout, /dev/full) is written in place.
#pragma once

#include <fstream>
#include <string>

namespace shardscope::exporter {

/// Throws std::runtime_error if `path` is a recording: an export must never overwrite one, since it could not
/// be restored.
void refuse_recording(const std::string& path);

class OutputFile {
 public:
  /// Replaces an existing file, but never a recording. Throws std::runtime_error: path, reason.
  explicit OutputFile(std::string path);
  ~OutputFile();  ///< removes the temporary file unless committed
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  [[nodiscard]] std::ostream& stream() { return out_; }
  /// Calls `write` with the stream, for long outputs. A failed write aborts it with the error of commit().
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
  /// The path that is written to until commit().
  [[nodiscard]] const std::string& temporary() const { return temporary_; }
  /// Renames the file into place. Throws std::runtime_error if anything was not written (disk full).
  void commit();

 private:
  [[noreturn]] void not_written() const;
  std::string path_, temporary_;  ///< equal if the file is written in place
  int lock_ = -1;                 ///< held while `temporary_` is written: other processes do not remove it
  std::ofstream out_;
  bool committed_ = false;
};

}  // namespace shardscope::exporter
