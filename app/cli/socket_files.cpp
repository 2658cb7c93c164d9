#include "app/cli/socket_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include "instrumentation/sockets.h"

namespace shardscope::cli {

void SocketFiles::of(const std::string& endpoint) {
  static const std::string kIpc = "ipc://";
  if (!endpoint.starts_with(kIpc)) return;
  const instrumentation::Endpoints endpoints = instrumentation::endpoints_of(endpoint);
  for (const std::string& each : {endpoints.publish, endpoints.view, endpoints.control}) {
    const std::string path = each.substr(kIpc.size());
    struct stat found {};
    if (lstat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode))
      files_.push_back({path, found.st_dev, found.st_ino});
  }
}

SocketFiles::~SocketFiles() {
  for (const File& file : files_) {
    struct stat found {};
    const bool same =
        lstat(file.path.c_str(), &found) == 0 && found.st_dev == file.device && found.st_ino == file.inode;
    if (same) unlink(file.path.c_str());
  }
}

}  // namespace shardscope::cli
