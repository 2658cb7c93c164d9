#include "instrumentation/rank_link.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <zmq.hpp>

#include "instrumentation/clock.h"
#include "instrumentation/control_client.h"
#include "instrumentation/emission_cost.h"
#include "instrumentation/link_state.h"
#include "instrumentation/local_keys.h"
#include "instrumentation/send_queue.h"
#include "instrumentation/sent_window.h"
#include "instrumentation/sockets.h"

namespace shardscope::instrumentation {

namespace {
constexpr std::size_t kPostedLimit = 4096;
/// Storage of sent batches kept for reuse: enough for one drain and the batches cut from it.
constexpr std::size_t kSpares = 3, kLargestSpare = 4 * kBatchEvents;
/// How long to wait at the end for a collector that never replied.
constexpr double kUnknownCollectorWait = 1.0;

std::int64_t realtime_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void free_frame(void*, void* hint) { delete static_cast<wire::Frame*>(hint); }

/// Passes the encoded bytes to ZeroMQ without another copy.
zmq::message_t to_message(wire::Frame frame) {
  auto owned = std::make_unique<wire::Frame>(std::move(frame));
  zmq::message_t message(const_cast<std::uint8_t*>(owned->data()), owned->size(), free_frame, owned.get());
  (void)owned.release();
  return message;
}
}  // namespace

struct LinkContext::State {
  zmq::context_t context{1};
};

LinkContext::LinkContext(std::size_t links) : state_(std::make_unique<State>()) {
  // A publishing and a control socket each, and two that monitor the first one's connection. Twice, because
  // after a change of keys new ones are opened while ZeroMQ is still closing the old.
  state_->context.set(zmq::ctxopt::max_sockets, static_cast<int>(8 * links + 64));
}
LinkContext::~LinkContext() = default;

struct RankLink::State {
  State(RankLinkOptions o, RunTables t)
      : options(std::move(o)),
        tables(std::move(t)),
        window(SentWindow::part_of(options.queue_bytes)),
        queue(options.queue_bytes - SentWindow::part_of(options.queue_bytes)) {}

  RankLinkOptions options;
  RunTables tables;
  wire::Header header;
  SentWindow window;  ///< encoded messages that are unsent or unconfirmed
  SendQueue queue;
  std::vector<std::vector<Event>> spares;  ///< storage of encoded batches, for reuse
  bool finish_queued = false;

  std::mutex mutex;  // guards what other threads post
  std::vector<wire::Body> posted;
  std::optional<RunTables> more;       ///< tables that replace the current ones
  std::vector<wire::Name> names;       ///< all so far, for a resend
  std::optional<wire::Finish> finish;  ///< likewise
  std::uint64_t posted_lost = 0;
  std::string refusal;

  std::atomic<bool> resend{false};
  std::atomic<bool> finish_acknowledged{false};
  std::atomic<std::uint64_t> confirmed{0};  ///< number of confirmed messages
  std::atomic<std::uint64_t> shed{0};
  std::atomic<std::size_t> queued{0};

  std::optional<zmq::context_t> own_context;
  std::optional<Credentials> credentials;
  bool other_key = false;  ///< the credentials differ from the socket's key
  std::optional<zmq::socket_t> socket;
  std::optional<LinkState> link;
  std::unique_ptr<ControlClient> control;

