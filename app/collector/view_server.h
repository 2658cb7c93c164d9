// The collector's side of the view protocol: answers each viewer's polls from the log, at the viewer's own
// pace. A poll that finds nothing new is parked until there is something or half a second has passed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "app/collector/collector.h"
#include "app/collector/connections.h"
#include "app/collector/view_log.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

namespace wire = instrumentation::wire;

class ViewServer {
 public:
  /// Callbacks: `fill` and `revision` give a reply's data besides the log; the others report events.
  struct Source {
    std::function<void(wire::ViewReply& reply, std::uint64_t known_revision)> fill;  ///< ranks, control, ...
    std::function<std::uint64_t()> revision;  ///< changes when fill() has something new
    std::function<void(std::uint64_t viewer, const wire::ViewCommand&)> command;
    std::function<void(std::uint64_t viewer)> viewer_seen;
    std::function<void(std::uint64_t viewer)> replayed;  ///< a command was received again; it is ignored
    std::function<void()> full;  ///< one viewer more than kMaxPeers asked; it gets no answer
    std::function<void(double waited_s)> stalled;  ///< a viewer was cut off
  };
  static constexpr std::size_t kMaxPeers = 256;
  ViewServer(zmq::socket_t& socket, const ViewLog& log, std::uint64_t log_id, wire::Header header,
             Source source, ViewerLimits limits = {});

  /// Handles a message of a viewer, already verified.
  void handle(const std::string& route, const Connection& connection, const wire::Message& message,
              double now_s);
  /// Answers parked polls for which there is new data, or which have waited long enough.
  /// Returns whether anything was sent.
  bool serve(double now_s);
  [[nodiscard]] std::uint32_t viewers(double now_s) const;
  /// Whether a present viewer has not been sent everything.
  [[nodiscard]] bool behind(double now_s) const;
  /// The collector was stopped for `seconds`: no viewer counts as silent, or slow, because of that.
  void extend_deadlines(double seconds) noexcept;
  /// Bytes of replies not received yet.
  [[nodiscard]] std::size_t unreceived_bytes() const noexcept { return unreceived_; }

 private:
  struct Peer {
    std::string route;
    Connection connection;
    wire::ViewPoll poll;
    std::uint64_t request = 0;  ///< sequence number of the poll, echoed in the reply
    bool waiting = false;
    double asked_s = 0;
    double last_message_s = 0;
    std::uint64_t given = 0;                      ///< revision of the last reply
    std::uint64_t cursor = 0, static_cursor = 0;  ///< after the last reply
    std::uint64_t last_command = 0;
    bool ended = false;  ///< was sent the end of the run and everything before it
    // [Note: replies under way]
    // A reply that a viewer does not receive stays in libzmq's memory. So one reply to each is in flight: the
    // next follows once the viewer has returned the receipt of the last. A repeated poll gets none: over one
    // connection no reply is lost. First replies are short, so that a viewer that reads nothing costs little.
    std::uint64_t receipt = 0;    ///< of the last reply over this connection; 0: none yet
    std::size_t unreceived = 0;   ///< bytes of it, until its receipt arrives
    double given_s = 0;           ///< when it was sent
    std::size_t reply_bytes = 0;  ///< approximate size of the next
  };
  void received(Peer& peer, double now_s);
  void leave_connection(Peer& peer);
  [[nodiscard]] double patience_s(const Peer& peer) const noexcept {
    return limits_.patience_s + static_cast<double>(peer.unreceived) / limits_.bytes_per_s;
  }
  [[nodiscard]] bool has_new_items(const Peer& peer) const;
  [[nodiscard]] bool has_room(const Peer& peer) const noexcept {
    return unreceived_ == 0 || unreceived_ + peer.reply_bytes <= limits_.bytes;
  }
  void reply(Peer& peer, double now_s);

  zmq::socket_t& socket_;
  const ViewLog& log_;
  std::uint64_t log_id_;
  wire::Header header_;
  Source source_;
  ViewerLimits limits_;
  std::size_t unreceived_ = 0;
  std::map<std::uint64_t, Peer> peers_;  ///< by the viewer's incarnation
};

}  // namespace shardscope::collector
