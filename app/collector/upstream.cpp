#include "app/collector/upstream.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "instrumentation/clock.h"
#include "instrumentation/sockets.h"

namespace shardscope::collector {

using instrumentation::monotonic_now_ns;

namespace {
constexpr int kPacksUnderWay = 16;          ///< in libzmq, each of FramePack::kBytes
constexpr std::size_t kExpectedRanks = 16;  ///< of a node: the bound is divided among at least these

}  // namespace

Upstream::Upstream(zmq::context_t& context, UpstreamOptions options)
    : options_(std::move(options)),
      context_(context),
      credentials_(options_.endpoint, options_.key_file, {instrumentation::KeyRole::publish}) {
  connect();
}

void Upstream::connect() {
  const std::optional<instrumentation::KeyFile>& key = credentials_.key();
  const instrumentation::Endpoints endpoints = instrumentation::endpoints_of(options_.endpoint);
  zmq::socket_t push = make_socket(context_, instrumentation::Role::rank_publish, key);
  push.set(zmq::sockopt::sndhwm, kPacksUnderWay);
  zmq::socket_t control = make_socket(context_, instrumentation::Role::rank_control, key);
  control.set(zmq::sockopt::sndhwm, 4096);
  link_.reset();
  control_link_.reset();
  hellos_.connection_ended();
  push_ = std::move(push);
  control_ = std::move(control);
  rewind();
  link_.emplace(context_, push_);
  control_link_.emplace(context_, control_);
  if (!credentials_.known()) return;
  push_.connect(endpoints.publish);
  control_.connect(endpoints.control);
}

Upstream::Stream& Upstream::stream(const RankSession& rank, const wire::Header& from) {
  std::unique_ptr<Stream>& current = streams_[from.rank];
  if (current && current->source == from.incarnation) return *current;
  if (current && !(current->queue.empty() && current->window.empty())) {
    current->tables.reset();  // those of a replaced process are not requested again
    current->names = {};
    replaced_.push_back(std::move(current));
  } else if (current) {
    shed_before_ += current->queue.shed();
  }
  current = std::make_unique<Stream>(rank);
  current->began_ns = options_.clock.at(monotonic_now_ns());
  share_bytes();
  current->header = from;
  // Another process of the rank, or another collector on its node, is another sender for the collector above.
  current->header.incarnation = from.incarnation ^ options_.id;
  current->header.sequence = 0;
  current->source = from.incarnation;
  current->reported = from.sequence;
  if (replaced_.size() > kMostReplaced) discard_oldest();
  return *streams_[from.rank];
}

/// A rank that restarts repeatedly while the collector above receives nothing must not fill the memory.
void Upstream::discard_oldest() {
  const std::unique_ptr<Stream> oldest = std::move(replaced_.front());
  replaced_.pop_front();
  // Messages in flight may have arrived; without a receipt that is unknown, and they are not sent again.
  const std::uint64_t under_way = oldest->window.events();
  shed_before_ += oldest->queue.shed() + oldest->queue.events() + under_way;
  Stream& stream = *streams_[oldest->header.rank];
  stream.discarded.add(oldest->discarded);
  stream.discarded.add_under_way(under_way);
  oldest->window.rewind();
  for (auto frame = oldest->window.next(); frame; frame = oldest->window.next()) {
    const wire::Decoded decoded = wire::decode(frame->data(), frame->size(), wire::From::rank_publish);
    if (decoded.message) stream.discarded.add(decoded.message->body);
    oldest->window.sent();
  }
  while (!oldest->queue.empty()) stream.discarded.add(oldest->queue.pop());
  note_full(*oldest);
  stream.discarded.add(oldest->dropped_total - oldest->confirmed.dropped);
  stream.lost_total += oldest->lost_total - oldest->confirmed.lost;
  if (stream.next != 0) report_discarded(stream);  // else with its first message, which are its tables
}

void Upstream::report_discarded(Stream& s) {
  if (s.discarded.empty()) return;
  const DiscardedEvents discarded = std::exchange(s.discarded, {});
  wire::Batch batch = discarded.as_drops();
  batch.clock_error_ns = s.clock_error_ns;
  // Never the number of a message to come: the collector above would take that one for received.
  const std::uint64_t last = s.next - 1;
  batch.relay = {s.source, std::min(s.reported, last), last, s.dropped_total, s.lost_total, 0, 0};
  s.queue.push(std::move(batch));
  s.queue.push(wire::Body(wire::Text{options_.clock.at(monotonic_now_ns()),
                                     instrumentation::Severity::warning, discarded.text(s.header.rank)}));
  note_full(s);
}

std::size_t Upstream::bytes_of_each() const noexcept {
  const std::size_t queues = std::max(streams_.size() + replaced_.size(), kExpectedRanks);
  return std::max(options_.bytes / queues, kLeastQueue);
}

void Upstream::share_bytes() {
  const std::size_t each = bytes_of_each();
  const auto share = [&](Stream& stream) {
    const std::size_t unconfirmed = instrumentation::SentWindow::part_of(each);
    stream.queue.set_limit(each - unconfirmed);
    stream.window.set_limit(unconfirmed);
    note_full(stream);
  };
  for (auto& [rank, stream] : streams_) share(*stream);
  for (auto& stream : replaced_) share(*stream);
}

void Upstream::note_full(Stream& stream) noexcept {
  const bool full = stream.queue.full();
  if (full != stream.full) full_ += full ? 1 : -1;
  stream.full = full;
}

std::uint64_t Upstream::shed() const noexcept {
  std::uint64_t sum = shed_before_;
  for (const auto& [rank, stream] : streams_) sum += stream->queue.shed();
  for (const auto& stream : replaced_) sum += stream->queue.shed();
  return sum;
}

std::size_t Upstream::queued_bytes() const noexcept {
  std::size_t bytes = 0;
  const auto of = [](const Stream& s) { return s.queue.bytes() + s.window.bytes(); };
  for (const auto& [rank, stream] : streams_) bytes += of(*stream);
  for (const auto& stream : replaced_) bytes += of(*stream);
  return bytes;
}

void Upstream::published(const RankSession& rank, const wire::Message& message, std::uint64_t missing) {
  Stream& s = stream(rank, message.header);
  // Messages received by an earlier collector of this node are not missing; the one above has their numbers.
  if (s.next != 0) s.lost_total += missing;
  // A message of this collector about the rank has the number of the rank's last message: not `of_rank`.
  const bool of_rank = message.header.sequence + 1 > s.next;
  s.next = message.header.sequence + 1;
  if (const auto* batch = std::get_if<wire::Batch>(&message.body)) {
    s.dropped_total = std::max(s.dropped_total, batch->dropped_total);
    wire::Batch copy = *batch;
    copy.dropped_here = copy.dropped_total = 0;  // from here on they count events shed by this queue
    copy.relay = {s.source, s.reported, message.header.sequence, s.dropped_total, s.lost_total, 0, 0};
    s.reported = s.next;
    s.clock_error_ns = batch->clock_error_ns;
    waiting_bytes_ += copy.events.size() * sizeof(instrumentation::Event);
    s.queue.push(std::move(copy));
    // Also when half a window is queued: a full one would wait for the confirmation of the next pack.
    flush_now_ |= waiting_bytes_ >= FramePack::kBytes ||
                  2 * s.queue.bytes() >= instrumentation::SentWindow::part_of(bytes_of_each());
    report_discarded(s);
    note_full(s);
    return;
  }
  flush_now_ = true;
  wire::Body body = message.body;
  if (const auto* tables = std::get_if<wire::Tables>(&body)) s.tables = lists_.keep(tables->tables);
  if (const auto* name = std::get_if<wire::Name>(&body)) {
    const auto same = [&](const wire::Name& known) { return known.id == name->id; };
    if (std::none_of(s.names.begin(), s.names.end(), same)) s.names.push_back(*name);
  }
  // Converted to this node's clock, whose offset the collector above estimates.
  if (auto* text = std::get_if<wire::Text>(&body)) text->at_ns += s.clock().offset_ns(text->at_ns);
  if (auto* finish = std::get_if<wire::Finish>(&body)) {
    finish->at_ns += s.clock().offset_ns(finish->at_ns);
    s.finish = *finish;
    s.acknowledged = false;
  }
  s.queue.push(std::move(body), of_rank ? s.next : 0);
  report_discarded(s);
  note_full(s);
}

void Upstream::keep_clock(std::uint32_t id, const RankSession& rank) {
  const auto keep = [&](Stream& stream) {
    if (stream.header.rank == id && stream.source == rank.control_incarnation) stream.own_clock = rank.clock;
  };
  if (const auto current = streams_.find(id); current != streams_.end()) keep(*current->second);
  for (auto& stream : replaced_) keep(*stream);
}

void Upstream::control(const wire::Header& from, wire::Body body, double now_s) {
  wire::Header header = from;
  header.incarnation ^= options_.id;
  if (const auto* hello = std::get_if<wire::Hello>(&body)) {
    if (hellos_.rank_hello(header, *hello, now_s)) send_hello(now_s);
    if (!hellos_.passes(header)) return;
  } else if (const auto* position = std::get_if<wire::Position>(&body)) {
    if (!hellos_.passes(from.rank, *position)) return;
  }
  if (!send_control(header, std::move(body))) hellos_.not_taken(from.rank);
}

bool Upstream::send_control(const wire::Header& from, wire::Body body) {
  const wire::Frame frame = wire::encode({from, std::move(body)});
  try {
    return control_.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::dontwait)
        .has_value();
  } catch (const zmq::error_t&) {  // every message sent here is repeated
    return false;
  }
}

