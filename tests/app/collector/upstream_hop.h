// An Upstream and what it sends, on a clock of the test's.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>
#include <zmq.hpp>

#include "app/collector/frame_pack.h"
#include "app/collector/upstream.h"
#include "instrumentation/clock.h"
#include "instrumentation/sockets.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {

inline constexpr std::uint32_t kWorld = 16;
inline constexpr double kBegin_s = 100;
inline constexpr double kNever_s = std::numeric_limits<double>::infinity();
inline constexpr double kAlmost_s = RankSession::kClockWait_s - 0.001;

/// An Upstream and the door of a collector above that it knocks at.
class Hop {
 public:
  static constexpr int kMostSockets = 32;
  explicit Hop(const std::string& name, std::size_t bytes = 1U << 20)
      : endpoint_("ipc://" + testing::TempDir() + "upstream_" + name + std::to_string(getpid())),
        control_(make_socket(context_, Role::collector_control)),
        upstream_(context_, {.endpoint = endpoint_,
                             .key_file = {},
                             .bytes = bytes,
                             .id = 0,  // processes keep their numbers
                             .host = "node",
                             .clock_id = "node",
                             .clock = {},
                             .command = {},
                             .keep = {},
                             .list_ranks = {}}) {
    control_.bind(endpoints_of(endpoint_).control);
    open();
    // Nothing is taken before the connection is there.
    first_.another_process(1);
    first_.clock.same_clock();
    first_message(first_, 1, kBegin_s);
    EXPECT_TRUE(eventually([&] {
      upstream_.pump(kBegin_s);
      return upstream_.sent();
    }));
    EXPECT_EQ(arrived(1), std::vector<std::uint64_t>{1});
  }
  [[nodiscard]] Upstream& upstream() noexcept { return upstream_; }

