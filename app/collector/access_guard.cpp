#include "app/collector/access_guard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

namespace shardscope::collector {

using instrumentation::KeyRole;

namespace {

constexpr int kFailures = ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                          ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
constexpr int kEvents =
    kFailures | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED;
/// Most queued monitor events, of connections made while the collector is busy. Beyond it libzmq waits.
constexpr int kEventsKept = 100'000;
constexpr const char* kNotSpoken = "it does not speak this protocol";

/// Frames of a ZAP request.
enum Frame : std::size_t { version, id, domain, address, routing_id, mechanism, credentials, kFrames };

std::vector<zmq::message_t> receive_all(zmq::socket_t& socket) {
  std::vector<zmq::message_t> frames;
  zmq::message_t frame;
  while (socket.recv(frame, zmq::recv_flags::dontwait)) {
    const bool more = frame.more();
    frames.push_back(std::exchange(frame, zmq::message_t()));
    if (!more) break;
  }
  return frames;
}

struct Process {
  std::uint32_t user = 0, id = 0;
};

/// Over ipc libzmq reports an address that ends in ":user:group:process", from the kernel; else nullopt.
std::optional<Process> process_at(const std::string& address) {
  std::array<std::uint32_t, 3> numbers{};
  std::size_t end = address.size();
  for (std::size_t i = numbers.size(); i-- > 0;) {
    const std::size_t colon = address.rfind(':', end - 1);
    if (end == 0 || colon == std::string::npos) return std::nullopt;
    const char* last = address.data() + end;
    const auto [rest, error] = std::from_chars(address.data() + colon + 1, last, numbers[i]);
    if (error != std::errc{} || rest != last) return std::nullopt;
    end = colon;
  }
  // An IPv6 address may end like this, but has more colons before.
  if (address.substr(0, end).find(':') != std::string::npos) return std::nullopt;
  return Process{numbers[0], numbers[2]};
}

std::string in_words(std::uint16_t event, std::uint32_t value) {
  if (event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL) return "it broke off the handshake";
  switch (value) {
    case ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH:
      return "it has no key, or has one where none is asked for";
    case ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC:
      return "its handshake was not made with this collector's public key";
    default:
      return kNotSpoken;
  }
}

}  // namespace

AccessGuard::AccessGuard(zmq::context_t& context, const std::optional<instrumentation::KeyFile>& key)
    : keys_in_use_(key.has_value()), handler_(context, zmq::socket_type::rep) {
  for (const instrumentation::KeyFile::Allowed& allowed :
       key ? key->allowed : std::vector<instrumentation::KeyFile::Allowed>{}) {
    std::array<std::uint8_t, 32> bytes{};
    zmq_z85_decode(bytes.data(), allowed.public_key.c_str());  // checked when the file was read
    allowed_[{reinterpret_cast<const char*>(bytes.data()), bytes.size()}] = {
        allowed.role, allowed.name.empty() ? instrumentation::short_name(allowed.public_key)
                                           : "key '" + allowed.name + "'"};
  }
  handler_.set(zmq::sockopt::linger, 0);
  handler_.bind("inproc://zeromq.zap.01");
}

void AccessGuard::watch(zmq::context_t& context, zmq::socket_t& socket, const std::string& name) {
  const std::string endpoint = "inproc://handshakes." + name;
  if (zmq_socket_monitor(socket.handle(), endpoint.c_str(), kEvents) != 0) throw zmq::error_t();
  zmq::socket_t events(context, zmq::socket_type::pair);
  events.set(zmq::sockopt::linger, 0);
  events.set(zmq::sockopt::rcvhwm, kEventsKept);
  events.connect(endpoint);
  watched_.push_back({name, std::move(events), {}});
}

void AccessGuard::add_to(SocketPoll& poll) {
  poll_items_.push_back(poll.add(handler_));
  for (Watched& watched : watched_) poll_items_.push_back(poll.add(watched.events));
}

bool AccessGuard::readable(const SocketPoll& poll) const noexcept {
  return std::any_of(poll_items_.begin(), poll_items_.end(),
                     [&](std::size_t item) { return poll.readable(item); });
}

std::string AccessGuard::right_of(const std::vector<zmq::message_t>& request,
                                  std::vector<Refusal>& refusals) const {
  const std::string_view how = request.size() > mechanism ? request[mechanism].to_string_view() : "";
  // A socket with keys rejects peers without one before libzmq sends a request.
  if (how == "NULL" && !keys_in_use_) {
    const std::optional<Process> peer = process_at(request[address].to_string());
    if (!own_user_only_ || (peer && (peer->user == geteuid() || peer->user == 0))) return "anybody";
    refusals.push_back({request[address].to_string(), "it is not a process of this collector's user"});
    return {};
  }
  if (how != "CURVE" || request.size() != kFrames) return {};
  const auto known = allowed_.find(request[credentials].to_string());
  const std::string asked = request[domain].to_string();
  if (known != allowed_.end()) {
    const KeyRole role = known->second.role;
    const bool fits = asked == "publish"
                          ? role == KeyRole::publish
                          : asked == "view" && (role == KeyRole::view || role == KeyRole::control);
    if (fits) return std::string(instrumentation::name_of(role)) + " " + known->second.name;
  }
  refusals.push_back({request[address].to_string(), known == allowed_.end()
                                                        ? "its key is not on the collector's list"
                                                        : "its key is not for " + asked + "ing"});
  return {};
}

void AccessGuard::answer(std::vector<Refusal>& refusals) {
  for (;;) {
    const std::vector<zmq::message_t> request = receive_all(handler_);
    if (request.empty()) return;
    const std::string right = right_of(request, refusals);
    const std::string_view version_text = "1.0", status = right.empty() ? "400" : "200",
                           why = right.empty() ? "no right" : "OK";
    const std::string request_id = request.size() > id ? request[id].to_string() : "";
    std::array<std::string_view, 6> reply{version_text, request_id, status, why, right, ""};
    for (std::size_t i = 0; i < reply.size(); ++i) {
      const auto more = i + 1 < reply.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
      (void)handler_.send(zmq::const_buffer(reply[i].data(), reply[i].size()),
                          more | zmq::send_flags::dontwait);
    }
  }
}

void AccessGuard::follow(Watched& watched, std::uint16_t event, std::uint32_t value, double now_s,
                         std::vector<Refusal>& refusals) {
  const std::string port = "the " + watched.name + " port";
  switch (event) {
    case ZMQ_EVENT_ACCEPTED:
      watched.handshakes.accepted(static_cast<int>(value), now_s);
      return;
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:  // answer() has reported the reason
      watched.handshakes.resolved();
      return;
    case ZMQ_EVENT_DISCONNECTED:
      if (watched.handshakes.disconnected(static_cast<int>(value))) refusals.push_back({port, kNotSpoken});
      return;
    default:
      watched.handshakes.failed();
      refusals.push_back({port, in_words(event, value)});
      return;
  }
}

std::vector<AccessGuard::Refusal> AccessGuard::serve(double now_s) {
  std::vector<Refusal> refusals;
  answer(refusals);
  for (Watched& watched : watched_) {
    for (;;) {
      const std::vector<zmq::message_t> event = receive_all(watched.events);
      if (event.empty()) break;
      if (event[0].size() < 6) continue;
      std::uint16_t kind = 0;
      std::uint32_t value = 0;
      std::memcpy(&kind, event[0].data(), sizeof kind);
      std::memcpy(&value, event[0].data<char>() + sizeof kind, sizeof value);
      follow(watched, kind, value, now_s, refusals);
    }
  }
  return refusals;
}

std::vector<AccessGuard::Refusal> AccessGuard::overdue(double now_s) {
  std::vector<Refusal> refusals;
  for (Watched& watched : watched_) {
    for (std::size_t count = watched.handshakes.over(now_s); count > 0; --count)
      refusals.push_back({"the " + watched.name + " port", kNotSpoken});
  }
  return refusals;
}

bool AccessGuard::may(zmq::message_t& message, KeyRole role) const {
  if (!keys_in_use_) return true;
  const char* user = zmq_msg_gets(message.handle(), "User-Id");
  if (user == nullptr) return false;
  const std::string_view right(user);  // "control key 'anna'"
  return right.substr(0, right.find(' ')) == instrumentation::name_of(role);
}

std::string AccessGuard::who(zmq::message_t& message) const {
  const auto text_of = [&](const char* property) {
    const char* text = zmq_msg_gets(message.handle(), property);
    return std::string(text == nullptr ? "" : text);
  };
  std::string address = text_of("Peer-Address");
  // The sockets accept IPv6 as well, and report IPv4 addresses in its notation.
  if (constexpr std::string_view kMapped = "::ffff:"; address.starts_with(kMapped))
    address.erase(0, kMapped.size());
  const std::string right = text_of("User-Id");
  const std::size_t space = right.find(' ');
  std::string name =
      keys_in_use_ && space != std::string::npos ? right.substr(space + 1) : "a peer without a key";
  if (const std::optional<Process> peer = process_at(address)) {
    if (!keys_in_use_) name = "a process without a key";
    return name + " (process " + std::to_string(peer->id) + " of user " + std::to_string(peer->user) + ")";
  }
  return address.empty() ? name : name + " from " + address;
}

}  // namespace shardscope::collector
