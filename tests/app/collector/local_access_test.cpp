// Collectors of this machine: the keys that programs of the same user find by themselves, who else is kept
// out, and what is known afterwards of who did what.
#include "tests/app/collector/local_access.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <vector>
#include <zmq.hpp>

#include "app/store/control_text.h"
#include "app/store/recording.h"
#include "instrumentation/sockets.h"

namespace shardscope::collector {
namespace {

mode_t mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

bool is_said(Collector& collector, const std::string& text) {
  bool found = false;
  collector.read(
      [&](const store::Store& store) { found = all_texts(store).find(text) != std::string::npos; });
  return found;
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* out = popen(command.c_str(), "r");
  if (out == nullptr) return text;
  std::array<char, 4096> part{};
  while (const std::size_t n = fread(part.data(), 1, part.size(), out)) text.append(part.data(), n);
  pclose(out);
  return text;
}

Command lower_detail() { return {Command::Kind::set_detail, {}, Detail::steps}; }

TEST_F(LocalAccess, ProgramsOfTheUserFindTheKeysAndNoOtherUserCanReadThem) {
  {
    Collector collector(local());
    const std::string folder = local_key_folder(collector.publish_endpoint());
    ASSERT_FALSE(folder.empty());
    EXPECT_EQ(collector.keys(), folder);
    EXPECT_EQ(mode_of(folder), 0700U);
    EXPECT_EQ(mode_of(fs::path(folder).parent_path()), 0700U);
    for (const auto& entry : fs::directory_iterator(folder)) EXPECT_EQ(mode_of(entry.path()), 0600U) << entry;

    Rank rank(collector.publish_endpoint(), 0, 1);
    rank.step(0);
    rank.settle();
    Viewer viewer(collector.publish_endpoint());
    store::Store store;
    EXPECT_TRUE(follow(viewer, store, [&] { return store.has_tables(); }));
    EXPECT_EQ(collector.status().refused, 0U);

    // Without the key: nothing.
    const std::uint64_t before = collector.status().refused;
    zmq::context_t context;
    zmq::socket_t stranger = make_socket(context, Role::viewer);
    stranger.set(zmq::sockopt::immediate, false);
    stranger.connect(endpoints_of(collector.publish_endpoint()).view);
    wire::ViewCommand command;
    command.id = 1;
    command.kind = wire::ViewCommand::Kind::pause;
    const wire::Frame frame = wire::encode({{0, 77, 1, ""}, command});
    (void)stranger.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::dontwait);
    EXPECT_TRUE(eventually([&] { return collector.status().refused > before; }));
    EXPECT_FALSE(is_said(collector, "a pause was requested"));
    EXPECT_EQ(collector.status().rejected, 0U);
  }
  EXPECT_TRUE(left().empty());
}

// As a simulation's: each link makes new sockets while its old ones are still being closed.
TEST_F(LocalAccess, ManyLinksOfAProcessTakeAnotherKeyAtOnce) {
  constexpr std::uint32_t kLinks = 60;
  std::optional<Collector> collector(local());
  const std::string endpoint = collector->publish_endpoint();
  LinkContext context(kLinks);
  std::vector<std::unique_ptr<GateKeeper>> gates;
  std::vector<std::unique_ptr<RankLink>> links;
  for (std::uint32_t rank = 0; rank < kLinks; ++rank) {
    gates.push_back(std::make_unique<GateKeeper>());
    RankLinkOptions options;
    options.endpoint = endpoint;
    options.queue_bytes = 1 << 20;
    options.gate = gates.back().get();
    options.shared = &context;
    RunTables tables;
    tables.run_id = "many links";
    tables.rank = rank;
    tables.world = kLinks;
    links.push_back(std::make_unique<RankLink>(std::move(options), std::move(tables)));
  }
  const auto all_connected = [&] {
    for (const auto& link : links) link->pump();
    std::uint32_t connected = 0;
    collector->read([&](const store::Store& store) {
      for (const store::RankRow& row : store.ranks()) connected += row.connected ? 1U : 0U;
    });
    return connected == kLinks;
  };
  ASSERT_TRUE(eventually(all_connected, 60s));
  collector.reset();
  CollectorOptions options = local();
  options.listen = endpoint;
  collector.emplace(options);
  EXPECT_TRUE(eventually(all_connected, 60s));
}

TEST_F(LocalAccess, WhoMerelyTookThePortIsNotConnectedTo) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 8), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string endpoint = "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  // Its view port is the one before, so that this viewer looks where the other listens.
  const std::string before = "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port) - 1);
  {
    Rank rank(endpoint, 0, 1);
    rank.step(0);
    Viewer viewer(before);
    store::Store store;
    EXPECT_TRUE(follow(viewer, store, [&] { return !viewer.control().note.empty(); }));
    EXPECT_NE(viewer.control().note.find("--key"), std::string::npos) << viewer.control().note;
    std::this_thread::sleep_for(600ms);  // longer than both look again
    EXPECT_LT(accept(fd, nullptr, nullptr), 0);
  }
  // Whoever is asked to connects all the same.
  Viewer viewer(before, kNoKey);
  int accepted = -1;
  EXPECT_TRUE(eventually([&] { return (accepted = accept(fd, nullptr, nullptr)) >= 0; }));
  close(accepted);
  close(fd);
}

