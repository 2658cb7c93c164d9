// Who gets in: keys and their rights, peers without any, and messages that no correct peer sends.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <zmq.hpp>

#include "app/collector/collector.h"
#include "app/collector/view_server.h"
#include "app/collector/viewer.h"
#include "instrumentation/clock.h"
#include "instrumentation/keys.h"
#include "instrumentation/rank_link.h"
#include "instrumentation/schema_generated.h"
#include "instrumentation/sockets.h"

namespace shardscope::collector {
namespace {

using namespace std::chrono_literals;
using namespace instrumentation;
namespace fs = std::filesystem;

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = 20s) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(2ms);
  }
  return condition();
}

RunTables tables_of(const std::string& run_id = "access-test") {
  RunTables t;
  t.run_id = run_id;
  t.model = "secret-model";
  return t;
}

/// One rank's link with its own gates.
struct Rank {
  Rank(const std::string& endpoint, const std::string& key) {
    RankLinkOptions options;
    options.endpoint = endpoint;
    options.key_file = key;
    options.gate = &gate;
    options.detail = [] { return 3; };
    link = std::make_unique<RankLink>(std::move(options), tables_of());
  }
  ~Rank() { link.reset(); }
  void step(std::uint32_t number) {
    Event event;
    event.kind = EventKind::loss;
    event.a = number;
    event.ticks = static_cast<std::uint64_t>(monotonic_now_ns());
    const std::int64_t now = monotonic_now_ns();
    link->push({event}, 0, now, now, 0);
    EXPECT_TRUE(eventually([&] { return link->collector_alive(); }));
    static_cast<void>(link->drain(10));  // until the socket has taken it
  }
  GateKeeper gate;
  std::unique_ptr<RankLink> link;
};

class Access : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "access_" + std::to_string(getpid());
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
    CollectorOptions o;
    o.listen = "tcp://127.0.0.1:0";
    o.keys = folder_;
    return o;
  }
  std::string folder_;
};

/// Reads what `fd` gets until it is closed or `quiet` passes without a byte.
std::string read_all(int fd, std::chrono::milliseconds quiet) {
  std::string got;
  for (;;) {
    pollfd item{fd, POLLIN, 0};
    if (poll(&item, 1, static_cast<int>(quiet.count())) <= 0) return got;
    char bytes[4096];
    const ssize_t n = read(fd, bytes, sizeof bytes);
    if (n <= 0) return got;
    got.append(bytes, static_cast<std::size_t>(n));
  }
}

int connect_raw(const std::string& endpoint) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

