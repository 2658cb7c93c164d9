#include "app/collector/collector_sockets.h"

#include <cerrno>
#include <chrono>
#include <stdexcept>

#include "app/collector/upstream.h"
#include "instrumentation/clock.h"

namespace shardscope::collector {

namespace {

/// Binds or throws with endpoint, reason and remedy.
void bind_or_explain(zmq::socket_t& socket, const std::string& endpoint) {
  try {
    socket.bind(endpoint);
  } catch (const zmq::error_t& error) {
    std::string remedy = "choose another endpoint with --listen";
    if (error.num() == EADDRINUSE) remedy = "another collector may be running; stop it or " + remedy;
    throw std::runtime_error("cannot listen on " + endpoint + ": " + error.what() + "; " + remedy);
  }
}

}  // namespace

CollectorSockets::CollectorSockets(const std::optional<instrumentation::KeyFile>& key)
    : guard(context, key),
      pull(make_socket(context, instrumentation::Role::collector_publish, key)),
      control(make_socket(context, instrumentation::Role::collector_control, key)),
      view(make_socket(context, instrumentation::Role::collector_view, key)) {
  guard.watch(context, pull, "publishing");
  guard.watch(context, control, "ranks' control");
  guard.watch(context, view, "viewing");
}

void CollectorSockets::listen(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  const std::string port = colon == std::string::npos ? "" : endpoint.substr(colon + 1);
  if (endpoint.rfind("tcp://", 0) == 0 && (port == "0" || port == "*")) {
    // Any port, but three in a row: the others are derived from the first.
    for (int attempt = 0; attempt < 64; ++attempt) {
      pull.bind(endpoint.substr(0, colon + 1) + "*");
      const std::string got = pull.get(zmq::sockopt::last_endpoint);
      try {
        // Its port only: ZeroMQ writes the host in another notation than the user.
        endpoints = instrumentation::endpoints_of(endpoint.substr(0, colon) + got.substr(got.rfind(':')));
        view.bind(endpoints.view);
        try {
          control.bind(endpoints.control);
          return;
        } catch (const zmq::error_t&) {
          view.unbind(endpoints.view);
        }
      } catch (const std::exception&) {
      }
      pull.unbind(got);
    }
    throw std::runtime_error("cannot listen on " + endpoint +
                             ": found no three free ports in a row; name one with --listen");
  }
  endpoints = instrumentation::endpoints_of(endpoint);
  bind_or_explain(pull, endpoints.publish);
  bind_or_explain(view, endpoints.view);
  bind_or_explain(control, endpoints.control);
}

CollectorSockets::Ready CollectorSockets::wait(double timeout_s, Ranks ranks, Upstream* upstream) {
  enum Item : std::size_t { control_item, view_item, wake_item, published_item, kItems };
  std::vector<zmq::pollitem_t>& items = items_;
  items.clear();
  items.push_back({control.handle(), 0, ZMQ_POLLIN, 0});
  items.push_back({view.handle(), 0, ZMQ_POLLIN, 0});
  items.push_back({nullptr, wake.fd(), ZMQ_POLLIN, 0});
  items.push_back({pull.handle(), 0, static_cast<short>(ranks == Ranks::hear ? ZMQ_POLLIN : 0), 0});
  guard.add_to(items);
  const std::size_t doors_end = items.size();
  if (upstream != nullptr) upstream->add_to(items);
  try {
    zmq::poll(items.data(), items.size(), std::chrono::milliseconds(static_cast<int>(timeout_s * 1e3)));
  } catch (const zmq::error_t& error) {
    if (error.num() != EINTR) throw;
    return {};
  }
  const auto readable = [&](std::size_t item) { return (items[item].revents & ZMQ_POLLIN) != 0; };
  if (readable(wake_item)) wake.clear();
  Ready ready{readable(control_item), readable(view_item), readable(published_item), false};
  for (std::size_t item = kItems; item < doors_end; ++item) ready.doors = ready.doors || readable(item);
  return ready;
}

bool receive(zmq::socket_t& socket, Routed& message) {
  message.whole = false;
  if (!socket.recv(message.route, zmq::recv_flags::dontwait)) return false;
  if (!message.route.more() || !socket.recv(message.body, zmq::recv_flags::dontwait)) return true;
  message.received_ns = instrumentation::monotonic_now_ns();
  message.whole = true;
  for (bool extra = message.body.more(); extra;) {
    zmq::message_t rest;
    (void)socket.recv(rest, zmq::recv_flags::dontwait);
    extra = rest.more();
  }
  return true;
}

}  // namespace shardscope::collector
