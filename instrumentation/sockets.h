// Creates the sockets of ranks, collectors and viewers: one place for limits, time-outs and (with keys)
// CURVE. Private to instrumentation and app/collector.
#pragma once

#include <optional>
#include <string>
#include <zmq.hpp>

#include "instrumentation/keys.h"

namespace shardscope::instrumentation {

/// The three sockets behind one endpoint: the user gives `publish`; tcp://host:P has views at P+1 and ranks'
/// control at P+2, ipc://path has path.view and path.control.
struct Endpoints {
  std::string publish, view, control;
};

/// Throws std::runtime_error: endpoint, what is wrong with it, what to write instead.
[[nodiscard]] Endpoints endpoints_of(const std::string& endpoint);

/// True if only processes of this machine can reach it.
[[nodiscard]] bool is_local(const std::string& endpoint);

/// Receive limit of a collector's ZeroMQ: unread messages per rank, of up to 160 KiB each. With a thousand
/// ranks this is most of the bound on a collector's memory.
inline constexpr std::size_t kReceivedMessages = 2;

enum class Role { rank_publish, rank_control, collector_publish, collector_control, collector_view, viewer };

/// Makes a socket with all options of its role; not yet bound or connected. Closing it never waits. A
/// collector's socket accepts peers that the context's ZAP handler allows in the socket's domain (domain_of),
/// and none below ZMTP 3.0. With a key it speaks CURVE only: a rank's or viewer's then connects to that
/// collector and to no other.
[[nodiscard]] zmq::socket_t make_socket(zmq::context_t& context, Role role,
                                        const std::optional<KeyFile>& key = std::nullopt);

/// The ZAP domain of a collector's socket: "publish" (events and ranks' control) or "view".
[[nodiscard]] const char* domain_of(Role role) noexcept;

/// While it exists, threads created inherit a mask that blocks every signal: the training process's own
/// handlers must not run on an observer's thread.
class BlockSignals {
 public:
  BlockSignals();
  ~BlockSignals();
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_;
};

/// An eventfd: wakes a thread that sleeps in poll.
class WakeFd {
 public:
  WakeFd();
  ~WakeFd();
  WakeFd(const WakeFd&) = delete;
  WakeFd& operator=(const WakeFd&) = delete;
  void signal() noexcept;
  void clear() noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

/// Equal in processes that read the same CLOCK_MONOTONIC: same boot, same time namespace.
[[nodiscard]] std::string clock_identity();

/// Random, never 0.
[[nodiscard]] std::uint64_t random_id();

}  // namespace shardscope::instrumentation
