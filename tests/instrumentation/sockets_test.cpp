// What the library under the sockets must not do to the process that uses it.
#include "instrumentation/sockets.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <zmq.hpp>

#include "instrumentation/link_state.h"

namespace shardscope::instrumentation {
namespace {

using namespace std::chrono_literals;

/// A viewer (or a rank, whose control socket is one of the same kind) that reads nothing for a while, so that
/// all queues to it are full, and whose collector goes meanwhile. With ZeroMQ's heartbeats its process was
/// aborted.
TEST(Sockets, WhoIsStoppedOutlivesACollectorThatGoes) {
  zmq::context_t theirs, ours;
  zmq::socket_t viewer;
  {
    zmq::socket_t collector = make_socket(theirs, Role::collector_view);
    collector.bind("tcp://127.0.0.1:*");
    viewer = make_socket(ours, Role::viewer);
    viewer.connect(collector.get(zmq::sockopt::last_endpoint));
    viewer.send(zmq::str_buffer("here I am"), zmq::send_flags::none);
    zmq::message_t route, hello;
    ASSERT_TRUE(collector.recv(route));
    ASSERT_TRUE(collector.recv(hello));
    const std::string item(4096, 'x');
    int sent = 0;
    for (int refused = 0; refused < 10;) {
      try {
        if (collector.send(zmq::buffer(route.data(), route.size()),
                           zmq::send_flags::sndmore | zmq::send_flags::dontwait) &&
            collector.send(zmq::buffer(item), zmq::send_flags::dontwait)) {
          ++sent;
          continue;
        }
      } catch (const zmq::error_t&) {  // a router says so when a queue is full
      }
      ++refused;
      std::this_thread::sleep_for(20ms);
    }
    ASSERT_GT(sent, 1000) << "its queue is full";
  }
  theirs.close();
  std::this_thread::sleep_for(5s);
  zmq::message_t first;
  ASSERT_TRUE(viewer.recv(first, zmq::recv_flags::dontwait));
  EXPECT_EQ(first.size(), 4096U);
}

/// A rank that follows its connection no longer, because a collector with other keys needs another socket:
/// what still happens to the old one must not hold up the thread that serves all sockets.
TEST(Sockets, AConnectionThatNobodyFollowsAnyLongerHoldsNothingUp) {
  zmq::context_t theirs, ours;
  zmq::socket_t before = make_socket(theirs, Role::collector_publish);
  before.bind("tcp://127.0.0.1:*");
  zmq::socket_t rank = make_socket(ours, Role::rank_publish);
  {
    LinkState link(ours, rank);
    rank.connect(before.get(zmq::sockopt::last_endpoint));
    for (int look = 0; look < 1000 && !link.up(); ++look) {
      link.update();
      std::this_thread::sleep_for(5ms);
    }
    ASSERT_TRUE(link.up());
  }
  before.close();
  std::this_thread::sleep_for(200ms);
  zmq::socket_t after = make_socket(theirs, Role::collector_publish);
  after.set(zmq::sockopt::rcvtimeo, 5000);
  after.bind("tcp://127.0.0.1:*");
  zmq::socket_t again = make_socket(ours, Role::rank_publish);
  again.set(zmq::sockopt::sndtimeo, 5000);
  again.connect(after.get(zmq::sockopt::last_endpoint));
  EXPECT_TRUE(again.send(zmq::str_buffer("still here"), zmq::send_flags::none));
  zmq::message_t received;
  EXPECT_TRUE(after.recv(received));
  EXPECT_EQ(received.to_string(), "still here");
}

}  // namespace
}  // namespace shardscope::instrumentation
