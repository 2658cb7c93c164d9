#include "app/collector/socket_poll.h"

#include <cerrno>

namespace shardscope::collector {

namespace {

int descriptor_of(void* socket) {
  int descriptor = -1;
  std::size_t size = sizeof descriptor;
  if (zmq_getsockopt(socket, ZMQ_FD, &descriptor, &size) != 0) throw zmq::error_t();
  return descriptor;
}

short events_of(void* socket) {
  int events = 0;
  std::size_t size = sizeof events;
  if (zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) != 0) throw zmq::error_t();
  return static_cast<short>(events);
}

}  // namespace

std::size_t SocketPoll::add(zmq::socket_t& socket) {
  sockets_.push_back({.socket = &socket, .descriptor = descriptor_of(socket.handle())});
  return sockets_.size() - 1;
}

void SocketPoll::ask(Socket& socket) {
  socket.readable = (events_of(socket.socket->handle()) & ZMQ_POLLIN) != 0;
  socket.at_rest = !socket.readable;
}

bool SocketPoll::wait(std::chrono::milliseconds timeout, int wake, std::span<zmq::pollitem_t> more,
                      std::size_t without) {
  bool ready = false;
  descriptors_.assign(1, {wake, POLLIN, 0});
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    Socket& socket = sockets_[i];
    socket.readable = false;
    if (i == without) {
      socket.at_rest = false;  // its messages may be received later without another notification
    } else if (!socket.at_rest) {
      ask(socket);
    }
    ready = ready || socket.readable;
    descriptors_.push_back({i == without ? -1 : socket.descriptor, POLLIN, 0});
  }
  const auto ask_more = [&] {
    for (zmq::pollitem_t& item : more) {
      item.revents = static_cast<short>(events_of(item.socket) & item.events);
      ready = ready || item.revents != 0;
    }
  };
  ask_more();
  for (const zmq::pollitem_t& item : more) descriptors_.push_back({descriptor_of(item.socket), POLLIN, 0});
  if (::poll(descriptors_.data(), descriptors_.size(), ready ? 0 : static_cast<int>(timeout.count())) < 0) {
    if (errno != EINTR) throw zmq::error_t();
    return false;
  }
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    if (!sockets_[i].readable && descriptors_[i + 1].revents != 0) ask(sockets_[i]);
  }
  if (!ready) ask_more();
  return descriptors_[0].revents != 0;
}

}  // namespace shardscope::collector