TEST_F(Access, EachKeyHasItsRightAndNoOther) {
  Collector collector(options());
  const std::string endpoint = collector.publish_endpoint();
  Rank rank(endpoint, path("publish"));
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

  // A viewing key publishes nothing, and a publishing key sees nothing: each is told so at once, and a
  // program that does not care is refused by the collector.
  EXPECT_THROW(Rank(endpoint, path("view")), std::runtime_error);
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
  Rank rank(collector.publish_endpoint(), path("publish"));
  rank.step(0);
  ASSERT_TRUE(eventually([&] { return collector.status().ranks_connected == 1; }));

  // Bytes: a peer that speaks ZeroMQ without a key gets the transport's greeting, which says "CURVE", and
  // nothing of ours.
  for (const std::string& endpoint : {endpoints.publish, endpoints.view, endpoints.control}) {
    const std::uint64_t before = collector.status().refused;
    const int fd = connect_raw(endpoint);
    char greeting[64]{};
    greeting[0] = static_cast<char>(0xFF);
    greeting[9] = 0x7F;
    greeting[10] = 3;
    std::memcpy(greeting + 12, "NULL", 4);
    ASSERT_EQ(write(fd, greeting, sizeof greeting), 64);
    const std::string ready(
        "\x04\x19\x05READY\x0bSocket-Type\0\0\0\x06"
        "DEALER",
        27);
    (void)!write(fd, ready.data(), ready.size());
    const std::string got = read_all(fd, 500ms);
    close(fd);
    EXPECT_LE(got.size(), 64U);
    EXPECT_EQ(got.find("ZSCW"), std::string::npos);
    EXPECT_EQ(got.find("access-test"), std::string::npos);
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
  for (const char* name : {"a b", "a\nallow control x", "", "../x", "a\tb", "\xc3\xa4"}) {
    EXPECT_FALSE(is_key_name(name)) << name;
  }
  EXPECT_FALSE(is_key_name(std::string(65, 'a')));
  named.allowed[0].name = "a b";
  EXPECT_THROW((void)parse_key_file(format_key_file(named)), std::runtime_error);
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

/// Sends frames as a rank would, one by one, and asks how they were taken.
class Peer {
 public:
  explicit Peer(Collector& collector)
      : collector_(collector), socket_(make_socket(context_, Role::rank_publish)) {
    socket_.connect(endpoints_of(collector.publish_endpoint()).publish);
  }
  void send(const std::string& bytes) { ASSERT_TRUE(socket_.send(zmq::buffer(bytes)).has_value()); }
  void send(std::uint64_t sequence, wire::Body body, std::uint64_t incarnation = 5) {
    send(encoded(sequence, std::move(body), incarnation));
  }
  static std::string encoded(std::uint64_t sequence, wire::Body body, std::uint64_t incarnation = 5) {
    const wire::Frame frame = wire::encode({{0, incarnation, sequence, "access-test"}, std::move(body)});
    return {reinterpret_cast<const char*>(frame.data()), frame.size()};
  }
  /// Each rejection of `kind` so far.
  [[nodiscard]] std::uint64_t rejected(const std::string& kind) const {
    auto by = collector_.status().rejected_by;
    return by[kind];
  }

 private:
  Collector& collector_;
  zmq::context_t context_;
  zmq::socket_t socket_;
};

TEST(Messages, ThatNoCorrectPeerSendsAreCountedByKindAndIgnored) {
  CollectorOptions o;
  o.insecure = true;
  o.listen = "tcp://127.0.0.1:0";
  Collector collector(o);
  Peer peer(collector);
  const wire::Text text{1, Severity::info, "hello"};
  peer.send(0, wire::Tables{tables_of()});
  peer.send(1, text);
  ASSERT_TRUE(eventually([&] { return collector.status().messages == 2; }));

  peer.send("not a message of this protocol at all");
  std::string damaged = Peer::encoded(2, text);
  damaged.resize(damaged.size() / 2);
  peer.send(damaged);
  EXPECT_TRUE(eventually([&] { return peer.rejected("garbage") == 2; }));
  peer.send("tiny");
  EXPECT_TRUE(eventually([&] { return peer.rejected("size") == 1; }));

  flatbuffers::FlatBufferBuilder b;
  const auto run = b.CreateString("access-test");
  const auto body = fb::CreateText(b, 1, 0, b.CreateString("hello")).Union();
  fb::FinishFrameBuffer(b, fb::CreateFrame(b, wire::kVersion + 1, 0, 5, 2, run, fb::Body_Text, body));
  const std::string future(reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize());
  peer.send(future);
  EXPECT_TRUE(eventually([&] { return peer.rejected("version") == 1; }));

  peer.send(2, wire::ViewPoll{});  // not a rank's to say
  EXPECT_TRUE(eventually([&] { return peer.rejected("body") == 1; }));
  wire::Batch impossible;
  impossible.dropped_here = 1;
  peer.send(2, impossible);
  EXPECT_TRUE(eventually([&] { return peer.rejected("value") == 1; }));
  // Numbers that nobody can have come to: neither lost messages nor dropped events.
  peer.send(std::uint64_t{1} << 62, text);
  peer.send(std::uint64_t{1} << 34, text);
  impossible.dropped_here = impossible.dropped_total = std::uint64_t{1} << 62;
  peer.send(2, impossible);
  EXPECT_TRUE(eventually([&] { return peer.rejected("value") == 4; }));
  EXPECT_EQ(collector.status().dropped, 0U);

  peer.send(1, text);  // replayed
  peer.send(0, text);  // out of order
  EXPECT_TRUE(eventually([&] { return peer.rejected("order") == 2; }));
  peer.send(0, text, 6);  // another process takes the rank's place
  peer.send(2, text, 5);  // and the one before is not listened to any more
  EXPECT_TRUE(eventually([&] { return peer.rejected("order") == 3; }));

  // None of it was taken for what it said, and the connection still works.
  peer.send(1, text, 6);
  EXPECT_TRUE(eventually([&] { return collector.status().messages == 4; }));
  EXPECT_EQ(collector.status().rejected, 12U);
  collector.read([](const store::Store& store) {
    for (const store::RankRow& rank : store.ranks()) EXPECT_EQ(rank.lost_messages, 0U);
  });
}

/// A viewer that says what it likes, and the collector that hears it.
struct RawViewer {
  RawViewer() { socket.connect(endpoints_of(collector.publish_endpoint()).view); }
  void send(const wire::Frame& frame) {
    EXPECT_TRUE(
        socket.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::none).has_value());
  }
  [[nodiscard]] std::uint64_t rejected(const char* kind) { return collector.status().rejected_by[kind]; }

  Collector collector{[] {
    CollectorOptions o;
    o.insecure = true;
    o.listen = "tcp://127.0.0.1:0";
    return o;
  }()};
  zmq::context_t context;
  zmq::socket_t socket = make_socket(context, Role::viewer);
};

TEST(Messages, OversizedAndReplayedCommandsOfViewersAreCounted) {
  RawViewer viewer;
  const std::string large(wire::kMaxControlBytes + 1, 'x');
  ASSERT_TRUE(viewer.socket.send(zmq::buffer(large)).has_value());
  ASSERT_TRUE(eventually([&] { return viewer.rejected("size") == 1; }));
  wire::ViewCommand command;
  command.id = 3;
  command.kind = wire::ViewCommand::Kind::set_detail;
  const wire::Frame frame = wire::encode({{0, 9, 0, ""}, command});
  for (int i = 0; i < 3; ++i) viewer.send(frame);
  EXPECT_TRUE(eventually([&] { return viewer.rejected("order") == 2; }));
}

TEST(Messages, OfViewersBeyondTheLastAreCounted) {
  RawViewer viewer;
  for (std::uint64_t id = 1; id <= ViewServer::kMaxPeers + 3; ++id) {
    viewer.send(wire::encode({{0, id, 0, ""}, wire::ViewPoll{}}));
  }
  EXPECT_TRUE(eventually([&] { return viewer.rejected("full") == 3; }));
  EXPECT_EQ(viewer.collector.status().viewers, ViewServer::kMaxPeers);
}

/// A message as ZMTP 1.0 writes it: frames of (length with flags, flags, bytes). No greeting comes before it.
std::string old_frame(const std::string& body, bool more) {
  std::string out;
  const std::uint64_t length = body.size() + 1;
  if (length < 255) {
    out.push_back(static_cast<char>(length));
  } else {
    out.push_back(static_cast<char>(0xFF));
    for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(length >> shift));
  }
  out.push_back(more ? 1 : 0);
  return out + body;
}

