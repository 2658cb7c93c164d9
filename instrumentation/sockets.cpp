#include "instrumentation/sockets.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>

#include "instrumentation/wire.h"

namespace shardscope::instrumentation {

Endpoints endpoints_of(const std::string& endpoint) {
  const auto bad = [&](const std::string& why) {
    return std::runtime_error("endpoint '" + endpoint + "': " + why +
                              "; write tcp://HOST:PORT (for example tcp://127.0.0.1:5711) or ipc://PATH");
  };
  if (endpoint.rfind("ipc://", 0) == 0) {
    if (endpoint.size() == 6) throw bad("no path");
    return {endpoint, endpoint + ".view", endpoint + ".control"};
  }
  if (endpoint.rfind("tcp://", 0) != 0) throw bad("not a tcp or ipc endpoint");
  const std::size_t colon = endpoint.rfind(':');
  if (colon == 3 || colon + 1 == endpoint.size()) throw bad("no port");
  if (colon == 6) throw bad("no host");
  unsigned port = 0;
  const char* end = endpoint.data() + endpoint.size();
  const auto [rest, error] = std::from_chars(endpoint.data() + colon + 1, end, port);
  if (error != std::errc{} || rest != end) throw bad("the port is not a number");
  if (port == 0 || port > 65533)
    throw bad("the port must be from 1 to 65533 (the next two are used as well)");
  const std::string host = endpoint.substr(0, colon + 1);
  return {endpoint, host + std::to_string(port + 1), host + std::to_string(port + 2)};
}

bool is_local(const std::string& endpoint) {
  if (endpoint.rfind("ipc://", 0) == 0) return true;
  for (const char* host : {"tcp://localhost:", "tcp://[::1]:"}) {
    if (endpoint.rfind(host, 0) == 0) return true;
  }
  // 127.0.0.0/8, but not a name that merely starts with it.
  if (endpoint.rfind("tcp://127.", 0) != 0) return false;
  const std::string host = endpoint.substr(6, endpoint.rfind(':') - 6);
  return host.find_first_not_of("0123456789.") == std::string::npos;
}

const char* domain_of(Role role) noexcept { return role == Role::collector_view ? "view" : "publish"; }

namespace {

/// Oversized control messages up to this limit are received so that they can be counted as ignored; beyond it
/// libzmq cuts the connection silently.
constexpr std::size_t kCountedControlBytes = 16 * wire::kMaxControlBytes;

bool is_collectors(Role role) noexcept {
  return role == Role::collector_publish || role == Role::collector_control || role == Role::collector_view;
}

void use_key(zmq::socket_t& socket, const KeyFile& key) {
  socket.set(zmq::sockopt::curve_secretkey, key.pair.secret_key);
  if (key.role == KeyRole::collector) {
    socket.set(zmq::sockopt::curve_server, true);
  } else {
    socket.set(zmq::sockopt::curve_publickey, key.pair.public_key);
    socket.set(zmq::sockopt::curve_serverkey, key.collector);
  }
}

}  // namespace

zmq::socket_t make_socket(zmq::context_t& context, Role role, const std::optional<KeyFile>& key) {
  const auto type = [&] {
    switch (role) {
      case Role::rank_publish:
        return zmq::socket_type::push;
      case Role::rank_control:
        return zmq::socket_type::dealer;
      case Role::collector_publish:
        return zmq::socket_type::pull;
      case Role::collector_control:
      case Role::collector_view:
        return zmq::socket_type::router;
      case Role::viewer:
        return zmq::socket_type::dealer;
    }
    return zmq::socket_type::pair;
  }();
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::ipv6, true);
  socket.set(zmq::sockopt::reconnect_ivl, 50);
  socket.set(zmq::sockopt::reconnect_ivl_max, 1000);
  // Detects a cut link in ten seconds instead of TCP's two hours. Through the kernel, not ZeroMQ's
  // heartbeats: those scan all timers each time (two thousand for a thousand ranks), and are not safe if a
  // peer is stopped. A peer whose input is full reads no replies and is disconnected, and if its peer closes
  // meanwhile, the next heartbeat aborts the process: libzmq 4.3.4 asserts that nothing is sent after an
  // error of the connection (zeromq/libzmq issues 3937 and 4841).
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, 2);
  socket.set(zmq::sockopt::tcp_keepalive_intvl, 2);
  socket.set(zmq::sockopt::tcp_keepalive_cnt, 4);
  socket.set(zmq::sockopt::tcp_maxrt, 10000);
  socket.set(zmq::sockopt::handshake_ivl, 10000);
  if (key) use_key(socket, *key);
  // With a domain libzmq authenticates peers, and rejects ZMTP 1.0 and 2.0, which cannot authenticate.
  // Without one it accepts those, for which any bytes are frames: a web page's request would be a message of
  // this protocol.
  if (is_collectors(role)) socket.set(zmq::sockopt::zap_domain, domain_of(role));
  switch (role) {
    case Role::rank_publish:
      // Few: messages should wait in our own queue, which drops the least important first.
      socket.set(zmq::sockopt::sndhwm, 16);
      socket.set(zmq::sockopt::immediate, true);
      break;
    case Role::rank_control:
      socket.set(zmq::sockopt::sndhwm, 64);
      socket.set(zmq::sockopt::rcvhwm, 1000);
      socket.set(zmq::sockopt::immediate, true);
      socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(wire::kMaxControlBytes));
      break;
    case Role::collector_publish:
      socket.set(zmq::sockopt::rcvhwm, static_cast<int>(kReceivedMessages));
      socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(wire::kMaxFrameBytes));
      break;
    case Role::collector_control:
      socket.set(zmq::sockopt::router_mandatory, true);
      socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kCountedControlBytes));
      break;
    case Role::collector_view:
      socket.set(zmq::sockopt::router_mandatory, true);
      socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kCountedControlBytes));
      break;
    case Role::viewer:
      socket.set(zmq::sockopt::immediate, true);
      socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(wire::kMaxFrameBytes));
      break;
  }
  return socket;
}

BlockSignals::BlockSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}
BlockSignals::~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

WakeFd::WakeFd() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (fd_ < 0)
    throw std::runtime_error("cannot create an event descriptor: too many open files; raise `ulimit -n`");
}
WakeFd::~WakeFd() { close(fd_); }
void WakeFd::signal() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(fd_, &one, sizeof one);
}
void WakeFd::clear() noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = read(fd_, &count, sizeof count);
}

std::string clock_identity() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  if (id.empty()) id = std::to_string(random_id());  // unique among peers
  struct stat info {};
  if (stat("/proc/self/ns/time", &info) == 0) id.append("/").append(std::to_string(info.st_ino));
  return id;
}

std::uint64_t random_id() {
  std::random_device device;
  std::uint64_t id = 0;
  while (id == 0) id = (static_cast<std::uint64_t>(device()) << 32) | device();
  return id;
}

}  // namespace shardscope::instrumentation