TEST_F(LocalAccess, RanksComeBackToAnotherCollectorWithOtherKeys) {
  std::string endpoint;
  GateKeeper gate;
  std::unique_ptr<Rank> rank;
  for (const bool insecure : {false, false, true, false}) {
    CollectorOptions options = insecure ? everybody() : local();
    if (!endpoint.empty()) options.listen = endpoint;
    Collector collector(options);
    endpoint = collector.publish_endpoint();
    if (!rank) rank = std::make_unique<Rank>(endpoint, 0, 1);
    EXPECT_TRUE(rank->until([&] { return collector.status().ranks_connected == 1; })) << insecure;
    rank->step(1);
    EXPECT_TRUE(rank->until([&] { return collector.status().events > 0; }));
  }
}

TEST_F(LocalAccess, InsecureIsNamedAndLetsInEverybody) {
  Collector collector(everybody());
  EXPECT_EQ(collector.keys(), "");
  EXPECT_TRUE(eventually(
      [&] { return is_said(collector, "control: --insecure: anyone who reaches tcp://127.0.0.1:"); }));
  Rank rank(collector.publish_endpoint(), 0, 1);
  rank.step(0);
  rank.settle();
  Viewer found(collector.publish_endpoint()), asked(collector.publish_endpoint(), kNoKey);
  store::Store a, b;
  EXPECT_TRUE(follow(found, a, [&] { return a.has_tables(); }));
  EXPECT_TRUE(follow(asked, b, [&] { return b.has_tables(); }));
  asked.send(lower_detail());
  EXPECT_TRUE(follow(asked, b, [&] {
    return all_texts(b).find(
               "control: detail lowered from params to steps by a peer without a key from 127.0.0.1") !=
           std::string::npos;
  })) << all_texts(b);
}

TEST_F(LocalAccess, WhatAViewerDidIsRecordedWithItsName) {
  const std::string keys = folder_ + "/keys", path = folder_ + "/run.zscope";
  fs::create_directory(keys);
  fs::permissions(keys, fs::perms::owner_all);
  KeyFile of_collector;
  of_collector.role = KeyRole::collector;
  of_collector.pair = make_key_pair();
  const auto add = [&](KeyRole role, const std::string& file, const std::string& name) {
    KeyFile key;
    key.role = role;
    key.pair = make_key_pair();
    key.collector = of_collector.pair.public_key;
    of_collector.allowed.push_back({role, key.pair.public_key, name});
    write_key_file(keys + "/" + file + ".key", key);
    return key.pair.public_key;
  };
  add(KeyRole::publish, "publish", "publish");
  add(KeyRole::control, "anna", "anna");
  const std::string unnamed = add(KeyRole::control, "unnamed", "");
  write_key_file(keys + "/collector.key", of_collector);
  CollectorOptions options = local();
  options.keys = keys;
  options.record_path = path;
  {
    Collector collector(options);
    RankLinkOptions of;
    of.endpoint = collector.publish_endpoint();
    of.key_file = keys + "/publish.key";
    GateKeeper gate;
    of.gate = &gate;
    of.detail = [] { return static_cast<int>(Detail::params); };
    RankLink link(std::move(of), tables_of(0, 1));
    ASSERT_TRUE(eventually([&] {
      link.pump();
      return collector.status().ranks_connected == 1;
    }));
    Viewer anna(collector.publish_endpoint(), keys + "/anna.key"),
        other(collector.publish_endpoint(), keys + "/unnamed.key");
    store::Store store;
    const auto recorded = [&](const std::string& text) {
      EXPECT_TRUE(follow(anna, store,
                         [&] {
                           link.pump();
                           return all_texts(store).find(text) != std::string::npos;
                         }))
          << text << "\n"
          << all_texts(store);
    };
    anna.send({Command::Kind::pause, {}, {}});
    recorded("control: a pause was requested by key 'anna' from 127.0.0.1");
    anna.send({Command::Kind::resume, {StopRule::Kind::run_to_step, 7, 0}, {}});
    recorded("control: a step to step 7 was requested by key 'anna' from 127.0.0.1");
    other.send({Command::Kind::resume, {}, {}});
    recorded("control: the run was resumed by key " + unnamed.substr(0, 8) + "... from 127.0.0.1");
    anna.send(lower_detail());
    recorded("control: detail lowered from params to steps by key 'anna' from 127.0.0.1");
    link.post(wire::Body(wire::Finish{0, monotonic_now_ns(), 0, "done"}));
    EXPECT_TRUE(eventually([&] {
      link.pump();
      return link.finish_received();
    }));
  }
  store::RecordingInfo info;
  const store::Store store = store::open_recording(path, &info);
  EXPECT_TRUE(info.complete);
  EXPECT_TRUE(store::detail_was_lowered(store.messages()));
  const std::vector<std::string> lines = store::control_lines(store.messages());
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[3], "detail lowered from params to steps by key 'anna' from 127.0.0.1");
  EXPECT_EQ(store::control_lines(store.messages(), 1).size(), 3U);  // one, the lowered detail, how many more
  // Complete, but without all that was requested.
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "shardscope";
  if (!fs::exists(program)) return;  // a build of some tests only
  const std::string reported = output_of(program.string() + " info " + path);
  EXPECT_NE(reported.find("complete\n"), std::string::npos) << reported;
  EXPECT_NE(reported.find("lowered while the run went on"), std::string::npos) << reported;
  EXPECT_NE(reported.find("by key 'anna' from 127.0.0.1"), std::string::npos) << reported;
  EXPECT_NE(output_of(program.string() + " summary " + path).find("by key 'anna'"), std::string::npos);
  EXPECT_NE(output_of(program.string() + " info --json " + path).find("\"detail_lowered\": true"),
            std::string::npos);
}

