#include "app/collector/viewer.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>
#include <zmq.hpp>

#include "app/collector/for_store.h"
#include "app/collector/moment_request.h"
#include "app/collector/now.h"
#include "app/collector/viewed_items.h"
#include "instrumentation/clock.h"
#include "instrumentation/local_keys.h"
#include "instrumentation/sockets.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

namespace {

namespace wire = instrumentation::wire;

constexpr double kHeartbeat_s = 0.25;
constexpr double kAskAgain_s = 2;  ///< a reply is due within half a second
constexpr double kLost_s = 3;
/// Bound on decoded items not yet applied by poll(): beyond it nothing is requested.
constexpr std::size_t kWaitingBytes = 64U << 20;

}  // namespace

struct Viewer::State {
  State(const std::string& endpoint, const std::string& key_file, ViewObserver* to)
      : observer(to),
        view_endpoint(instrumentation::endpoints_of(endpoint).view),
        // Of the keys on this machine the one with more rights.
        credentials(endpoint, key_file, {instrumentation::KeyRole::control, instrumentation::KeyRole::view}) {
    connect();
    header.incarnation = instrumentation::random_id();
  }

  ViewObserver* const observer;
  std::string view_endpoint;
  instrumentation::Credentials credentials;
  zmq::context_t context{1};
  zmq::socket_t socket;
  instrumentation::WakeFd outgoing;  ///< wakes the thread: a command, room for items again, or the end
  std::atomic<bool> stop{false};
  std::thread thread;

  // Used by the thread only.
  wire::Header header;
  wire::ViewPoll cursor;
  std::uint64_t request = 0, answered = 0;
  bool asked = false;
  double asked_s = -1e300, last_message_s = -1e300, began_s = now_s(), heartbeat_s = -1e300;

  // Shared; guarded by `mutex`.
  mutable std::mutex mutex;
  std::deque<ViewedItem> items;
  ViewTraffic traffic;                           ///< its waiting_bytes: in `items`
  std::map<std::uint32_t, store::RankRow> rows;  ///< changed since the last poll
  ControlState control;
  bool control_changed = false;
  Link link = Link::connecting;  ///< as of the last reply
  bool behind = true;            ///< poll() has not applied all items from before the link was live
  std::deque<wire::ViewCommand> commands;
  std::deque<wire::Text> moments;  ///< requested ones
  std::uint64_t last_command = 0;

  void connect();
  void run();
  bool send(wire::Body body, std::uint64_t sequence);
  void send_commands();
  void ask(double now);
  void on_reply(wire::ViewReply reply);
  void set_link(Link to);
};

Viewer::Viewer(const std::string& endpoint, const std::string& key_file, ViewObserver* observer) {
  const instrumentation::BlockSignals blocked;
  state_ = std::make_unique<State>(endpoint, key_file, observer);
  State& s = *state_;
  s.thread = std::thread([&s] { s.run(); });
}

Viewer::~Viewer() {
  state_->stop.store(true);
  state_->outgoing.signal();
  state_->thread.join();
}

void Viewer::State::set_link(Link to) {
  const std::lock_guard lock(mutex);
  link = to;
}

void Viewer::State::connect() {
  socket = make_socket(context, instrumentation::Role::viewer, credentials.key());
  if (credentials.known()) socket.connect(view_endpoint);
  const std::string missing = credentials.what_is_missing();
  const std::lock_guard lock(mutex);
  if (control.note == missing) return;
  control.note = missing;
  control_changed = true;
}

bool Viewer::State::send(wire::Body body, std::uint64_t sequence) {
  wire::Message message;
  message.header = header;
  message.header.sequence = sequence;
  message.body = std::move(body);
  const wire::Frame frame = wire::encode(message);
  try {
    return socket.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::dontwait).has_value();
  } catch (const zmq::error_t&) {
    return false;
  }
}

