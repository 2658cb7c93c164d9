#include "app/export/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "app/store/recording.h"

namespace shardscope::exporter {
namespace {

/// Whether something is there that renaming would destroy. Folders are left to the error of opening them.
bool stays_in_place(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

}  // namespace

void refuse_recording(const std::string& path) {
  if (!store::is_recording(path)) return;
  throw std::runtime_error(path + ": is a recording, which this would destroy; choose another name");
}

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)),
      temporary_(stays_in_place(path_) ? path_ : path_ + ".part" + std::to_string(::getpid())) {
  refuse_recording(path_);
  errno = 0;
  out_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!out_) {
    throw std::runtime_error(path_ + ": cannot write it: " + std::strerror(errno) +
                             "; check that the folder exists and is writable");
  }
}

OutputFile::~OutputFile() {
  if (!committed_ && temporary_ != path_) std::remove(temporary_.c_str());
}

void OutputFile::not_written() const {
  throw std::runtime_error(path_ +
                           ": not written: " + (errno != 0 ? std::strerror(errno) : "the disk may be full"));
}

void OutputFile::commit() {
  errno = 0;
  out_.close();
  if (!out_) not_written();
  if (temporary_ != path_ && std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw std::runtime_error(path_ + ": cannot put it in place: " + std::strerror(errno));
  }
  committed_ = true;
}

}  // namespace shardscope::exporter
