// Waiting for sockets.
#include "app/collector/socket_poll.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <zmq.hpp>

#include "instrumentation/sockets.h"

namespace shardscope::collector {
namespace {

/// Two pairs of sockets and who waits for them.
struct Waiting {
  zmq::context_t context;
  zmq::socket_t a{context, zmq::socket_type::pair}, to_a{context, zmq::socket_type::pair};
  zmq::socket_t b{context, zmq::socket_type::pair}, to_b{context, zmq::socket_type::pair};
  instrumentation::WakeFd wake;
  SocketPoll poll;
  std::size_t a_item = 0, b_item = 0;
  Waiting() {
    a.bind("inproc://a");
    to_a.connect("inproc://a");
    b.bind("inproc://b");
    to_b.connect("inproc://b");
    a_item = poll.add(a);
    b_item = poll.add(b);
  }
  static void send(zmq::socket_t& socket) { (void)socket.send(zmq::str_buffer("x"), zmq::send_flags::none); }
  static bool receive(zmq::socket_t& socket) {
    zmq::message_t message;
    return socket.recv(message, zmq::recv_flags::dontwait).has_value();
  }
  bool wait(int ms, std::size_t without = SocketPoll::kNone) {
    return poll.wait(std::chrono::milliseconds(ms), wake.fd(), {}, without);
  }
};

TEST(SocketPoll, TellsOfEveryMessageUntilItIsReceived) {
  Waiting w;
  EXPECT_FALSE(w.wait(0));
  Waiting::send(w.to_a);
  Waiting::send(w.to_a);
  for (int left = 2; left > 0; --left) {
    w.wait(5000);
    EXPECT_TRUE(w.poll.readable(w.a_item)) << left;
    EXPECT_FALSE(w.poll.readable(w.b_item));
    w.wait(5000);
    EXPECT_TRUE(w.poll.readable(w.a_item)) << "nothing was received since";
    EXPECT_TRUE(Waiting::receive(w.a));
  }
  w.wait(1);
  EXPECT_FALSE(w.poll.readable(w.a_item));
  // And again, from rest.
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Waiting::send(w.to_b);
  });
  w.wait(5000);
  later.join();
  EXPECT_TRUE(w.poll.readable(w.b_item));
}

TEST(SocketPoll, AsksASocketThatWasUsed) {
  Waiting w;
  w.wait(0);
  w.wait(0);  // both are at rest
  Waiting::send(w.to_a);
  // Sending reads what the descriptor signals: from here on it is silent.
  (void)w.a.get(zmq::sockopt::events);
  w.poll.used(w.a_item);
  w.wait(0);
  EXPECT_TRUE(w.poll.readable(w.a_item));
}

TEST(SocketPoll, WhoWasLeftOutIsAskedAfterwards) {
  Waiting w;
  w.wait(0);
  w.wait(0);
  Waiting::send(w.to_a);
  Waiting::send(w.to_a);
  w.wait(0, w.a_item);
  EXPECT_FALSE(w.poll.readable(w.a_item));
  EXPECT_TRUE(Waiting::receive(w.a)) << "one of two, without a signal";
  w.wait(0);
  EXPECT_TRUE(w.poll.readable(w.a_item));
}

TEST(SocketPoll, IsWoken) {
  Waiting w;
  EXPECT_FALSE(w.wait(0));
  w.wake.signal();
  EXPECT_TRUE(w.wait(5000));
  w.wake.clear();
  EXPECT_FALSE(w.wait(0));
}

}  // namespace
}  // namespace shardscope::collector
