// Messages that no correct peer sends: counted by kind, and ignored.
#include <gtest/gtest.h>

#include <string>
#include <zmq.hpp>

#include "app/collector/view_server.h"
#include "instrumentation/schema_generated.h"
#include "instrumentation/sockets.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {
namespace {

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
    const wire::Frame frame = wire::encode({{0, incarnation, sequence, "collector-test"}, std::move(body)});
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
  Collector collector(open_to_all());
  Peer peer(collector);
  const wire::Text text{1, Severity::info, "hello"};
  peer.send(0, wire::Tables{tables_of(0, 1)});
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
  const auto run = b.CreateString("collector-test");
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
  // Numbers that no process can have come to: neither lost messages nor dropped events.
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

/// A viewer that sends any message, and the collector that receives it.
struct RawViewer {
  RawViewer() { socket.connect(endpoints_of(collector.publish_endpoint()).view); }
  void send(const wire::Frame& frame) {
    EXPECT_TRUE(
        socket.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::none).has_value());
  }
  [[nodiscard]] std::uint64_t rejected(const char* kind) { return collector.status().rejected_by[kind]; }

  Collector collector{open_to_all()};
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

}  // namespace
}  // namespace shardscope::collector
