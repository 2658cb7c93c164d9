// The files of an ipc:// endpoint, which ZeroMQ does not remove.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace shardscope::cli {

/// Removes them at its end, unless others lie there by then. To be made before the collector that listens.
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