void Viewer::State::send_commands() {
  for (;;) {
    wire::Text moment;
    {
      const std::lock_guard lock(mutex);
      if (moments.empty()) break;
      moment = moments.front();
    }
    if (!send(std::move(moment), 0)) return;
    const std::lock_guard lock(mutex);
    moments.pop_front();
  }
  for (;;) {
    wire::ViewCommand command;
    {
      const std::lock_guard lock(mutex);
      if (commands.empty()) return;
      command = commands.front();
    }
    if (!send(command, 0)) return;  // no connection; tried again
    const std::lock_guard lock(mutex);
    commands.pop_front();
  }
}

void Viewer::State::ask(double now) {
  bool full = false;
  {
    const std::lock_guard lock(mutex);
    full = traffic.waiting_bytes > kWaitingBytes;
  }
  if ((!asked || now - asked_s > kAskAgain_s) && !full) {
    cursor.want_items = true;
    if (send(cursor, ++request)) {
      asked = true;
      asked_s = now;
      heartbeat_s = now;
    }
  } else if (now - heartbeat_s >= kHeartbeat_s) {
    // Renews the lease of a pause: that of a silent viewer expires.
    wire::ViewPoll heartbeat = cursor;
    heartbeat.want_items = false;
    if (send(heartbeat, request)) heartbeat_s = now;
  }
}

void Viewer::State::run() {
  while (!stop.load()) {
    const double now = now_s();
    if (credentials.changed(instrumentation::monotonic_now_ns())) {
      connect();
      asked = false;
    }
    send_commands();
    ask(now);
    if (last_message_s > 0 && now - last_message_s > kLost_s) {
      const std::lock_guard lock(mutex);
      if (link != Link::ended && traffic.waiting_bytes <= kWaitingBytes) link = Link::lost;
    }
    std::array<zmq::pollitem_t, 2> poll{
        {{socket.handle(), 0, ZMQ_POLLIN, 0}, {nullptr, outgoing.fd(), ZMQ_POLLIN, 0}}};
    try {
      zmq::poll(poll.data(), poll.size(), std::chrono::milliseconds(asked ? 100 : 20));
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR) return;
    }
    outgoing.clear();
    zmq::message_t message;
    while (socket.recv(message, zmq::recv_flags::dontwait)) {
      {
        const std::lock_guard lock(mutex);
        traffic.bytes += message.size();
      }
      wire::Decoded decoded = wire::decode(message.data(), message.size(), wire::From::collector_view);
      if (!decoded.message) {
        const std::lock_guard lock(mutex);
        control.note = "a reply of the collector was ignored: " + decoded.why;
        control_changed = true;
        continue;
      }
      // A reply may be late, to a poll that has been repeated since; never accepted twice.
      const std::uint64_t answer = decoded.message->header.sequence;
      if (answer > request || answer <= answered) continue;
      answered = answer;
      asked = false;
      last_message_s = now_s();
      on_reply(std::get<wire::ViewReply>(std::move(decoded.message->body)));
    }
  }
}

void Viewer::State::on_reply(wire::ViewReply reply) {
  std::vector<ViewedItem> fresh;
  const bool anew = cursor.log != reply.log;
  if (anew) {
    if (cursor.log != 0) {
      const std::lock_guard lock(mutex);
      fresh.emplace_back(AnotherRun{traffic});
    }
    cursor = {.log = reply.log};
  }
  std::uint64_t missing = 0, damaged = 0;
  // A reply with only tables and names does not skip items yet.
  if (reply.cursor >= reply.begin_cursor)
    missing = reply.begin_cursor - std::min(cursor.cursor, reply.begin_cursor);
  const bool begin_missing = missing > 0 && cursor.cursor == 0;
  const auto encoded = observer != nullptr ? KeepEncoded::yes : KeepEncoded::no;
  for (wire::ViewItem& item : reply.items) fresh.push_back(viewed_item(std::move(item), encoded, damaged));
  cursor.static_cursor = reply.static_cursor;
  cursor.cursor = reply.cursor;
  cursor.rank_revision = reply.rank_revision;
  cursor.receipt = reply.receipt;

  const std::lock_guard lock(mutex);
  for (ViewedItem& item : fresh) {
    traffic.waiting_bytes += size_of(item);
    items.push_back(std::move(item));
  }
  for (wire::RankState& state : reply.ranks) {
    store::RankRow row = viewed_row(std::move(state));
    rows[row.rank] = std::move(row);
  }
  const ControlState before = control;
  control.pausing = reply.pausing;
  control.paused = reply.paused;
  control.gate = reply.gate;
  control.lease_left_s = reply.lease_left_s;
  control.note = reply.note;
  control_changed = control_changed || before.pausing != control.pausing || before.paused != control.paused ||
                    before.gate != control.gate || before.note != control.note;
  if (anew) traffic = {.bytes = traffic.bytes, .waiting_bytes = traffic.waiting_bytes};
  traffic.from_begin = (anew || traffic.from_begin) && !begin_missing;
  traffic.items_behind = reply.end_cursor - std::min(reply.cursor, reply.end_cursor);
  traffic.items_missing += missing;
  traffic.items_damaged += damaged;
  const Link before_reply = link;
  link = reply.cursor < reply.end_cursor ? Link::catching_up : (reply.finished ? Link::ended : Link::live);
  if (link == Link::catching_up || before_reply == Link::connecting || before_reply == Link::lost || anew)
    behind = true;
  if (link != Link::catching_up && items.empty()) behind = false;
}

