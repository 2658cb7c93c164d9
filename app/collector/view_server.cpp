#include "app/collector/view_server.h"

#include <algorithm>

#include "instrumentation/sockets.h"

namespace shardscope::collector {

namespace {
constexpr double kParkFor_s = 0.5;
constexpr double kGoneAfter_s = 10;
constexpr double kPresent_s = 3;
/// Bytes of a reply: enough to keep a link busy, few enough for low latency; adapted to the viewer's speed.
constexpr std::size_t kFirstReplyBytes = 64U << 10, kReplyBytes = 1U << 20;
constexpr double kQuick_s = 0.25, kSlow_s = 2;
constexpr std::size_t kReplyItems = 4096;
}  // namespace

ViewServer::ViewServer(zmq::socket_t& socket, const ViewLog& log, std::uint64_t log_id, wire::Header header,
                       Source source, ViewerLimits limits)
    : socket_(socket),
      log_(log),
      log_id_(log_id),
      header_(std::move(header)),
      source_(std::move(source)),
      limits_(limits) {}

void ViewServer::received(Peer& peer, double now_s) {
  unreceived_ -= peer.unreceived;
  peer.unreceived = 0;
  const double took_s = now_s - peer.given_s;
  if (took_s < kQuick_s) peer.reply_bytes = std::min(2 * peer.reply_bytes, kReplyBytes);
  if (took_s > kSlow_s) peer.reply_bytes = std::max(peer.reply_bytes / 2, kFirstReplyBytes);
}

/// Cutting the connection frees the reply that libzmq still holds.
void ViewServer::leave_connection(Peer& peer) {
  if (peer.unreceived != 0) (void)cut(peer.connection);
  unreceived_ -= peer.unreceived;
  peer.unreceived = 0;
  peer.receipt = 0;
  peer.reply_bytes = kFirstReplyBytes;
}

void ViewServer::handle(const std::string& route, const Connection& connection, const wire::Message& message,
                        double now_s) {
  const std::uint64_t viewer = message.header.incarnation;
  if (viewer == 0) return;
  if (peers_.size() >= kMaxPeers && !peers_.contains(viewer)) {
    source_.full();
    return;
  }
  Peer& peer = peers_[viewer];
  if (peer.route != route) {
    leave_connection(peer);
    peer.route = route;
    peer.connection = connection;
  }
  peer.last_message_s = now_s;
  source_.viewer_seen(viewer);
  if (const auto* command = std::get_if<wire::ViewCommand>(&message.body)) {
    if (command->id <= peer.last_command) {
      source_.replayed(viewer);
      return;
    }
    peer.last_command = command->id;
    source_.command(viewer, *command);
    return;
  }
  if (const auto* poll = std::get_if<wire::ViewPoll>(&message.body)) {
    const bool has_reply = poll->receipt == peer.receipt;
    if (has_reply && peer.unreceived != 0) received(peer, now_s);
    if (!poll->want_items || (peer.receipt != 0 && !has_reply)) return;
    peer.poll = *poll;
    if (poll->log != log_id_) {
      // Its cursors are of another collector's log, or of none: from the beginning.
      peer.poll.cursor = peer.poll.static_cursor = peer.poll.rank_revision = 0;
    }
    peer.request = message.header.sequence;
    peer.waiting = true;
    peer.asked_s = now_s;
    if (has_new_items(peer) && has_room(peer)) reply(peer, now_s);
  }
}

bool ViewServer::has_new_items(const Peer& peer) const {
  const ViewLog::Ends ends = log_.ends();
  return peer.poll.log != log_id_ || peer.poll.static_cursor < ends.statics || peer.poll.cursor < ends.log ||
         peer.poll.rank_revision < source_.revision();
}

void ViewServer::reply(Peer& peer, double now_s) {
  wire::Message message;
  message.header = header_;
  message.header.sequence = peer.request;
  wire::ViewReply out;
  out.log = log_id_;
  // The state first: when that reports the end of the run, the log contains everything before it.
  out.rank_revision = source_.revision();
  source_.fill(out, peer.poll.rank_revision);
  log_.read(peer.poll.static_cursor, peer.poll.cursor, peer.reply_bytes, kReplyItems, out);
  peer.cursor = out.cursor;
  peer.static_cursor = out.static_cursor;
  const ViewLog::Ends ends = log_.ends();
  peer.ended = out.finished && out.cursor == ends.log && out.static_cursor == ends.statics;
  peer.waiting = false;
  const std::uint64_t receipt = out.receipt = instrumentation::random_id();
  message.body = std::move(out);
  const wire::Frame frame = wire::encode(message);
  try {
    if (!socket_.send(zmq::const_buffer(peer.route.data(), peer.route.size()),
                      zmq::send_flags::sndmore | zmq::send_flags::dontwait)) {
      return;
    }
    (void)socket_.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::dontwait);
    peer.receipt = receipt;
    peer.unreceived = frame.size();
    peer.given_s = now_s;
    unreceived_ += frame.size();
  } catch (const zmq::error_t&) {
    // It has disconnected; it polls again if it reconnects.
  }
}

bool ViewServer::serve(double now_s) {
  bool replied = false;
  for (auto it = peers_.begin(); it != peers_.end();) {
    Peer& peer = it->second;
    const bool stalled = peer.unreceived != 0 && now_s - peer.given_s > patience_s(peer);
    if (stalled || (peer.unreceived == 0 && now_s - peer.last_message_s > kGoneAfter_s)) {
      const double waited_s = now_s - peer.given_s;
      leave_connection(peer);
      it = peers_.erase(it);
      if (stalled) source_.stalled(waited_s);
      continue;
    }
    if (peer.waiting && has_room(peer) && (has_new_items(peer) || now_s - peer.asked_s >= kParkFor_s)) {
      reply(peer, now_s);
      replied = true;
    }
    ++it;
  }
  return replied;
}

std::uint32_t ViewServer::viewers(double now_s) const {
  return static_cast<std::uint32_t>(std::count_if(peers_.begin(), peers_.end(), [&](const auto& entry) {
    return now_s - entry.second.last_message_s < kPresent_s;
  }));
}

void ViewServer::extend_deadlines(double seconds) noexcept {
  for (auto& [viewer, peer] : peers_) {
    peer.last_message_s += seconds;
    peer.given_s += seconds;
    peer.asked_s += seconds;
  }
}

bool ViewServer::behind(double now_s) const {
  return std::any_of(peers_.begin(), peers_.end(), [&](const auto& entry) {
    return now_s - entry.second.last_message_s < kPresent_s && !entry.second.ended;
  });
}

}  // namespace shardscope::collector
