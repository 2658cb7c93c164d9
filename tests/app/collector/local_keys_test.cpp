// The keys that collectors of this machine leave: taken over or cleaned after one that was killed, found
// without an address, and not believed where others could change them.
#include "instrumentation/local_keys.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "instrumentation/keys.h"
#include "tests/app/collector/local_access.h"

namespace shardscope::collector {
namespace {

class LeftKeys : public LocalAccess {};

/// A collector that was killed: keys are left, and no process holds them.
std::string killed_collector(const std::string& endpoint, const std::function<void()>& while_it_lives = {}) {
  int ready[2];
  EXPECT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    LocalKeys keys(endpoint, LocalKeys::Wanted::keys);
    keys.leave_at(endpoint);
    (void)!write(ready[1], "x", 1);
    for (;;) pause();
  }
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  if (while_it_lives) while_it_lives();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return local_key_folder(endpoint);
}

TEST_F(LeftKeys, WhatAKilledCollectorLeftIsTakenOverOrCleaned) {
  const std::string endpoint = "tcp://127.0.0.1:45711", elsewhere = "tcp://127.0.0.1:45721";
  const std::string stale = killed_collector(endpoint, [&] {
    LocalKeys other(endpoint, LocalKeys::Wanted::keys);
    EXPECT_THROW(other.leave_at(endpoint), std::runtime_error);
  });
  ASSERT_FALSE(stale.empty());
  const std::string key = read_key_file(stale + "/publish.key").collector;
  {
    // The one that follows on the port goes on with the keys that its ranks have.
    LocalKeys next(endpoint, LocalKeys::Wanted::keys);
    EXPECT_EQ(next.key()->pair.public_key, key);
    next.leave_at(endpoint);
    EXPECT_EQ(next.folder(), stale);
  }
  EXPECT_TRUE(left().empty());
  ASSERT_FALSE(killed_collector(endpoint).empty());
  // Of a machine that shares the folder nothing is known: it stays.
  const std::string theirs = folder_ + "/shardscope/tcp-45731-0badcafe-1";
  fs::create_directory(theirs);
  // A folder that is being made is not held yet; one that was abandoned shows only by its age.
  const std::string young = folder_ + "/shardscope/new-1", old = folder_ + "/shardscope/new-2";
  fs::create_directory(young);
  fs::create_directory(old);
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  std::ofstream(theirs + "/lock") << "host another-machine\npid 1\n";
  {
    LocalKeys next(elsewhere, LocalKeys::Wanted::keys);
    next.leave_at(elsewhere);
    EXPECT_TRUE(local_key_folder(endpoint).empty());
    EXPECT_EQ(left().size(), 3U);
    EXPECT_FALSE(fs::exists(old));
    EXPECT_TRUE(fs::exists(young));
  }
  fs::remove(young);
  EXPECT_EQ(left(), std::vector<std::string>{theirs});
  fs::remove_all(theirs);
  // A collector with keys of its own, or none, is not reached by what lies there.
  ASSERT_FALSE(killed_collector(endpoint).empty());
  forget_local_keys(endpoint);
  EXPECT_TRUE(left().empty());
}

TEST_F(LeftKeys, CollectorsThatLiveAreFoundWithoutAnAddress) {
  using instrumentation::local_collectors;
  EXPECT_TRUE(local_collectors().empty());
  const Collector here(local()), open(everybody());
  const auto found = local_collectors();
  ASSERT_EQ(found.size(), 2U);
  std::vector<std::string> wanted{here.publish_endpoint(), open.publish_endpoint()};
  std::ranges::sort(wanted);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found[i].endpoint, wanted[i]);
    EXPECT_EQ(found[i].pid, getpid());
  }
  // At another address of the loopback; and one that was killed, whose keys lie there still.
  const std::string beside = "tcp://127.0.0.2:45761", killed = "tcp://127.0.0.1:45771";
  ASSERT_FALSE(killed_collector(killed, [&] { EXPECT_EQ(local_collectors().size(), 3U); }).empty());
  EXPECT_EQ(local_collectors().size(), 2U);
  LocalKeys keys(beside, LocalKeys::Wanted::keys);
  keys.leave_at(beside);
  EXPECT_EQ(local_collectors().back().endpoint, beside);
  chmod(keys.folder().c_str(), 0755);
  EXPECT_EQ(local_collectors().size(), 2U) << "others could have made it";
}

TEST_F(LeftKeys, ACollectorIsListedAtTheAddressWhereItListens) {
  using instrumentation::local_collectors;
  const auto listed = [](const std::string& endpoint) {
    LocalKeys keys(endpoint, LocalKeys::Wanted::keys);
    keys.leave_at(endpoint);
    const auto found = local_collectors();
    EXPECT_EQ(found.size(), 1U) << endpoint;
    if (found.size() != 1) return std::string();
    EXPECT_EQ(found[0].pid, getpid()) << endpoint;
    return found[0].endpoint;
  };
  EXPECT_EQ(listed("tcp://[::1]:45781"), "tcp://[::1]:45781") << "nothing listens on 127.0.0.1";
  EXPECT_EQ(listed("tcp://localhost:45781"), "tcp://localhost:45781");
  EXPECT_EQ(listed("tcp://*:45781"), "tcp://127.0.0.1:45781") << "who listens everywhere";
  EXPECT_EQ(listed("tcp://[::]:45781"), "tcp://[::1]:45781");
  // One that goes on with the keys of a killed one is not listed as that.
  ASSERT_FALSE(killed_collector("tcp://127.0.0.1:45781").empty());
  EXPECT_EQ(listed("tcp://127.0.0.1:45781"), "tcp://127.0.0.1:45781");
}

TEST_F(LeftKeys, AFolderThatOthersCouldChangeIsNone) {
  const std::string endpoint = "tcp://127.0.0.1:45741";
  LocalKeys keys(endpoint, LocalKeys::Wanted::keys);
  keys.leave_at(endpoint);
  ASSERT_EQ(local_key_folder(endpoint), keys.folder());
  for (const mode_t mode : {0755, 0770, 0702}) {
    chmod(keys.folder().c_str(), mode);
    EXPECT_EQ(local_key_folder(endpoint), "") << mode;
  }
  chmod(keys.folder().c_str(), 0700);
  const std::string root = fs::path(keys.folder()).parent_path();
  chmod(root.c_str(), 0777);
  EXPECT_EQ(local_key_folder(endpoint), "");
  chmod(root.c_str(), 0700);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(keys.folder().c_str(), 65534, 65534), 0);
    EXPECT_EQ(local_key_folder(endpoint), "");
    ASSERT_EQ(chown(keys.folder().c_str(), 0, 0), 0);
  }
  EXPECT_EQ(local_key_folder(endpoint), keys.folder());
  // A runtime folder that is not private is not used.
  chmod(folder_.c_str(), 0755);
  LocalKeys next("tcp://127.0.0.1:45751", LocalKeys::Wanted::keys);
  next.leave_at("tcp://127.0.0.1:45751");
  EXPECT_EQ(next.folder().rfind(folder_ + "/state/", 0), 0U) << next.folder();
}

}  // namespace
}  // namespace shardscope::collector