TEST_F(LocalAccess, OverIpcTheKernelSaysWhoMayComeIn) {
  const std::string endpoint = "ipc://" + folder_ + "/c";
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  pid_t nobody = -1;
  if (geteuid() == 0) {
    nobody = fork();  // before this process has threads
    if (nobody == 0) {
      char byte = 0;
      if (read(go[0], &byte, 1) != 1 || setgid(65534) != 0 || setuid(65534) != 0) _exit(3);
      zmq::context_t context;
      zmq::socket_t socket = make_socket(context, Role::viewer);
      socket.set(zmq::sockopt::immediate, false);
      socket.connect(endpoints_of(endpoint).view);
      wire::ViewCommand command;
      command.id = 1;
      command.kind = wire::ViewCommand::Kind::set_detail;
      const wire::Frame frame = wire::encode({{0, 77, 1, ""}, command});
      (void)socket.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::dontwait);
      for (;;) pause();
    }
  }
  {
    CollectorOptions options = local(endpoint);
    Collector collector(options);
    Rank rank(endpoint, 0, 1);
    rank.step(0);
    rank.settle();
    for (const std::string& file : {endpoint, endpoints_of(endpoint).view, endpoints_of(endpoint).control}) {
      struct stat info {};
      ASSERT_EQ(stat(file.substr(6).c_str(), &info), 0) << file;
      EXPECT_EQ(info.st_mode & 0777, 0600U) << file;
    }
    if (nobody > 0) {
      // Whatever the file's mode is: the connection is another user's.
      chmod(folder_.c_str(), 0755);
      chmod((folder_ + "/c.view").c_str(), 0777);
      ASSERT_EQ(write(go[1], "x", 1), 1);
      EXPECT_TRUE(eventually([&] { return collector.status().refused > 0; }));
      EXPECT_TRUE(eventually([&] { return is_said(collector, "not a process of this collector's user"); }));
      EXPECT_FALSE(is_said(collector, "detail"));
    }
    Viewer viewer(endpoint);
    store::Store store;
    ASSERT_TRUE(follow(viewer, store, [&] { return store.has_tables(); }));
    viewer.send(lower_detail());
    const std::string who = "by a process without a key (process " + std::to_string(getpid()) + " of user " +
                            std::to_string(geteuid()) + ")";
    EXPECT_TRUE(follow(viewer, store, [&] { return all_texts(store).find(who) != std::string::npos; }))
        << all_texts(store);
    if (nobody > 0) {
      kill(nobody, SIGKILL);
      waitpid(nobody, nullptr, 0);
    }
  }
  close(go[0]);
  close(go[1]);
  if (geteuid() != 0) return;
  // The other way round: a socket that is somebody else's is not this user's collector.
  std::ofstream(folder_ + "/theirs").put('x');
  ASSERT_EQ(chown((folder_ + "/theirs").c_str(), 65534, 65534), 0);
  EXPECT_FALSE(Credentials("ipc://" + folder_ + "/theirs", "", {KeyRole::publish}).known());
  ASSERT_EQ(chown((folder_ + "/theirs").c_str(), 0, 0), 0);
  EXPECT_TRUE(Credentials("ipc://" + folder_ + "/theirs", "", {KeyRole::publish}).known());
}

}  // namespace
}  // namespace shardscope::collector