/// What a script on a web page can send to a port of this machine: a request with a body of its choice.
/// libzmq's ZMTP 1.0 takes the 'P' for the length of a frame, and what follows for frames. Where in the body
/// one of them begins is found here; `messages` lie there.
std::string web_page_request(const std::string& messages) {
  constexpr std::size_t kBody = 2048;
  const std::string head =
      "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\nContent-Type: text/plain\r\n"
      "Content-Length: " +
      std::to_string(kBody) + "\r\n\r\n";
  std::size_t at = 0;
  while (at < head.size()) at += 1 + static_cast<std::uint8_t>(head[at]);
  // The last frame of the head may ask for another one; this ends that message.
  std::string body = std::string(at - head.size(), 'x') + old_frame("", false) + messages;
  EXPECT_LE(body.size(), kBody);
  body.resize(kBody, 1);  // empty frames
  return head + body;
}

std::string old_message(std::uint64_t sequence, wire::Body body, const std::string& run = {}) {
  wire::Message message;
  message.header.incarnation = 666;
  message.header.sequence = sequence;
  message.header.run_id = run;
  message.body = std::move(body);
  const wire::Frame frame = wire::encode(message);
  return old_frame({reinterpret_cast<const char*>(frame.data()), frame.size()}, false);
}

/// A run with a rank that is heard, and what somebody makes of it.
struct AttackedRun {
  explicit AttackedRun(const CollectorOptions& o, const std::string& key = {}) : collector(o) {
    RankLinkOptions options;
    options.endpoint = collector.publish_endpoint();
    options.key_file = key;
    options.gate = &gate;
    options.detail = [this] { return static_cast<int>(detail.load()); };
    options.set_detail = [this](Detail to) { detail.store(to); };
    link = std::make_unique<RankLink>(std::move(options), tables_of());
    EXPECT_TRUE(eventually([&] {
      link->pump();
      return collector.status().ranks_connected == 1 && collector.status().messages >= 1;
    }));
  }
  /// Sends `bytes` to `port` and waits until the collector has hung up and counted it.
  void attack(const std::string& port, const std::string& bytes) {
    const std::uint64_t before = collector.status().refused;
    const int fd = connect_raw(port);
    EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    const std::string got = read_all(fd, 1000ms);
    EXPECT_TRUE(eventually([&] { return collector.status().refused > before; }, 3s)) << port;
    close(fd);
    EXPECT_EQ(got.find("ZSCW"), std::string::npos) << port;
  }
  GateKeeper gate;
  std::atomic<Detail> detail{Detail::params};
  Collector collector;
  std::unique_ptr<RankLink> link;
};