  zmq::context_t& context() {
    return options.shared != nullptr ? options.shared->state_->context : *own_context;
  }
  void connect();
  void encode_next();
  void take_posted();
  void keep(std::vector<Event> memory);
};

RankLink::RankLink(RankLinkOptions options, RunTables tables)
    : state_(std::make_unique<State>(std::move(options), std::move(tables))) {
  State& s = *state_;
  const Endpoints endpoints = endpoints_of(s.options.endpoint);
  const BlockSignals blocked;  // ZeroMQ's threads start with the first socket
  s.header.rank = s.tables.rank;
  s.header.run_id = s.tables.run_id;
  s.header.incarnation = random_id();
  s.credentials.emplace(s.options.endpoint, s.options.key_file, std::vector{KeyRole::publish});
  if (s.options.shared == nullptr)
    s.own_context.emplace(1).set(zmq::ctxopt::thread_name_prefix, kIoThreadPrefix);
  s.connect();

  ControlClientOptions control;
  control.endpoint = endpoints.control;
  control.credentials = s.credentials;
  control.header = s.header;
  control.hello = {s.tables.world, s.tables.pid, s.tables.host,
                   s.options.clock_id.empty() ? clock_identity() : s.options.clock_id};
  control.gate = s.options.gate;
  control.set_detail = s.options.set_detail;
  control.detail = s.options.detail;
  control.look_pause = s.options.look_pause;
  control.gate_moved = s.options.gate_moved;
  control.ask = s.options.ask;
  control.resend_tables = [&s] { s.resend.store(true); };
  control.finish_received = [&s] { s.finish_acknowledged.store(true); };
  control.refused = [&s](std::string why) {
    const std::lock_guard lock(s.mutex);
    s.refusal = std::move(why);
  };
  control.received = [&s](std::uint64_t next) { s.confirmed.store(next); };
  control.clock = s.options.clock;
  s.control = std::make_unique<ControlClient>(s.context(), std::move(control));
  s.queue.push(wire::Body(wire::Tables{s.tables}));
}

void RankLink::State::connect() {
  zmq::socket_t made = make_socket(context(), Role::rank_publish, credentials->key());
  link.reset();
  socket = std::move(made);
  link.emplace(context(), *socket);
  window.rewind();  // messages in the previous socket are lost with it
  if (credentials->known()) socket->connect(endpoints_of(options.endpoint).publish);
}

RankLink::~RankLink() {
  State& s = *state_;
  s.control.reset();
  // Gives messages that the socket has not yet written to the kernel a bounded moment.
  s.link.reset();
  s.socket->set(zmq::sockopt::linger, s.finish_acknowledged.load() ? 0 : 200);
  s.socket->close();
}

void RankLink::push(std::vector<Event> events, std::uint64_t dropped, std::int64_t begin_ns,
                    std::int64_t end_ns, std::int64_t clock_error_ns) {
  if (events.empty() && dropped == 0) return;
  State& s = *state_;
  const bool cut = events.size() > kBatchEvents;
  std::size_t first = 0;
  do {
    wire::Batch batch;
    const std::size_t count = std::min(kBatchEvents, events.size() - first);
    if (!cut) {
      batch.events = std::move(events);
    } else {
      batch.events = buffer();
      batch.events.assign(events.begin() + static_cast<std::ptrdiff_t>(first),
                          events.begin() + static_cast<std::ptrdiff_t>(first + count));
    }
    const bool last = first + count >= events.size() || events.empty();
    batch.dropped_here = first == 0 ? dropped : 0;
    batch.begin_ns =
        first == 0 || batch.events.empty() ? begin_ns : static_cast<std::int64_t>(batch.events.front().ticks);
    batch.end_ns =
        last || batch.events.empty() ? end_ns : static_cast<std::int64_t>(batch.events.back().ticks);
    if (batch.dropped_here != 0) {
      batch.begin_ns = begin_ns;
      batch.end_ns = end_ns;
    }
    batch.clock_ns = s.options.clock.at(monotonic_now_ns());
    batch.clock_realtime_ns = realtime_ns();
    batch.clock_error_ns = clock_error_ns;
    first += count;
    s.queue.push(std::move(batch));
    if (last) break;
  } while (first < events.size());
  if (cut) s.keep(std::move(events));
  s.shed.store(s.queue.shed(), std::memory_order_relaxed);
  s.queued.store(s.queue.bytes() + s.window.bytes(), std::memory_order_relaxed);
}

std::vector<Event> RankLink::buffer() noexcept {
  std::vector<std::vector<Event>>& spares = state_->spares;
  if (spares.empty()) return {};
  std::vector<Event> events = std::move(spares.back());
  spares.pop_back();
  events.clear();
  return events;
}

void RankLink::State::keep(std::vector<Event> memory) {
  if (memory.capacity() != 0 && memory.capacity() <= kLargestSpare && spares.size() < kSpares)
    spares.push_back(std::move(memory));
}

void RankLink::State::take_posted() {
  std::vector<wire::Body> taken;
  std::uint64_t lost = 0;
  {
    const std::lock_guard lock(mutex);
    taken.swap(posted);
    lost = std::exchange(posted_lost, 0);
    if (more) {
      tables = std::move(*more);
      more.reset();
      queue.push(wire::Body(wire::Tables{tables}));
    }
    // A collector that does not read asks again every second: do not queue the same tables repeatedly.
    if (resend.exchange(false) && !queue.has_tables()) {
      // In the order that a collector needs: tables first, then names, the end last.
      for (const wire::Name& name : names) queue.push_front(wire::Body(name));
      queue.push_front(wire::Body(wire::Tables{tables}));
      if (finish && finish_queued) queue.push(wire::Body(*finish));
    }
  }
  for (wire::Body& body : taken) {
    if (std::holds_alternative<wire::Finish>(body)) finish_queued = true;
    queue.push(std::move(body));
  }
  if (lost != 0) {
    queue.push(wire::Body(wire::Text{monotonic_now_ns(), Severity::warning,
                                     std::to_string(lost) + " messages were not sent: too many at once"}));
  }
}

void RankLink::State::encode_next() {
  wire::Message message;
  message.body = queue.pop();
  message.header = header;
  ++header.sequence;
  zmq::message_t encoded = to_message(wire::encode(message));
  auto* batch = std::get_if<wire::Batch>(&message.body);
  window.add(message.header.sequence, encoded, batch != nullptr ? batch->events.size() : 0);
  if (batch != nullptr) keep(std::move(batch->events));
}

void RankLink::pump() {
  State& s = *state_;
  s.take_posted();
  s.other_key |= s.credentials->changed(monotonic_now_ns());
  if (s.other_key) {
    try {
      s.connect();
      s.other_key = false;
    } catch (const zmq::error_t&) {  // no file descriptor for a socket: retried at the next call
    }
    if (!s.link) return;
  }
  s.window.confirm(s.confirmed.load());
  for (;;) {
    if (s.link->update()) s.window.rewind();
    if (!s.link->up()) break;
    if (s.window.all_sent()) {
      // A peer that receives events but never confirms any is not waited for: a reader without a control
      // channel.
      if (s.window.full() && s.confirmed.load() == 0) s.window.confirm(s.header.sequence);
      if (s.queue.empty() || s.window.full()) break;
      s.encode_next();
    }
    try {
      if (!s.socket->send(*s.window.next(), zmq::send_flags::dontwait)) break;
    } catch (const zmq::error_t& error) {
      if (error.num() == EINTR) continue;
      break;
    }
    s.window.sent();
  }
  s.queued.store(s.queue.bytes() + s.window.bytes(), std::memory_order_relaxed);
}

bool RankLink::drain(double seconds) {
  State& s = *state_;
  const std::int64_t begin = monotonic_now_ns();
  for (;;) {
    pump();
    const bool sent = s.queue.empty() && s.window.all_sent();
    if (sent && (!s.finish_queued || s.finish_acknowledged.load())) return true;
    const double passed = static_cast<double>(monotonic_now_ns() - begin) * 1e-9;
    const double bound = s.control->collector_alive() ? seconds : std::min(seconds, kUnknownCollectorWait);
    if (passed >= bound) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::uint64_t RankLink::unsent_events() const noexcept {
  return state_->queue.events() + state_->window.events();
}

void RankLink::post(wire::Body body) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  if (const auto* name = std::get_if<wire::Name>(&body)) s.names.push_back(*name);
  if (const auto* finish = std::get_if<wire::Finish>(&body)) {
    s.finish = *finish;
  } else if (s.posted.size() >= kPostedLimit) {
    ++s.posted_lost;
    return;
  }
  s.posted.push_back(std::move(body));
}

void RankLink::post_tables(RunTables tables) {
  const std::lock_guard lock(state_->mutex);
  state_->more = std::move(tables);
}

std::uint64_t RankLink::shed() const noexcept { return state_->shed.load(std::memory_order_relaxed); }
std::size_t RankLink::queued_bytes() const noexcept { return state_->queued.load(std::memory_order_relaxed); }
std::string RankLink::refusal() const {
  const std::lock_guard lock(state_->mutex);
  return state_->refusal;
}
std::uint32_t RankLink::rank() const noexcept { return state_->header.rank; }
bool RankLink::finish_received() const noexcept { return state_->finish_acknowledged.load(); }
bool RankLink::collector_alive() const noexcept { return state_->control->collector_alive(); }

}  // namespace shardscope::instrumentation