bool Viewer::poll(store::Store& store, std::chrono::microseconds budget) {
  State& s = *state_;
  const auto end = std::chrono::steady_clock::now() + budget;
  bool changed = false;
  std::map<std::uint32_t, store::RankRow> rows;
  {
    const std::lock_guard lock(s.mutex);
    changed = std::exchange(s.control_changed, false);
  }
  for (;;) {
    ViewedItem item;
    {
      const std::lock_guard lock(s.mutex);
      if (s.items.empty()) {
        rows.swap(s.rows);  // rows count all items before them
        if (s.link != Link::catching_up) s.behind = false;
        break;
      }
      item = std::move(s.items.front());
      s.items.pop_front();
      const std::size_t bytes = size_of(item);
      std::size_t& waiting = s.traffic.waiting_bytes;
      if (waiting > kWaitingBytes && waiting - bytes <= kWaitingBytes) s.outgoing.signal();
      waiting -= bytes;
    }
    changed = true;
    hand_over(item, store, s.observer);
    if (std::chrono::steady_clock::now() >= end) break;
  }
  for (const auto& [rank, row] : rows) {
    if (s.observer != nullptr) s.observer->rank(row);
    store.set_rank(for_store(row));
    changed = true;
  }
  return changed;
}

void Viewer::send(const Command& command) {
  wire::ViewCommand out;
  switch (command.kind) {
    case Command::Kind::pause:
      out.kind = wire::ViewCommand::Kind::pause;
      break;
    case Command::Kind::resume:
      out.kind = wire::ViewCommand::Kind::resume;
      break;
    case Command::Kind::set_detail:
      out.kind = wire::ViewCommand::Kind::set_detail;
      break;
    case Command::Kind::ask:
      out.kind = wire::ViewCommand::Kind::ask;
      break;
  }
  out.rule = command.rule;
  out.detail = command.detail;
  out.request = command.request;
  {
    const std::lock_guard lock(state_->mutex);
    out.id = ++state_->last_command;
    state_->commands.push_back(out);
  }
  state_->outgoing.signal();
}

void Viewer::keep(const std::string& kind, std::int64_t at_ns, const std::string& text) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->moments.push_back({at_ns, instrumentation::Severity::info, moment_request_text(kind, text)});
  }
  state_->outgoing.signal();
}

Viewer::Traffic Viewer::traffic() const {
  const std::lock_guard lock(state_->mutex);
  return state_->traffic;
}

ControlState Viewer::control() const {
  const std::lock_guard lock(state_->mutex);
  return state_->control;
}

Viewer::Link Viewer::link() const {
  const State& s = *state_;
  const std::lock_guard lock(s.mutex);
  if (s.link == Link::connecting || s.link == Link::lost) return s.link;
  // Items that poll() has not applied are not shown: to the caller the run is neither live nor over.
  if (s.behind) return Link::catching_up;
  return s.link == Link::ended && !s.items.empty() ? Link::live : s.link;
}

}  // namespace shardscope::collector
