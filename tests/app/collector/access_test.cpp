// Who gets in: keys and their rights, and peers without any.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <zmq.hpp>

#include "instrumentation/keys.h"
#include "instrumentation/sockets.h"
#include "tests/app/collector/key_folder.h"
#include "tests/app/collector/raw_socket.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {
namespace {

RunTables secret_tables() {
  RunTables tables = tables_of(0, 1);
  tables.model = "secret-model";
  return tables;
}

/// A rank that shows a key.
struct KeyRank {
  KeyRank(const std::string& endpoint, const std::string& key) {
    RankLinkOptions options;
    options.endpoint = endpoint;
    options.key_file = key;
    options.gate = &gate;
    options.detail = [] { return 3; };
    link = std::make_unique<RankLink>(std::move(options), secret_tables());
  }
  void step(std::uint32_t number) {
    const std::int64_t now = monotonic_now_ns();
    link->push({event_of(EventKind::loss, now, StreamId::host, number)}, 0, now, now, 0);
    EXPECT_TRUE(eventually([&] { return link->collector_alive(); }));
    static_cast<void>(link->drain(10));  // until the socket has taken it
  }
  GateKeeper gate;
  std::unique_ptr<RankLink> link;
};

using Access = KeyFolder;

TEST_F(Access, EachKeyHasItsRightAndNoOther) {
  Collector collector(options());
  const std::string endpoint = collector.publish_endpoint();
  KeyRank rank(endpoint, path("publish"));
  rank.step(0);
  ASSERT_TRUE(eventually([&] { return collector.status().ranks_connected == 1; }));
  EXPECT_EQ(collector.status().refused, 0U);

  store::Store seen, controlled;
  Viewer viewer(endpoint, path("view")), controller(endpoint, path("control"));
  ASSERT_TRUE(eventually([&] {
    viewer.poll(seen, 5ms);
    controller.poll(controlled, 5ms);
    return seen.has_tables() && controlled.has_tables();
  }));
  EXPECT_EQ(seen.tables().model, "secret-model");

  // Who may only look is not obeyed.
  viewer.send({Command::Kind::pause, {}, {}});
  ASSERT_TRUE(eventually([&] { return collector.status().rejected_by["right"] == 1; }));
  EXPECT_FALSE(viewer.control().pausing);
  // Who may control is.
  controller.send({Command::Kind::pause, {}, {}});
  ASSERT_TRUE(eventually([&] {
    controller.poll(controlled, 5ms);
    return controller.control().pausing || controller.control().paused;
  }));
  EXPECT_EQ(collector.status().refused, 0U);

  // A viewing key publishes nothing, and a publishing key sees nothing: each gets the reason at once, and a
  // program that does not care is refused by the collector.
  EXPECT_THROW(KeyRank(endpoint, path("view")), std::runtime_error);
  EXPECT_THROW(Viewer(endpoint, path("publish")), std::runtime_error);
  zmq::context_t context;
  zmq::socket_t liar = make_socket(context, Role::viewer, read_key_file(path("publish")));
  liar.connect(endpoints_of(endpoint).view);
  ASSERT_TRUE(eventually([&] { return collector.status().refused >= 1; }));
  controller.send({Command::Kind::resume, {}, {}});
}

TEST_F(Access, WithoutAKeyThereIsNothingToLearn) {
  Collector collector(options());
  const Endpoints endpoints = endpoints_of(collector.publish_endpoint());
  KeyRank rank(collector.publish_endpoint(), path("publish"));
  rank.step(0);
  ASSERT_TRUE(eventually([&] { return collector.status().ranks_connected == 1; }));

  // Bytes: a peer that speaks ZeroMQ without a key gets the transport's greeting, which says "CURVE", and
  // nothing of ours.
  for (const std::string& endpoint : {endpoints.publish, endpoints.view, endpoints.control}) {
    const std::uint64_t before = collector.status().refused;
    const int fd = connect_raw(endpoint);
    ASSERT_GE(fd, 0) << endpoint;
    const std::string greeting = null_greeting(), ready = ready_command("DEALER");
    ASSERT_EQ(write(fd, greeting.data(), greeting.size()), 64);
    (void)!write(fd, ready.data(), ready.size());
    const std::string got = read_all(fd, 500ms);
    close(fd);
    EXPECT_LE(got.size(), 64U);
    EXPECT_EQ(got.find("ZSCW"), std::string::npos);
    EXPECT_EQ(got.find("collector-test"), std::string::npos);
    EXPECT_TRUE(eventually([&] { return collector.status().refused > before; })) << endpoint;
  }
  // Programs: without a key, with one that is on no list, with one for another collector.
  KeyFile elsewhere = read_key_file(path("control"));
  elsewhere.collector = make_key_pair().public_key;
  zmq::context_t context;
  for (const std::optional<KeyFile>& key :
       {std::optional<KeyFile>{}, std::optional{read_key_file(path("stranger"))}, std::optional{elsewhere}}) {
    const std::uint64_t before = collector.status().refused;
    zmq::socket_t peer = make_socket(context, Role::viewer, key);
    peer.set(zmq::sockopt::immediate, false);
    peer.connect(endpoints.view);
    wire::Message poll{{0, 77, 1, ""}, wire::ViewPoll{}};
    const wire::Frame frame = wire::encode(poll);
    (void)peer.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::dontwait);
    EXPECT_TRUE(eventually([&] { return collector.status().refused > before; }));
    peer.set(zmq::sockopt::rcvtimeo, 200);
    zmq::message_t reply;
    EXPECT_FALSE(peer.recv(reply).has_value());
  }
  EXPECT_EQ(collector.status().viewers, 0U);
  EXPECT_EQ(collector.status().rejected, 0U);  // nothing of theirs came as far as the protocol
  EXPECT_EQ(collector.status().ranks_connected, 1U);
}