bool Upstream::send(Stream& s, double now_s) {
  const bool clock_known = s.clock().known() || now_s - s.first_message_s >= RankSession::kClockWait_s;
  for (;;) {
    if (s.window.all_sent()) {
      if (!clock_known || s.queue.empty()) return true;
      if (s.window.full()) {
        window_full_ = true;
        return true;
      }
      s.encode_next();
      note_full(s);
    }
    const std::optional<zmq::message_t> message = s.window.next();
    if (!pack_.fits(message->size()) && !send_pack()) return false;
    pack_.add({static_cast<const std::uint8_t*>(message->data()), message->size()});
    s.window.sent();
  }
}

bool Upstream::send_pack() {
  if (!unsent_pack_ && !pack_.empty()) {
    const std::vector<std::uint8_t> bytes = pack_.take();
    unsent_pack_.emplace(bytes.data(), bytes.size());
  }
  if (!unsent_pack_) return true;
  blocked_ = !push_.send(*unsent_pack_, zmq::send_flags::dontwait);
  if (!blocked_) unsent_pack_.reset();
  return !blocked_;
}

void Upstream::rewind() {
  for (auto& [rank, stream] : streams_) stream->window.rewind();
  for (auto& stream : replaced_) stream->window.rewind();
  static_cast<void>(pack_.take());
  unsent_pack_.reset();
  blocked_ = false;  // was of the closed connection; the next send sets it for the new one
  flush_now_ = true;
}

