// A user's folders of a test's own: keys that collectors leave for programs of the same user lie in them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {

namespace fs = std::filesystem;

class LocalAccess : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "local_access_" + std::to_string(getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
    setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
    setenv("XDG_STATE_HOME", (folder_ + "/state").c_str(), 1);
    setenv("HOME", folder_.c_str(), 1);
    unsetenv("SHARDSCOPE_KEY");
  }
  void TearDown() override { fs::remove_all(folder_); }
  /// The folders that collectors have left.
  [[nodiscard]] std::vector<std::string> left() const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_ + "/shardscope", none))
      names.push_back(entry.path().string());
    return names;
  }
  std::string folder_;
};

inline CollectorOptions everybody() {
  CollectorOptions options = local();
  options.insecure = true;
  return options;
}

}  // namespace shardscope::collector
