// Parts of a chain of two collectors: a node's options, a link of one of two ranks, a step as one message,
// and a peer that says what a rank or a node's collector does, message by message.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "instrumentation/keys.h"
#include "instrumentation/sockets.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {

inline CollectorOptions node_of(const std::string& top) {
  CollectorOptions options = local();
  options.upstream = top;
  return options;
}

inline RunTables two_ranks(std::uint32_t rank) {
  RunTables tables = tables_of(rank, 2);
  tables.local_world = 2;
  return tables;
}

inline std::unique_ptr<RankLink> link_of(const std::string& endpoint, std::uint32_t rank, GateKeeper& gate,
                                         const std::string& key = {}) {
  RankLinkOptions options;
  options.endpoint = endpoint;
  options.key_file = key;
  options.gate = &gate;
  options.detail = [] { return 3; };
  return std::make_unique<RankLink>(std::move(options), two_ranks(rank));
}

/// A step as one message.
inline constexpr std::uint64_t kStepEvents = 12;
inline std::vector<Event> step_of(std::uint32_t step) {
  std::vector<Event> events;
  std::int64_t at = monotonic_now_ns();
  events.push_back(event_of(EventKind::step_begin, at, StreamId::host, step));
  for (std::uint32_t m = 0; m < 5; ++m) {
    events.push_back(event_of(EventKind::module_begin, ++at, StreamId::compute, m % 2));
    events.push_back(event_of(EventKind::module_end, ++at, StreamId::compute, m % 2));
  }
  events.push_back(event_of(EventKind::step_end, ++at, StreamId::host, step));
  return events;
}

inline void push(RankLink& link, std::uint32_t step) {
  std::vector<Event> events = step_of(step);
  const auto begin = static_cast<std::int64_t>(events.front().ticks);
  const auto end = static_cast<std::int64_t>(events.back().ticks);
  link.push(std::move(events), 0, begin, end, 0);
  link.pump();
}

inline wire::Batch batch_of(std::uint32_t step) {
  wire::Batch batch;
  batch.events = step_of(step);
  batch.begin_ns = static_cast<std::int64_t>(batch.events.front().ticks);
  batch.end_ns = static_cast<std::int64_t>(batch.events.back().ticks);
  return batch;
}

/// What a rank or a node's collector says, message by message, with any numbers.
class Raw {
 public:
  Raw(const std::string& endpoint, std::uint64_t incarnation)
      : publish_(make_socket(context_, Role::rank_publish, local_key(endpoint, KeyRole::publish))),
        control_(make_socket(context_, Role::rank_control, local_key(endpoint, KeyRole::publish))) {
    publish_.connect(endpoints_of(endpoint).publish);
    control_.connect(endpoints_of(endpoint).control);
    header_.incarnation = incarnation;
    header_.run_id = "collector-test";
  }
  /// `process`: of the rank, where a node's collector passes its message on; 0: the peer itself.
  void control(wire::Body body, std::uint32_t rank = 0, std::uint64_t process = 0) {
    const wire::Header own = header_;
    header_.rank = rank;
    if (process != 0) header_.incarnation = process;
    send(control_, std::move(body), 0);
    header_ = own;
  }
  /// `source`: the rank's own process and the number of its message after this one, of what is no batch.
  void publish(std::uint64_t sequence, wire::Body body, std::uint64_t process = 0,
               std::pair<std::uint64_t, std::uint64_t> source = {}) {
    const wire::Header own = header_;
    header_.source = source.first;
    header_.source_next = source.second;
    if (process != 0) header_.incarnation = process;
    send(publish_, std::move(body), sequence);
    header_ = own;
  }
  /// Whether a command of this kind is among what has been sent to it since the last call.
  bool was_sent(wire::RankCommand::Kind kind) {
    const std::vector<wire::Body> sent = received();
    return std::any_of(sent.begin(), sent.end(), [&](const wire::Body& body) {
      const auto* command = std::get_if<wire::RankCommand>(&body);
      return command != nullptr && command->kind == kind;
    });
  }
  /// What has been sent to it since the last call.
  std::vector<wire::Body> received() {
    std::vector<wire::Body> bodies;
    zmq::message_t message;
    while (control_.recv(message, zmq::recv_flags::dontwait)) {
      wire::Decoded decoded = wire::decode(message.data(), message.size(), wire::From::collector_control);
      if (decoded.message) bodies.push_back(std::move(decoded.message->body));
    }
    return bodies;
  }

 private:
  void send(zmq::socket_t& socket, wire::Body body, std::uint64_t sequence) {
    header_.sequence = sequence;
    const wire::Frame frame = wire::encode({header_, std::move(body)});
    EXPECT_TRUE(socket.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::none));
  }
  zmq::context_t context_;
  zmq::socket_t publish_, control_;
  wire::Header header_;
};

}  // namespace shardscope::collector