  void open() {
    above_ = make_socket(context_, Role::collector_publish);
    above_.set(zmq::sockopt::rcvtimeo, 10'000);  // for a failing test to end
    above_.bind(endpoints_of(endpoint_).publish);
  }
  /// The connection is closed, and all messages in it are lost. Messages to the test may not have been taken.
  void cut() {
    above_.close();
    EXPECT_TRUE(eventually([&] {
      upstream_.pump(kBegin_s);
      return !upstream_.connected();
    }));
  }

  /// The collector above goes while this process has no room for further sockets.
  void cut_without_room() {
    std::vector<zmq::socket_t> others;
    above_.close();
    const auto end = Clock::now() + 1s;
    while (Clock::now() < end) {
      try {
        for (;;) others.emplace_back(context_, zmq::socket_type::pair);
      } catch (const zmq::error_t&) {
      }
      upstream_.pump(kBegin_s);
      EXPECT_FALSE(upstream_.connected() && Clock::now() > end - 500ms);
      std::this_thread::sleep_for(1ms);
    }
  }

  /// The first message of a process of a rank.
  void first_message(RankSession& rank, std::uint64_t process, double now_s) {
    wire::Message message;
    message.header.rank = rank.row.rank;
    message.header.incarnation = process;
    message.header.run_id = "collector-test";
    message.body = wire::Tables{tables_of(rank.row.rank, kWorld)};
    rank.first_message_s = now_s;
    upstream_.published(rank, message, 0);
  }

  /// Another process of the rank says hello.
  void another_process(RankSession& rank, std::uint64_t process) {
    upstream_.keep_clock(rank.row.rank, rank);
    rank.another_process(process);
  }

  /// Events at `at_ns` of its clock, after `missing` messages that did not arrive.
  void publish(RankSession& rank, std::uint64_t process, std::uint64_t sequence, std::int64_t at_ns,
               std::uint64_t missing = 0, std::size_t events = 1, std::uint64_t dropped_total = 0) {
    wire::Message message;
    message.header.rank = rank.row.rank;
    message.header.incarnation = process;
    message.header.sequence = sequence;
    message.header.run_id = "collector-test";
    wire::Batch batch;
    batch.events.assign(events, event_of(EventKind::tokens, at_ns));
    batch.begin_ns = batch.end_ns = at_ns;
    batch.dropped_total = dropped_total;
    message.body = batch;
    upstream_.published(rank, message, missing);
  }

  /// The batches among the next `count` messages, by their rank's messages; a null for any other message.
  std::vector<std::optional<wire::Relay>> relayed(std::size_t count) {
    std::vector<std::optional<wire::Relay>> out;
    while (out.size() < count) {
      const std::optional<wire::Message> message = next();
      if (!message) break;
      const auto* batch = std::get_if<wire::Batch>(&message->body);
      out.push_back(batch != nullptr ? batch->relay : std::nullopt);
    }
    return out;
  }

  [[nodiscard]] std::vector<wire::Body> arrived_by_now() {
    above_.set(zmq::sockopt::rcvtimeo, 0);
    std::vector<wire::Body> out;
    for (std::optional<wire::Message> message = next(); message; message = next())
      out.push_back(std::move(message->body));
    return out;
  }
  /// next() waits for a message, which a test that fails does not wait for without end.
  void wait_for_messages() { above_.set(zmq::sockopt::rcvtimeo, 10'000); }

  /// The next `count` messages that arrive above.
  std::vector<wire::Message> messages(std::size_t count) {
    std::vector<wire::Message> out;
    while (out.size() < count) {
      std::optional<wire::Message> message = next();
      if (!message) break;
      out.push_back(std::move(*message));
    }
    return out;
  }
  std::vector<wire::Body> bodies(std::size_t count) {
    std::vector<wire::Body> out;
    for (wire::Message& message : messages(count)) out.push_back(std::move(message.body));
    return out;
  }

  /// The processes of the next `count` messages, which are of rank 0, each confirmed as it comes.
  std::vector<std::uint64_t> confirmed(std::size_t count) {
    std::vector<std::uint64_t> processes;
    above_.set(zmq::sockopt::rcvtimeo, 0);
    EXPECT_TRUE(eventually([&] {
      upstream_.pump(kBegin_s);
      for (std::optional<wire::Message> message = next(); message; message = next()) {
        processes.push_back(message->header.incarnation);
        answer(wire::Received{message->header.incarnation, message->header.sequence + 1, {}});
      }
      return processes.size() == count;
    }));
    return processes;
  }

  /// The collector above answers the node's hello.
  void answer(wire::Body answered, std::uint64_t process = 0) {
    zmq::message_t route, hello;
    if (!route_) {
      // The connection may have come after the last pump().
      ASSERT_TRUE(eventually([&] {
        upstream_.pump(kBegin_s);
        return control_.recv(route, zmq::recv_flags::dontwait).has_value();
      }));
      ASSERT_TRUE(control_.recv(hello));
      route_.emplace(route.to_string());
    }
    wire::Message message;
    message.header.run_id = "collector-test";
    message.header.incarnation = process;
    message.body = std::move(answered);
    const wire::Frame frame = wire::encode(message);
    control_.send(zmq::const_buffer(route_->data(), route_->size()), zmq::send_flags::sndmore);
    control_.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::none);
  }

  /// What the node has said to the collector above since the last call.
  std::vector<wire::Body> control() {
    std::vector<wire::Body> out;
    zmq::message_t route, message;
    while (control_.recv(route, zmq::recv_flags::dontwait) && control_.recv(message)) {
      wire::Decoded decoded = wire::decode(message.data(), message.size(), wire::From::rank_control);
      EXPECT_TRUE(decoded.message) << decoded.why;
      if (decoded.message) out.push_back(std::move(decoded.message->body));
    }
    return out;
  }

  /// By process, the offset that the next `count` batches of events have.
  std::vector<std::pair<std::uint64_t, std::int64_t>> offsets(std::size_t count) {
    std::vector<std::pair<std::uint64_t, std::int64_t>> out;
    while (out.size() < count) {
      const std::optional<wire::Message> message = next();
      if (!message) break;
      const auto* batch = std::get_if<wire::Batch>(&message->body);
      if (batch != nullptr && batch->relay)
        out.emplace_back(message->header.incarnation, batch->relay->offset_ns);
    }
    return out;
  }

  /// The processes of the next `count` messages that arrive above.
  std::vector<std::uint64_t> arrived(std::size_t count) {
    std::vector<std::uint64_t> processes;
    while (processes.size() < count) {
      const std::optional<wire::Message> message = next();
      if (!message) break;
      processes.push_back(message->header.incarnation);
    }
    return processes;
  }

  /// By process, the numbers of what arrives above while the Upstream sends, until as many have come.
  std::map<std::uint64_t, std::vector<std::uint64_t>> numbers(std::size_t count) {
    std::map<std::uint64_t, std::vector<std::uint64_t>> out;
    above_.set(zmq::sockopt::rcvtimeo, 0);
    EXPECT_TRUE(eventually([&] {
      upstream_.pump(kBegin_s);
      for (std::optional<wire::Message> message = next(); message; message = next()) {
        out[message->header.incarnation].push_back(message->header.sequence);
        --count;
      }
      return count == 0;
    }));
    return out;
  }

  /// Messages of the socket so far, packs or not.
  [[nodiscard]] std::size_t packs() const noexcept { return packs_; }

 private:
  /// None: nothing has come for long.
  std::optional<wire::Message> next() {
    while (frames_.empty()) {
      zmq::message_t message;
      if (!above_.recv(message)) return std::nullopt;
      ++packs_;
      PackedFrames frames({static_cast<const std::uint8_t*>(message.data()), message.size()});
      for (auto frame = frames.next(); !frame.empty(); frame = frames.next()) {
        wire::Decoded decoded = wire::decode(frame.data(), frame.size(), wire::From::rank_publish);
        EXPECT_TRUE(decoded.message) << decoded.why;
        if (decoded.message) frames_.push_back(std::move(*decoded.message));
      }
    }
    wire::Message message = std::move(frames_.front());
    frames_.pop_front();
    return message;
  }

  std::deque<wire::Message> frames_;  ///< arrived, not taken yet
  std::size_t packs_ = 0;
  zmq::context_t context_{1, kMostSockets};
  std::string endpoint_;
  RankSession first_{kWorld - 1};
  zmq::socket_t above_, control_;
  std::optional<std::string> route_;  ///< of the node
  Upstream upstream_;
};

}  // namespace shardscope::collector