void Upstream::confirmed(std::uint32_t rank, std::uint64_t source, std::uint64_t next) {
  const auto known = streams_.find(rank);
  if (known != streams_.end() && known->second->header.incarnation == source) {
    known->second->confirm(next);
  }
  // A collector that has received messages of a process ignores those of earlier processes.
  bool later = known != streams_.end() && known->second->header.incarnation == source;
  for (auto stream = replaced_.rbegin(); stream != replaced_.rend(); ++stream) {
    if ((*stream)->header.rank != rank) continue;
    if (later) (*stream)->confirm(UINT64_MAX);
    if ((*stream)->header.incarnation != source) continue;
    (*stream)->confirm(next);
    later = true;
  }
}

void Upstream::send_hello(double now_s) {
  wire::Header header;
  header.incarnation = options_.id;
  header.run_id = hellos_.any_rank() ? hellos_.run_id() : streams_.begin()->second->header.run_id;
  wire::RelayHello hello{options_.host, options_.clock_id, {}, {}};
  if (options_.list_ranks) options_.list_ranks(hello);
  hello.hello_sum = hellos_.lists(hello.present, now_s);
  const bool taken = send_control(header, std::move(hello));
  for (const RelayHellos::LastHello* last : hellos_.node_hello_sent(taken))
    send_control(last->header, last->hello);
  if (!taken) return;  // it would not accept more messages
  // A rank that has ended sends nothing more; the collector above may have missed its end.
  for (const auto& [rank, stream] : streams_) {
    if (!stream->finish || stream->acknowledged) continue;
    if (const RelayHellos::LastHello* last = hellos_.of(stream->header)) {
      send_control(last->header, last->hello);
    } else if (stream->tables) {
      // It ended before this collector received its hello.
      const instrumentation::RunTables& tables = stream->tables->own;
      send_control(stream->header, wire::Hello{.world = tables.world,
                                               .pid = tables.pid,
                                               .host = tables.host,
                                               .clock_id = {},
                                               .relayed = true});
    }
  }
}

