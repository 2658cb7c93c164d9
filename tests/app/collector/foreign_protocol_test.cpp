// What speaks another protocol to a collector's ports: a web page's script, old versions of ZMTP, a scanner.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "instrumentation/sockets.h"
#include "tests/app/collector/key_folder.h"
#include "tests/app/collector/raw_socket.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {
namespace {

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
  constexpr std::size_t kBody = 4096;
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

/// A run with a connected rank, and attacks on its collector's ports.
struct AttackedRun {
  explicit AttackedRun(const CollectorOptions& options, const std::string& key = {})
      : collector(options), rank(collector.publish_endpoint(), key) {
    EXPECT_TRUE(eventually([&] {
      rank.link.pump();
      return collector.status().ranks_connected == 1 && collector.status().messages >= 1;
    }));
  }
  /// Sends `bytes` to `port` and waits until the collector has hung up and counted it.
  void attack(const std::string& port, const std::string& bytes) {
    const std::uint64_t before = collector.status().refused;
    const int fd = connect_raw(port);
    ASSERT_GE(fd, 0) << port;
    EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    const std::string got = read_all(fd, 1000ms);
    EXPECT_TRUE(eventually([&] { return collector.status().refused > before; }, 3s)) << port;
    close(fd);
    EXPECT_EQ(got.find("ZSCW"), std::string::npos) << port;
  }
  Collector collector;
  SettableRank rank;
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
  const std::string lies = old_message(0, wire::Tables{tables_of(0, 1)}, "collector-test") +
                           old_message(1, finish, "collector-test");
  wire::Hello greeting;
  greeting.host = "evil";
  const std::string hello = old_message(0, greeting, "collector-test");
  const std::uint64_t messages = run.collector.status().messages;
  for (const auto& [port, what] :
       {std::pair{ports.view, commands}, std::pair{ports.publish, lies}, std::pair{ports.control, hello}}) {
    run.attack(port, web_page_request(what));
    run.attack(port, old_frame("", false) + what);  // its first frame is its name
    const std::string second = std::string("\xFF\0\0\0\0\0\0\0\1\x7F\1\5\0\0", 14) + what;
    run.attack(port, second);
  }
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(run.rank.level(), Detail::params);
  EXPECT_FALSE(run.rank.gate.position().holding);
  const CollectorStatus status = run.collector.status();
  EXPECT_EQ(status.messages, messages);
  EXPECT_EQ(status.rejected, 0U);  // nothing of it came as far as the protocol
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_FALSE(status.finished);
  EXPECT_EQ(status.viewers, 0U);
}

using ForeignProtocolWithKeys = KeyFolder;

TEST_F(ForeignProtocolWithKeys, AWebPageControlsNoRun) {
  AttackedRun run(options(), path("publish"));
  attack_every_port(run);
}

TEST(ForeignProtocol, AWebPageControlsNoRunThatHasOnlyItsOwnKeys) {
  AttackedRun run(local());
  attack_every_port(run);
}

TEST(ForeignProtocol, AWebPageControlsNoRunWithoutKeys) {
  AttackedRun run(open_to_all());
  attack_every_port(run);
}

TEST(ForeignProtocol, APortScannerIsCounted) {
  Collector collector(local());
  const int fd = connect_raw(collector.publish_endpoint());
  ASSERT_GE(fd, 0);
  const std::string request =
      "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: a curious one, long enough for a greeting\r\n\r\n";
  ASSERT_GT(write(fd, request.data(), request.size()), 0);
  (void)read_all(fd, 500ms);
  close(fd);
  EXPECT_TRUE(eventually([&] { return collector.status().refused >= 1; }));
}

}  // namespace
}  // namespace shardscope::collector
