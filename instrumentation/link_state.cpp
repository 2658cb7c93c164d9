#include "instrumentation/link_state.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "instrumentation/sockets.h"

namespace shardscope::instrumentation {

LinkState::LinkState(zmq::context_t& context, zmq::socket_t& socket)
    : socket_(&socket), events_(context, zmq::socket_type::pair) {
  const std::string address = "inproc://link-" + std::to_string(random_id());
  if (zmq_socket_monitor(socket.handle(), address.c_str(),
                         ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED) != 0) {
    throw zmq::error_t();
  }
  events_.set(zmq::sockopt::linger, 0);
  events_.connect(address);
}

LinkState::~LinkState() { zmq_socket_monitor(socket_->handle(), nullptr, 0); }

bool LinkState::update() {
  bool cut = false;
  zmq::message_t part;
  while (events_.recv(part, zmq::recv_flags::dontwait)) {
    std::uint16_t kind = 0;
    if (part.size() >= sizeof kind) std::memcpy(&kind, part.data(), sizeof kind);
    for (bool more = part.more(); more; more = part.more()) {
      if (!events_.recv(part, zmq::recv_flags::dontwait)) break;
    }
    up_ = kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
    cut = cut || kind == ZMQ_EVENT_DISCONNECTED;
  }
  // Lets the socket process the end of the old connection at once, as sending would.
  if (cut) (void)socket_->get(zmq::sockopt::events);
  return cut;
}

}  // namespace shardscope::instrumentation
