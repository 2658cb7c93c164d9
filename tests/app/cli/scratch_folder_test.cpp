// Scratch folders: removed with their object, and those that killed processes left.
#include "app/cli/scratch_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;

class ScratchFolders : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "scratch-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    base_ = pattern;
  }
  void TearDown() override { fs::remove_all(base_); }
  std::string base_;
};

TEST_F(ScratchFolders, LiveAsLongAsTheirObjects) {
  std::string path;
  {
    const ScratchFolder folder(base_);
    path = folder.path();
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all) << "for its owner alone";
    std::ofstream(folder.file("config.json")) << "{}";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(ScratchFolders, ANewOneRemovesWhatAKilledProcessLeft) {
  const ScratchFolder living(base_);
  const std::string left = base_ + "/shardscope-killed", foreign = base_ + "/shardscope-foreign";
  fs::create_directory(left);
  std::ofstream(left + "/.held") << "";  // no process holds it
  fs::create_directory(foreign);         // has no such file: not one of ours
  const ScratchFolder made(base_);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(foreign));
  EXPECT_TRUE(fs::exists(living.path())) << "its process lives";
}

TEST_F(ScratchFolders, OneThatCannotBeMadeIsAnError) {
  EXPECT_THROW(ScratchFolder(base_ + "/nowhere"), UserError);
}

}  // namespace
}  // namespace shardscope::cli
