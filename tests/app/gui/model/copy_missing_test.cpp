// What a copy of a live run reports as missing from it: events of its own run, and nothing else.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>
#include <zmq.hpp>

#include "app/collector/collector.h"
#include "app/collector/viewer.h"
#include "app/gui/model/copy_recording.h"
#include "app/store/chunk.h"
#include "app/store/recording.h"
#include "app/store/store.h"
#include "instrumentation/clock.h"
#include "instrumentation/local_keys.h"
#include "instrumentation/sockets.h"
#include "instrumentation/wire.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::gui {
namespace {

namespace fs = std::filesystem;
namespace wire = instrumentation::wire;
using collector::eventually;
using collector::kEventsPerStep;
using collector::Rank;
using instrumentation::EventKind;
using namespace std::chrono_literals;

/// A chunk of two events.
wire::ViewItem chunk_item(std::uint64_t sequence) {
  store::Chunk chunk;
  chunk.sequence = sequence;
  const auto at_ns = static_cast<std::int64_t>(1'000'000'000 + sequence * 1'000'000);
  const auto step = static_cast<std::uint32_t>(sequence);
  chunk.events = {
      collector::event_of(EventKind::step_begin, at_ns, instrumentation::StreamId::host, step),
      collector::event_of(EventKind::step_end, at_ns + 1000, instrumentation::StreamId::host, step)};
  const std::vector<std::byte> encoded = chunk.encode();
  wire::ViewItem item;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(encoded.data());
  item.data.assign(bytes, bytes + encoded.size());
  return item;
}

wire::ViewReply reply_of(std::uint64_t log, std::uint64_t chunks, std::uint64_t end) {
  wire::ViewReply reply;
  reply.log = log;
  for (std::uint64_t i = 0; i < chunks; ++i) reply.items.push_back(chunk_item(i));
  reply.cursor = chunks;
  reply.end_cursor = end;
  return reply;
}

/// Gives out replies that were made before, each when it is allowed to.
class ScriptedCollector {
 public:
  ScriptedCollector(std::string endpoint, std::vector<wire::ViewReply> script)
      : endpoint_(std::move(endpoint)),
        script_(std::move(script)),
        socket_(instrumentation::make_socket(context_, instrumentation::Role::collector_view)) {
    socket_.bind(instrumentation::endpoints_of(endpoint_).view);
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedCollector() {
    stop_ = true;
    thread_.join();
  }
  ScriptedCollector(const ScriptedCollector&) = delete;
  ScriptedCollector& operator=(const ScriptedCollector&) = delete;
  std::atomic<std::size_t> allowed = 1;  ///< replies

 private:
  void serve() {
    std::size_t given = 0;
    while (!stop_) {
      zmq::pollitem_t item{socket_.handle(), 0, ZMQ_POLLIN, 0};
      zmq::poll(&item, 1, 10ms);
      zmq::message_t route, body;
      if (socket_.recv(route, zmq::recv_flags::dontwait) && socket_.recv(body)) {
        const wire::Decoded asked = wire::decode(body.data(), body.size(), wire::From::viewer);
        ASSERT_TRUE(asked.message) << asked.why;
        if (std::get<wire::ViewPoll>(asked.message->body).want_items) {
          request_ = asked.message->header.sequence;
          route_ = route.to_string();
        }
      }
      if (given >= std::min(allowed.load(), script_.size()) || request_ == 0) continue;
      wire::Message message;
      message.header.sequence = std::exchange(request_, 0);
      message.header.run_id = "scripted";
      message.body = script_[given++];
      const wire::Frame frame = wire::encode(message);
      socket_.send(zmq::buffer(route_), zmq::send_flags::sndmore);
      socket_.send(zmq::const_buffer(frame.data(), frame.size()));
    }
  }

  std::string endpoint_;
  std::vector<wire::ViewReply> script_;
  zmq::context_t context_{1};
  zmq::socket_t socket_;
  std::uint64_t request_ = 0;
  std::string route_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

class CopyOfAPart : public ::testing::Test {
 protected:
  CopyOfAPart() : folder_(fs::temp_directory_path() / ("copy-of-a-part-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~CopyOfAPart() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string file() const { return (folder_ / "copy.zscope").string(); }
  [[nodiscard]] bool ended() const {
    return eventually([&] { return copy_.state().done; });
  }
  /// Of a scripted run, which has one reply before what it does next.
  void follow(std::vector<wire::ViewReply> script, std::optional<std::int64_t> zero_ns = {}) {
    const std::string endpoint = "ipc://" + (folder_ / "c").string();
    const std::uint64_t events = 2 * script[0].items.size();
    ScriptedCollector scripted(endpoint, std::move(script));
    copy_.start(
        {.endpoint = endpoint, .target = file(), .key_file = instrumentation::kNoKey, .zero_ns = zero_ns});
    ASSERT_TRUE(eventually([&] { return copy_.state().events == events; })) << copy_.line();
    line_ = copy_.line();
    scripted.allowed = 10;
    ASSERT_TRUE(ended()) << copy_.line();
    EXPECT_EQ(copy_.state().problem, "");
  }
  [[nodiscard]] std::string texts() const {
    store::RecordingInfo info;
    std::string out = collector::all_texts(store::open_recording(file(), &info));
    EXPECT_TRUE(info.complete);
    return out;
  }
  [[nodiscard]] bool says(const std::string& text) const { return texts().find(text) != std::string::npos; }

  fs::path folder_;
  CopyRecording copy_;
  std::string line_;  ///< before the run ended
};

TEST_F(CopyOfAPart, IsNotBehindBecauseTheNextRunHasMore) {
  follow({reply_of(1, 2, 2), reply_of(2, 3, 90)});
  EXPECT_EQ(copy_.state().events, 4U);
  EXPECT_TRUE(says("another collector answers")) << texts();
  EXPECT_FALSE(says("still catching up")) << texts();
  EXPECT_FALSE(copy_.state().catching_up);
  EXPECT_EQ(copy_.line().find("while it was catching up"), std::string::npos) << copy_.line();
}

TEST_F(CopyOfAPart, IsBehindThoughTheNextRunHasNothing) {
  follow({reply_of(1, 2, 90), reply_of(2, 0, 0)});
  EXPECT_TRUE(says("still catching up with the run: it ends")) << texts();
  EXPECT_TRUE(copy_.state().catching_up);
  EXPECT_NE(copy_.line().find("while it was catching up"), std::string::npos) << copy_.line();
}

TEST_F(CopyOfAPart, TellsWhatCameDamagedFromWhatTheCollectorDidNotHave) {
  wire::ViewReply damaged = reply_of(1, 3, 3);
  damaged.items[1].data[damaged.items[1].data.size() / 2] ^= 0x55;
  wire::ViewReply over = reply_of(1, 0, 3);
  over.cursor = 3;
  over.finished = true;
  const std::string endpoint = "ipc://" + (folder_ / "c").string();
  ScriptedCollector scripted(endpoint, {damaged, over});
  scripted.allowed = 2;
  copy_.start({.endpoint = endpoint, .target = file(), .key_file = instrumentation::kNoKey});
  ASSERT_TRUE(ended()) << copy_.line();
  EXPECT_EQ(copy_.state().missing_pieces, 0U);
  EXPECT_EQ(copy_.state().damaged_pieces, 1U);
  EXPECT_EQ(copy_.state().events, 4U);
  EXPECT_TRUE(says("1 piece could not be read when it arrived.")) << texts();
  EXPECT_FALSE(says("did not have")) << texts();
  EXPECT_NE(copy_.line().find("without 1 piece that came damaged"), std::string::npos) << copy_.line();
}

TEST_F(CopyOfAPart, GivesItsBeginInTheRunsTimeOnlyWhereThatIsKnown) {
  wire::ViewReply late = reply_of(1, 2, 7);
  late.cursor = late.end_cursor = 7;
  late.begin_cursor = 5;
  follow({late, reply_of(2, 0, 0)});
  EXPECT_FALSE(copy_.state().since_s);
  EXPECT_NE(line_.find(", since the earliest event that the collector has"), std::string::npos) << line_;
  EXPECT_EQ(copy_.state().missing_pieces, 5U) << "of the run in the file, not of the next one";

  follow({late, reply_of(2, 0, 0)}, std::int64_t{400'000'000});
  EXPECT_NE(line_.find(", since 0.6 s, without 5 pieces that the collector no longer has"), std::string::npos)
      << line_;

  // A log that has its begin needs no one to know it.
  follow({reply_of(1, 2, 2), reply_of(2, 0, 0)});
  EXPECT_NE(line_.find(", since 0.0 s"), std::string::npos) << line_;
}

TEST_F(CopyOfAPart, CountsWhatTheCollectorHasForgottenAsTheCollectorDoes) {
  collector::CollectorOptions options = collector::local();
  options.view_log = {.memory_bytes = 10'000, .file_bytes = 10'000};
  auto kept = std::make_unique<collector::Collector>(options);
  const std::string endpoint = kept->publish_endpoint();
  Rank goes_on(endpoint, 0, 2), gone(endpoint, 1, 2);
  for (std::uint32_t step = 0; step < 3; ++step) gone.step(step);
  gone.settle();
  gone.finish();
  std::uint32_t step = 0;
  const auto has_forgotten = [&] {
    for (const std::uint32_t end = step + 50; step < end; ++step) goes_on.step(step);
    goes_on.settle();
    collector::Viewer viewer(endpoint);
    store::Store seen;
    return collector::follow(viewer, seen, [&] { return viewer.link() == collector::Viewer::Link::live; }) &&
           viewer.traffic().items_missing > 1 && seen.ranks()[1].events == 0;
  };
  ASSERT_TRUE(eventually(has_forgotten, 20s));
  copy_.start({.endpoint = endpoint, .target = file()});
  ASSERT_TRUE(eventually([&] { return copy_.state().events > 0 && !copy_.state().catching_up; }));
  goes_on.finish();
  ASSERT_TRUE(ended());
  const std::uint64_t missing = copy_.state().missing_pieces;
  EXPECT_GT(missing, 0U);
  EXPECT_TRUE(says("the first " + std::to_string(missing) + " pieces of this run (chunks of events, and"))
      << texts();
  EXPECT_TRUE(
      says("did not have " + std::to_string(missing) + " pieces of it any more (chunks of events, and"))
      << texts();
  EXPECT_TRUE(says("if there is one, may have them")) << texts();
  EXPECT_TRUE(says("Nothing is left of rank 1, of which it had received " +
                   std::to_string(3 * kEventsPerStep) + " events."))
      << texts();
  EXPECT_FALSE(copy_.state().since_s) << "the run's time 0 is not known";
}

}  // namespace
}  // namespace shardscope::gui
