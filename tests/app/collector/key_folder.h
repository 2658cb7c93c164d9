// A folder of keys, and a collector's options with them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "instrumentation/keys.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {

namespace fs = std::filesystem;

class KeyFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "keys_" + std::to_string(getpid());
    fs::create_directories(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
    KeyFile collector;
    collector.role = KeyRole::collector;
    collector.pair = make_key_pair();
    for (const KeyRole role : {KeyRole::publish, KeyRole::view, KeyRole::control}) {
      KeyFile key;
      key.role = role;
      key.pair = make_key_pair();
      key.collector = collector.pair.public_key;
      collector.allowed.push_back({role, key.pair.public_key});
      write_key_file(path(name_of(role)), key);
    }
    KeyFile stranger;  // knows the collector's public key, is on no list
    stranger.role = KeyRole::control;
    stranger.pair = make_key_pair();
    stranger.collector = collector.pair.public_key;
    write_key_file(path("stranger"), stranger);
    write_key_file(path("collector"), collector);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name + ".key"; }
  [[nodiscard]] CollectorOptions options() const {
    CollectorOptions o = local();
    o.keys = folder_;
    return o;
  }
  std::string folder_;
};

}  // namespace shardscope::collector