/// Commands on the viewers' port, events and a hello on the others: each as the body of a page's request, as
/// a peer of ZMTP 1.0 would send them without one, and after a greeting of ZMTP 2.0.
void attack_every_port(AttackedRun& run) {
  const Endpoints ports = endpoints_of(run.collector.publish_endpoint());
  wire::ViewCommand lower, pause;
  lower.id = 1;
  lower.kind = wire::ViewCommand::Kind::set_detail;
  lower.detail = Detail::steps;
  pause.id = 2;
  pause.kind = wire::ViewCommand::Kind::pause;
  const std::string commands = old_message(0, lower) + old_message(0, pause);
  wire::Finish finish;
  finish.exit_code = 7;
  const std::string lies =
      old_message(0, wire::Tables{tables_of()}, "access-test") + old_message(1, finish, "access-test");
  wire::Hello greeting;
  greeting.host = "evil";
  const std::string hello = old_message(0, greeting, "access-test");
  const std::uint64_t messages = run.collector.status().messages;
  for (const auto& [port, what] :
       {std::pair{ports.view, commands}, std::pair{ports.publish, lies}, std::pair{ports.control, hello}}) {
    run.attack(port, web_page_request(what));
    run.attack(port, old_frame("", false) + what);  // its first frame is its name
    const std::string second = std::string("\xFF\0\0\0\0\0\0\0\1\x7F\1\5\0\0", 14) + what;
    run.attack(port, second);
  }
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(run.detail.load(), Detail::params);
  EXPECT_FALSE(run.gate.position().holding);
  const CollectorStatus status = run.collector.status();
  EXPECT_EQ(status.messages, messages);
  EXPECT_EQ(status.rejected, 0U);  // nothing of it came as far as the protocol
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_FALSE(status.finished);
  EXPECT_EQ(status.viewers, 0U);
}

TEST_F(Access, AWebPageControlsNoRunWithKeys) {
  AttackedRun run(options(), path("publish"));
  attack_every_port(run);
}

TEST(Messages, AWebPageControlsNoRunForWhichNobodySetUpKeys) {
  CollectorOptions o;
  o.listen = "tcp://127.0.0.1:0";
  AttackedRun run(o);
  attack_every_port(run);
}

TEST(Messages, AWebPageControlsNoRunWithoutKeys) {
  CollectorOptions o;
  o.listen = "tcp://127.0.0.1:0";
  o.insecure = true;
  AttackedRun run(o);
  attack_every_port(run);
}

TEST(Messages, APortScannerIsCounted) {
  CollectorOptions o;
  o.listen = "tcp://127.0.0.1:0";
  Collector collector(o);
  const int fd = connect_raw(collector.publish_endpoint());
  const std::string request =
      "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: a curious one, long enough for a greeting\r\n\r\n";
  ASSERT_GT(write(fd, request.data(), request.size()), 0);
  (void)read_all(fd, 500ms);
  close(fd);
  EXPECT_TRUE(eventually([&] { return collector.status().refused >= 1; }));
}

}  // namespace
}  // namespace shardscope::collector
