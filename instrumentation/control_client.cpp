#include "instrumentation/control_client.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <utility>

#include "instrumentation/clock.h"
#include "instrumentation/emission_cost.h"
#include "instrumentation/post.h"

namespace shardscope::instrumentation {

namespace {
constexpr std::int64_t kHelloEvery = 1'000'000'000;
constexpr std::int64_t kFirstHelloEvery =
    20'000'000;                              ///< until the collector's first message: it may just be starting
constexpr std::int64_t kLookEvery_ms = 250;  ///< interval of checks for another key
constexpr std::int64_t kAliveFor = 5'000'000'000;
}  // namespace

ControlClient::ControlClient(zmq::context_t& context, ControlClientOptions options)
    : options_(std::move(options)), context_(context) {
  connect();
  options_.gate->set_on_change([this] { wake_.signal(); });
  const BlockSignals blocked;
  thread_ = std::thread([this] { run(); });
}

ControlClient::~ControlClient() {
  options_.gate->set_on_change(nullptr);
  stop_.store(true);
  wake_.signal();
  thread_.join();
}

void ControlClient::connect() {
  const std::optional<Credentials>& credentials = options_.credentials;
  socket_ = make_socket(context_, Role::rank_control, credentials ? credentials->key() : std::nullopt);
  if (!credentials || credentials->known()) socket_.connect(options_.endpoint);
}

bool ControlClient::collector_alive() const noexcept {
  const std::int64_t last = last_message_ns_.load(std::memory_order_relaxed);
  return last != 0 && monotonic_now_ns() - last < kAliveFor;
}

void ControlClient::run() {
  pthread_setname_np(pthread_self(), kControlThread);
  std::int64_t next_hello = 0, next_try = 0;
  bool other_key = false;
  while (!stop_.load()) {
    const std::int64_t now = monotonic_now_ns();
    other_key |= options_.credentials && options_.credentials->changed(now);
    if (other_key && now >= next_try) {
      take_messages(now);  // from a collector that has ended, whose key is gone too
      try {
        connect();
        other_key = false;
        next_hello = now;
      } catch (const zmq::error_t&) {
        // No file descriptor for a second socket: the current one stays until there is.
        next_try = now + kLookEvery_ms * 1'000'000;
      }
    }
    if (now >= next_hello) {
      // Repeated: a restarted collector does not know its ranks.
      send(options_.hello);
      send_position();
      next_hello = now + (collector_alive() ? kHelloEvery : kFirstHelloEvery);
    }
    std::array<zmq::pollitem_t, 2> items{
        {{socket_.handle(), 0, ZMQ_POLLIN, 0}, {nullptr, wake_.fd(), ZMQ_POLLIN, 0}}};
    // A collector that replies accepts the current key, so this thread need not check often; each wake-up
    // takes a core from a computing thread.
    const std::int64_t until_hello_ms = (next_hello - now) / 1'000'000;
    const std::int64_t wait_ms =
        (collector_alive() ? until_hello_ms : std::min(until_hello_ms, kLookEvery_ms)) + 1;
    try {
      zmq::poll(items.data(), items.size(), std::chrono::milliseconds(wait_ms));
    } catch (const zmq::error_t& error) {
      if (error.num() == EINTR) continue;
      return;
    }
    const std::int64_t received = monotonic_now_ns();
    if ((items[1].revents & ZMQ_POLLIN) != 0) {
      wake_.clear();
      send_position();
      if (options_.gate_moved) options_.gate_moved();
    }
    take_messages(received);
  }
}

void ControlClient::take_messages(std::int64_t received_ns) {
  zmq::message_t message;
  while (socket_.recv(message, zmq::recv_flags::dontwait))
    handle(message.data(), message.size(), received_ns);
}

void ControlClient::handle(const void* data, std::size_t bytes, std::int64_t received_ns) {
  wire::Decoded decoded = wire::decode(data, bytes, wire::From::collector_control);
  if (!decoded.message) return;  // the collector's message has the error
  if (decoded.message->header.run_id != options_.header.run_id) return;
  if (auto* refusal = std::get_if<wire::Refusal>(&decoded.message->body)) {
    if (options_.refused) options_.refused(std::move(refusal->why));
    return;
  }
  last_message_ns_.store(received_ns, std::memory_order_relaxed);
  if (const auto* ping = std::get_if<wire::Ping>(&decoded.message->body)) {
    const HostClock& clock = options_.clock;
    if (options_.look_pause) options_.look_pause(ping->look_ms);
    send(wire::Pong{ping->id, ping->sent_ns, clock.at(received_ns), clock.at(monotonic_now_ns())});
    return;
  }
  if (const auto* received = std::get_if<wire::Received>(&decoded.message->body)) {
    if (received->source == options_.header.incarnation && options_.received)
      options_.received(received->next);
    return;
  }
  if (const auto* command = std::get_if<wire::RankCommand>(&decoded.message->body)) {
    if (decoded.message->header.incarnation != collector_) {
      collector_ = decoded.message->header.incarnation;
      last_command_ = 0;
    }
    if (command->id <= last_command_) return;
    last_command_ = command->id;
    execute(*command);
  }
}

void ControlClient::execute(const wire::RankCommand& command) {
  using Kind = wire::RankCommand::Kind;
  GateKeeper& gate = *options_.gate;
  switch (command.kind) {
    case Kind::prepare_pause:
      gate.renew_lease(command.lease_s);
      {
        const GateKeeper::Counts passed = gate.prepare_pause();
        send(wire::Prepared{command.id, passed.gates, passed.steps});
      }
      return;
    case Kind::hold_at:
      gate.renew_lease(command.lease_s);
      if (command.by_step) {
        gate.hold_at_step(command.gate);
      } else {
        gate.hold_at(command.gate);
      }
      return;
    case Kind::resume:
      gate.renew_lease(command.lease_s);
      gate.resume(command.rule, command.gate);
      return;
    case Kind::renew_lease:
      gate.renew_lease(command.lease_s);
      return;
    case Kind::set_detail:
      if (options_.set_detail) options_.set_detail(command.detail);
      send_position();
      return;
    case Kind::resend_tables:
      if (options_.resend_tables) options_.resend_tables();
      return;
    case Kind::ask:
      if (options_.ask) options_.ask(command.request);
      return;
    case Kind::finish_received:
      if (options_.finish_received) options_.finish_received();
      return;
    case Kind::keep:  // ranks store no recording: the collectors of nodes do
      return;
  }
}

void ControlClient::send(wire::Body body) {
  const wire::Frame frame = wire::encode({options_.header, std::move(body)});
  try {
    // Dropped if there is no collector; everything sent here is sent again.
    (void)socket_.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::dontwait);
  } catch (const zmq::error_t&) {
  }
}

void ControlClient::send_position() {
  wire::Position position;
  position.position = options_.gate->position();
  position.passed = options_.gate->passed();
  position.lease_expirations = options_.gate->lease_expirations();
  if (options_.detail) position.detail = static_cast<std::int8_t>(options_.detail());
  send(position);
}

}  // namespace shardscope::instrumentation
