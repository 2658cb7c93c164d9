// A rank's end of the control channel: a thread that answers clock pings at once and executes commands on the
// gate keeper, independently of the training thread.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <zmq.hpp>

#include "instrumentation/gate.h"
#include "instrumentation/host_clock.h"
#include "instrumentation/local_keys.h"
#include "instrumentation/sockets.h"
#include "instrumentation/wire.h"

namespace shardscope::instrumentation {

struct ControlClientOptions {
  std::string endpoint;                    ///< the control endpoint itself
  std::optional<Credentials> credentials;  ///< for the collector's endpoint; nullopt: without a key
  wire::Header header;                     ///< of every sent message
  wire::Hello hello;
  GateKeeper* gate = nullptr;
  std::function<void(Detail)> set_detail;  ///< called on the control thread, like the others
  std::function<int()> detail;
  std::function<void()> resend_tables;
  std::function<void(Request)> ask;
  std::function<void()> finish_received;
  std::function<void(std::string why)> refused;      ///< the collector accepts nothing from this process
  std::function<void(std::uint64_t next)> received;  ///< every message before `next`
  /// Called for each ping: longest allowed pause between drains of the rings, in milliseconds; 0: no limit.
  std::function<void(std::uint16_t)> look_pause;
  std::function<void()> gate_moved;  ///< the rank began to hold at a gate, or continued
  HostClock clock;                   ///< used in clock answers
};

class ControlClient {
 public:
  ControlClient(zmq::context_t& context, ControlClientOptions options);
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;
  /// True if the collector sent a message in the last few seconds.
  [[nodiscard]] bool collector_alive() const noexcept;

 private:
  void connect();
  void run();
  void take_messages(std::int64_t received_ns);
  void handle(const void* data, std::size_t bytes, std::int64_t received_ns);
  void execute(const wire::RankCommand& command);
  void send(wire::Body body);
  void send_position();

  ControlClientOptions options_;
  zmq::context_t& context_;
  zmq::socket_t socket_;
  WakeFd wake_;
  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> last_message_ns_{0};
  std::uint64_t collector_ = 0;     ///< incarnation of the collector that sent the last message
  std::uint64_t last_command_ = 0;  ///< of that collector; commands without a higher number are replays
  std::thread thread_;
};

}  // namespace shardscope::instrumentation
