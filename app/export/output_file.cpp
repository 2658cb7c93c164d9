#include "app/export/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace shardscope::exporter {

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)), temporary_(path_ + ".part" + std::to_string(::getpid())) {
  errno = 0;
  out_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!out_) {
    throw std::runtime_error(path_ + ": cannot write it: " + std::strerror(errno) +
                             "; check that the folder exists and is writable");
  }
}

OutputFile::~OutputFile() {
  if (!committed_) std::remove(temporary_.c_str());
}

void OutputFile::commit() {
  errno = 0;
  out_.close();
  if (!out_) {
    throw std::runtime_error(
        path_ + ": not written: " + (errno != 0 ? std::strerror(errno) : "the disk may be full"));
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw std::runtime_error(path_ + ": cannot put it in place: " + std::strerror(errno));
  }
  committed_ = true;
}

}  // namespace shardscope::exporter