/// The collector above sends messages for this node to the route of its last hello: to a closed connection,
/// until a hello of the node over the next one. The first message that it sends there fails, and all ranks of
/// the node are lost.
void Upstream::look_at_connections() {
  if (link_->update()) rewind();
  const bool was_up = control_link_->up();
  if (!control_link_->update() && control_link_->up() == was_up) return;
  if (control_link_->up()) {
    hellos_.begin_anew();
  } else {
    hellos_.connection_ended();
  }
}

void Upstream::pump(double now_s, double every_s) {
  // First: a collector that has confirmed everything and ended deletes its key.
  receive(now_s);
  other_key_ |= credentials_.changed(monotonic_now_ns());
  if (other_key_) {
    try {
      connect();
      other_key_ = false;
    } catch (const zmq::error_t&) {  // no room for further sockets: tried again at the next call
    }
  }
  if (!link_ || !control_link_) return;
  look_at_connections();
  if ((hellos_.any_rank() || !streams_.empty()) && hellos_.node_due(now_s)) send_hello(now_s);
  if (!link_->up()) return;
  next_pack_s_ = std::min(next_pack_s_, now_s + every_s);  // it may have been longer before
  if (!flush_now_ && !blocked_ && now_s < next_pack_s_) return;
  flush_now_ = window_full_ = false;
  waiting_bytes_ = 0;
  next_pack_s_ = now_s + every_s;
  try {
    if (!send_pack()) return;
    // No rank waits for another's clock. Messages of a rank's processes are sent in the processes' order:
    // after a later process the collector above would regard an earlier one as stale.
    std::set<std::uint32_t> held;  // ranks of which an earlier process has more to send
    for (auto at = replaced_.begin(); at != replaced_.end();) {
      Stream& earlier = **at;
      if (!held.contains(earlier.header.rank) && !send(earlier, now_s)) return;
      if (!earlier.all_sent()) held.insert(earlier.header.rank);
      if (!(earlier.queue.empty() && earlier.window.empty())) {
        ++at;
        continue;
      }
      shed_before_ += earlier.queue.shed();
      at = replaced_.erase(at);
    }
    // Round-robin, beginning where the connection was full the last time.
    auto at = streams_.lower_bound(turn_);
    for (std::size_t i = 0; i < streams_.size(); ++i, ++at) {
      if (at == streams_.end()) at = streams_.begin();
      turn_ = at->first;
      if (held.contains(at->first)) continue;
      if (!send(*at->second, now_s)) return;
    }
    send_pack();
  } catch (const zmq::error_t& error) {
    if (error.num() != EINTR) throw;
  }
}

