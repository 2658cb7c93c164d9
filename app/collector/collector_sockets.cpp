#include "app/collector/collector_sockets.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
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
  control_item_ = poll_.add(control);
  view_item_ = poll_.add(view);
  pull_item_ = poll_.add(pull);
  guard.add_to(poll_);
}

void CollectorSockets::listen(const std::string& endpoint) {
  bind(endpoint);
  watch.emplace(endpoints);
}

void CollectorSockets::bind(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  const std::string port = colon == std::string::npos ? "" : endpoint.substr(colon + 1);
  if (endpoint.rfind("tcp://", 0) == 0 && (port == "0" || port == "*")) {
    // Any port, but three in a row: the others are derived from the first.
    for (int attempt = 0; attempt < 64; ++attempt) {
      pull.bind(endpoint.substr(0, colon + 1) + "*");
      const std::string got = pull.get(zmq::sockopt::last_endpoint);
      try {
        // Only the port of it: ZeroMQ formats the host differently from the user.
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
  upstream_items_.clear();
  if (upstream != nullptr) upstream->add_to(upstream_items_);
  // Rounded up to a millisecond: work due in less would else cause many turns without a wait.
  const std::chrono::milliseconds timeout(static_cast<int>(std::ceil(std::max(timeout_s, 0.0) * 1e3)));
  const bool woken = poll_.wait(timeout, wake.fd(), upstream_items_,
                                ranks == Ranks::receive ? SocketPoll::kNone : pull_item_);
  if (woken) wake.clear();
  return {poll_.readable(control_item_), poll_.readable(view_item_), poll_.readable(pull_item_),
          guard.readable(poll_)};
}

bool CollectorSockets::receive_published(zmq::message_t& message) {
  if (!pull.recv(message, zmq::recv_flags::dontwait)) return false;
  watch->delivered(message);
  return true;
}

bool receive(zmq::socket_t& socket, Routed& message, ConnectionWatch& watch) {
  message.whole = false;
  if (!socket.recv(message.route, zmq::recv_flags::dontwait)) return false;
  if (!message.route.more() || !socket.recv(message.body, zmq::recv_flags::dontwait)) return true;
  message.received_ns = instrumentation::monotonic_now_ns();
  message.whole = true;
  watch.delivered(message.body);
  for (bool extra = message.body.more(); extra;) {
    zmq::message_t rest;
    (void)socket.recv(rest, zmq::recv_flags::dontwait);
    watch.delivered(rest);
    extra = rest.more();
  }
  return true;
}

}  // namespace shardscope::collector