TEST_F(Access, BindingElsewhereNeedsKeysOrAWord) {
  CollectorOptions o;
  o.listen = "tcp://0.0.0.0:0";
  try {
    Collector collector(o);
    FAIL() << "it listens for everybody";
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    for (const char* word : {"0.0.0.0", "shardscope keys", "--keys", "--insecure"}) {
      EXPECT_NE(text.find(word), std::string::npos) << text;
    }
  }
  for (const char* endpoint : {"tcp://*:0", "tcp://127.0.0.1.example.org:0", "tcp://[::]:0"}) {
    o.listen = endpoint;
    EXPECT_THROW(Collector{o}, std::runtime_error) << endpoint;
  }
  o.listen = "tcp://0.0.0.0:0";
  o.insecure = true;
  EXPECT_NO_THROW(Collector{o});
  o.insecure = false;
  o.keys = folder_;
  EXPECT_NO_THROW(Collector{o});
}

TEST_F(Access, KeyFilesAreChecked) {
  const auto refused = [&](const std::string& word) {
    try {
      (void)read_key_file(path("view"));
      FAIL() << "accepted: " << word;
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  const KeyFile good = read_key_file(path("view"));
  EXPECT_EQ(parse_key_file(format_key_file(good)).pair.secret_key, good.pair.secret_key);
  chmod(path("view").c_str(), 0640);
  refused("chmod 600");
  const auto folder_refused = [&](const std::string& word) {
    try {
      (void)collector_key(folder_);
      ADD_FAILURE() << "accepted: " << word;
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  folder_refused("view.key");  // whose right may be anybody's by now
  chmod(path("view").c_str(), 0600);
  EXPECT_NO_THROW((void)collector_key(folder_));
  for (const mode_t mode : {0755, 0710, 0701, 0770}) {
    chmod(folder_.c_str(), mode);
    folder_refused("chmod 700");
  }
  chmod(folder_.c_str(), 0700);
  // A name is a word of a line, and no more than that.
  KeyFile named = read_key_file(path("collector"));
  named.allowed[0].name = "anna.2_x-y";
  EXPECT_EQ(parse_key_file(format_key_file(named)).allowed[0].name, "anna.2_x-y");
  for (const char* name :
       {"a b", "a\nb", "a\n", "a\nallow control x", "", "../x", "a/b", "a\tb", "\xc3\xa4"}) {
    EXPECT_FALSE(is_key_name(name)) << name;
  }
  EXPECT_FALSE(is_key_name(std::string(65, 'a')));
  for (const char* name : {"a b", "a/b", "a\x1b[2J"}) {
    named.allowed[0].name = name;
    EXPECT_THROW((void)parse_key_file(format_key_file(named)), std::runtime_error) << name;
  }
  KeyFile bad = good;
  bad.pair.public_key = make_key_pair().public_key;
  write_key_file(path("view"), bad);
  refused("not that of the secret key");
  bad = good;
  bad.collector.clear();
  write_key_file(path("view"), bad);
  refused("collector");
  bad.pair.secret_key = "short";
  write_key_file(path("view"), bad);
  refused("40 characters");
  EXPECT_THROW((void)collector_key(path("publish")), std::runtime_error);
  EXPECT_THROW((void)read_key_file(folder_ + "/none.key"), std::runtime_error);
  struct stat info {};
  ASSERT_EQ(stat(path("collector").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

}  // namespace
}  // namespace shardscope::collector