void Upstream::on_ping(const wire::Message& message, const wire::Ping& ping, double now_s) {
  flush_now_ |= !watched_ && ping.look_ms == 0;  // a viewer has connected
  watched_ = ping.look_ms == 0;
  pack_s_ = ping.pack_ms * 1e-3;
  if (const std::uint64_t above = message.header.incarnation; above_ != above) {
    // It has not received the ends that the collector before it has confirmed.
    for (auto& [rank, stream] : streams_) stream->acknowledged &= above_ == 0;
    above_ = above;
  }
  for (const RelayHellos::LastHello* last : hellos_.pinged(message.header.incarnation, ping.known, now_s)) {
    if (!send_control(last->header, last->hello)) hellos_.not_taken(last->header.rank);
  }
}

void Upstream::receive(double now_s) {
  zmq::message_t message;
  while (control_.recv(message, zmq::recv_flags::dontwait)) {
    const std::int64_t received = options_.clock.at(monotonic_now_ns());
    const wire::Decoded decoded = wire::decode(message.data(), message.size(), wire::From::collector_control);
    if (!decoded.message) continue;
    const wire::Message& m = *decoded.message;
    if (const auto* ping = std::get_if<wire::Ping>(&m.body)) {
      wire::Header header;
      header.incarnation = options_.id;
      header.run_id = m.header.run_id;
      send_control(header,
                   wire::Pong{ping->id, ping->sent_ns, received, options_.clock.at(monotonic_now_ns())});
      on_ping(m, *ping, now_s);
      continue;
    }
    if (const auto* confirmation = std::get_if<wire::Received>(&m.body)) {
      confirmed(m.header.rank, confirmation->source, confirmation->next);
      for (const wire::Received::OfRank& other : confirmation->others)
        confirmed(other.rank, other.source, other.next);
      flush_now_ |= window_full_;  // there may be room again
      continue;
    }
    const auto* command = std::get_if<wire::RankCommand>(&m.body);
    if (command == nullptr) continue;
    const auto known = streams_.find(m.header.rank);
    switch (command->kind) {
      case wire::RankCommand::Kind::resend_tables:
        if (known != streams_.end()) resend(*known->second);
        break;
      case wire::RankCommand::Kind::finish_received:
        if (known != streams_.end()) known->second->acknowledged = true;
        break;
      case wire::RankCommand::Kind::keep:
        if (options_.keep) options_.keep(*command);
        break;
      default:
        // Also to a rank that has sent a hello and published nothing yet.
        options_.command(m.header.rank, *command);
    }
  }
}

void Upstream::resend(Stream& s) {
  if (s.queue.has_tables()) return;  // requested again before they could be sent
  // In the order that the collector above needs: tables before everything, names, the end last.
  for (const wire::Name& name : s.names) s.queue.push_front(wire::Body(name));
  if (s.tables) s.queue.push_front(wire::Body(wire::Tables{s.tables->whole()}));
  if (s.finish && !s.acknowledged) s.queue.push(wire::Body(*s.finish));
}

double Upstream::rest_s(double now_s) const noexcept {
  // Without a connection, or with a full one, there is no time to wait for: else this would be 0 until it
  // accepts messages.
  if (waiting_bytes_ == 0 || blocked_ || !connected()) return std::numeric_limits<double>::infinity();
  return std::max(next_pack_s_ - now_s, 0.0);
}

void Upstream::add_to(std::vector<zmq::pollitem_t>& items) {
  items.push_back({control_.handle(), 0, ZMQ_POLLIN, 0});
  if (blocked_ && connected()) items.push_back({push_.handle(), 0, ZMQ_POLLOUT, 0});
}

bool Upstream::sent() const {
  return pack_.empty() && !unsent_pack_ &&
         std::all_of(replaced_.begin(), replaced_.end(), [](const auto& e) { return e->all_sent(); }) &&
         std::all_of(streams_.begin(), streams_.end(), [](const auto& e) { return e.second->all_sent(); });
}

bool Upstream::drained() const {
  return sent() && replaced_.empty() && std::all_of(streams_.begin(), streams_.end(), [](const auto& e) {
           return e.second->window.empty() && (!e.second->finish || e.second->acknowledged);
         });
}

}  // namespace shardscope::collector
