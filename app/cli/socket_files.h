// The files of an ipc:// endpoint, which ZeroMQ does not remove.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace shardscope::cli {

/// Removes them when destroyed, unless another process has replaced them. Construct before the collector.
class SocketFiles {
 public:
  SocketFiles() = default;
  ~SocketFiles();
  SocketFiles(const SocketFiles&) = delete;
  SocketFiles& operator=(const SocketFiles&) = delete;
  /// A process listens at `endpoint` now.
  void of(const std::string& endpoint);

 private:
  struct File {
    std::string path;
    dev_t device;
    ino_t inode;
  };
  std::vector<File> files_;
};

}  // namespace shardscope::cli
