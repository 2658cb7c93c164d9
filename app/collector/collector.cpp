#include "app/collector/collector.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "app/collector/collector_state.h"
#include "app/collector/item_log.h"
#include "app/collector/now.h"
#include "app/store/control_text.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

using instrumentation::GateKind;

namespace {

constexpr double kSettle_s = 0.02;     ///< longest wait per turn for the recorder, at the end
constexpr int kFinalLinger_ms = 1000;  ///< at the end, for messages to ranks to leave this process
constexpr double kLastLook_s = 2;      ///< at the end, for viewers to fetch the rest

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

using instrumentation::LocalKeys;

namespace {

std::unique_ptr<LocalKeys> local_keys_of(const CollectorOptions& options) {
  if (!options.keys.empty() || !instrumentation::listens_on_loopback(options.listen)) return nullptr;
  return std::make_unique<LocalKeys>(options.listen,
                                     options.insecure ? LocalKeys::Wanted::nothing : LocalKeys::Wanted::keys);
}

}  // namespace

Collector::State::State(CollectorOptions o)
    : options(std::move(o)),
      local_keys(local_keys_of(options)),
      sockets(local_keys ? local_keys->key() : instrumentation::collector_key(options.keys)),
      identity(options.run_id),
      down(sockets, header),
      pauses(options.lease_s),
      relay(ranks, pauses, board, pacing, identity, options.linger_s),
      record(options, board),
      messages(record, options.clock, relay, header),
      problems(board, [this](const std::string& text) { messages.record(0, Severity::warning, text); }),
      moments(options, down, board, messages, problems),
      clock_id(options.clock_id.empty() ? instrumentation::clock_identity() : options.clock_id),
      host(host_name()) {
  header.incarnation = instrumentation::random_id();
  header.run_id = identity.run_id();
  pauses.set_gate_names([this](GateKind kind, std::uint32_t id) { return gates.names().name(kind, id); });
}

Collector::Collector(CollectorOptions options) {
  if (options.listen.rfind("tcp://", 0) != 0)
    static_cast<void>(instrumentation::endpoints_of(options.listen));
  if (options.keys.empty() && !options.insecure && !instrumentation::is_local(options.listen)) {
    throw std::runtime_error(
        "will not listen on " + options.listen +
        " without keys: other machines could read and control the run; make keys with `shardscope keys DIR` "
        "and give --keys DIR, or listen on tcp://127.0.0.1:PORT and reach it through ssh -L, or accept "
        "everybody with --insecure");
  }
  // Ranks and viewers reject longer leases.
  if (!(options.lease_s > 0 && options.lease_s <= instrumentation::wire::kMaxLeaseS)) {
    throw std::runtime_error("lease of " + std::to_string(options.lease_s) +
                             " s: it must be above 0 and at most a day");
  }
  const instrumentation::BlockSignals blocked;  // in ZeroMQ's threads, too: the program handles signals
  state_ = std::make_unique<State>(std::move(options));
  State& s = *state_;
  s.admit();
  if (!s.options.record_path.empty())
    s.record.sink().open_recording(s.options.record_path, s.options.retention, s.options.clock,
                                   s.options.rotation);
  s.record.begin([&s] {
    if (s.wakeup_requested.load(std::memory_order_relaxed)) s.sockets.wake.signal();
  });
  if (s.options.keys.empty() && s.options.insecure) {
    s.messages.record(0, instrumentation::Severity::warning,
                      std::string(store::kControlPrefix) + "--insecure: anyone who reaches " +
                          s.sockets.endpoints.publish + " can read and control this run");
  }
  if (!s.options.upstream.empty()) s.start_upstream();
  s.start_views();
  s.thread = std::thread([&s] { s.run(); });
}

void Collector::State::admit() {
  constexpr std::string_view kIpc = "ipc://";
  const bool own_user = options.keys.empty() && !options.insecure && options.listen.starts_with(kIpc);
  if (own_user) sockets.guard.admit_own_user();
  sockets.listen(options.listen);
  if (own_user) {
    // No other user shall even begin a handshake.
    const instrumentation::Endpoints& all = sockets.endpoints;
    for (const std::string& endpoint : {all.publish, all.view, all.control}) {
      const std::string file = endpoint.substr(kIpc.size());
      if (chmod(file.c_str(), S_IRUSR | S_IWUSR) != 0)
        throw std::runtime_error("cannot keep other users from " + endpoint + ": " + std::strerror(errno) +
                                 "; choose another endpoint with --listen");
    }
  }
  if (local_keys) {
    local_keys->leave_at(sockets.endpoints.publish);
  } else {
    instrumentation::forget_local_keys(sockets.endpoints.publish);
  }
}

Collector::~Collector() { stop(); }

void Collector::stop() {
  State& s = *state_;
  if (!s.thread.joinable()) return;
  s.stopping.store(true);
  s.sockets.wake.signal();
  s.thread.join();
  s.local_keys.reset();  // before the sockets close: a rank that reconnects reads them
}

void Collector::keep(store::Moment moment) { state_->record.recorder().keep(std::move(moment)); }

void Collector::ask_nodes_to_keep(store::Moment moment) {
  state_->board.request_of_nodes(std::move(moment));
  state_->sockets.wake.signal();
}

std::vector<store::Moment> Collector::take_asked_for() { return state_->board.take_asked_for(); }

void Collector::answer(const std::string& text) {
  state_->messages.record(0, instrumentation::Severity::info, std::string(store::kControlPrefix) + text);
}

void Collector::set_detail(instrumentation::Detail detail) {
  state_->board.ask_detail(detail);
  state_->sockets.wake.signal();
}

void Collector::note_exit(std::uint32_t rank, std::int32_t exit_code) {
  state_->board.note_exit(rank, exit_code);
  state_->sockets.wake.signal();
}

void Collector::note_over() {
  state_->board.note_over();
  state_->sockets.wake.signal();
}

std::string Collector::publish_endpoint() const { return state_->sockets.endpoints.publish; }
std::string Collector::view_endpoint() const { return state_->sockets.endpoints.publish; }

std::string Collector::keys() const {
  const State& s = *state_;
  return s.local_keys && s.local_keys->key() ? s.local_keys->folder() : s.options.keys;
}

CollectorStatus Collector::status() const { return state_->board.status(); }

std::string Collector::take_recording_warning() { return state_->record.sink().take_warning(); }

void Collector::read(const std::function<void(const store::Store&)>& reader) const {
  state_->record.sink().read(reader);
}

void Collector::State::run() {
  double leave_at = 0, linger_until = 0;
  for (;;) {
    try {
      turn();
    } catch (const std::exception& error) {
      // No message of a peer causes this; a full disk or memory may.
      problems.reject("internal", "the collector", error.what());
    }
    if (!stopping.load()) continue;
    // Messages that have arrived are still received and relayed, and viewers get some time to fetch them.
    const double now = now_s();
    if (leave_at == 0) {
      leave(now);
      leave_at = now + kLastLook_s;
      linger_until = now + options.linger_s;
    }
    if (!relay.drained() && now < linger_until) continue;
    if (now < linger_until && down.answers_awaited(ranks, now)) continue;
    if (!record.recorder().settle(kSettle_s)) {
      // The end is not published before viewers can fetch every item before it.
      leave_at = std::max(leave_at, now + kLastLook_s);
      continue;
    }
    if (now >= leave_at || !viewers->behind(now)) break;
  }
  // The last messages sent are confirmations, and this process may end at once.
  sockets.control.set(zmq::sockopt::linger, kFinalLinger_ms);
  finish_recording();
}

void Collector::State::take_exits() {
  for (const auto& [id, exit_code] : board.take_exits()) {
    RankSession* const known = ranks.known(id);
    if (known == nullptr || known->row.finished) continue;
    RankSession& rank = *known;
    liveness.lost(rank, "(process " + std::to_string(rank.row.pid) + ") is gone");
    rank.row.exit_code = exit_code;
    rank.row_dirty = true;
    rank.row_sent_s = -1e300;
    ranks.note_change(rank, now_s());
  }
}

void Collector::State::leave(double now) {
  take_exits();
  for (auto& [id, rank] : ranks) {
    record.flush_all(rank);
    if (rank.unconfirmed() != 0)
      sender.confirm(rank);  // messages recorded here need not be sent to the next collector
  }
  sender.send_receipts(now);
  publish_rows(now);
  problems.publish(now, ProblemReports::Take::all);
  shown.changed();
}

void Collector::State::turn() {
  // Without room it does not wait for messages: the recorder wakes this thread when it has made progress. If
  // that has happened just before, the next turn follows a little later.
  const bool full = intake_full();
  wakeup_requested.store(full || pacing.watched() == Watch::active, std::memory_order_relaxed);
  double rest_s = pacing.rest_s(now_s(), full);
  if (const Upstream* const above = relay.upstream()) rest_s = std::min(rest_s, above->rest_s(now_s()));
  const CollectorSockets::Ready ready = sockets.wait(
      rest_s, full ? CollectorSockets::Ranks::wait : CollectorSockets::Ranks::receive, relay.upstream());
  detect_stall(now_s());
  if (ready.handshakes) {
    sockets.watch->attend();
    problems.refused(sockets.guard.serve(now_s()));
  }
  // Control and views first: they are few, and users notice their latency.
  if (ready.control) receive_control();
  if (ready.view) receive_views();
  if (full || ready.published) receive_published();
  if (!relay.is_top()) forward_upstream();
  const double now = now_s();
  detect_stall(now);  // a stall may begin in the middle of a turn
  if (pacing.round_due(now, ready.view)) {
    find_pace(now);
    sockets.watch->set_ranks(ranks.size());
    pacing.round_begun(now, ranks.size());
    service_ranks(now);
    problems.publish(now, ProblemReports::Take::due);
  }
  sender.send_receipts(now);
  take_exits();
  take_detail();
  moments.take_node_requests();
  pauses.tick(now);
  sender.send_commands();
  publish_control(now);
  publish_end(now);
  if (viewers->serve(now)) sockets.view_used();
  board.viewers(viewers->viewers(now));
  if (board.flooding(sockets.watch->cut_off())) {
    problems.report("flooding",
                    "cut off a connection that sent more than is kept of messages that are not whole");
  }
  commit_recording(now);
}

/// Extends deadlines by a stall: ranks and viewers that seem silent since then were only not received from.
void Collector::State::detect_stall(double now) {
  const double gap = pacing.stalled_s(now);
  if (gap == 0) return;
  board.add_stall(gap);
  for (auto& [id, rank] : ranks) {
    rank.last_control_s += gap;
    if (rank.silent_since_s) *rank.silent_since_s += gap;  // a silence's duration excludes the gap
  }
  down.nodes().extend_deadlines(gap);
  viewers->extend_deadlines(gap);
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.1f s", gap);
  messages.record(
      0, Severity::warning,
      std::string("the collector stalled for ") + seconds.data() +
          " (stopped, or kept from running); what the ranks have kept meanwhile comes now, and what they had "
          "no room for is counted as dropped");
}

void Collector::State::find_pace(double now) {
  // A node's collector is active where the collector above reports that it is.
  const bool wanted = stopping.load() || relay.watched() || shown.control().paused ||
                      shown.control().pausing || viewers->viewers(now) != 0 ||
                      ranks.counts().any_unsettled() || ranks.counts().any_holding();
  if (!pacing.watch(wanted ? Watch::active : Watch::idle, ranks.size())) return;
  // Ranks get the new interval at once: a viewer that has just connected must not wait for the long one.
  for (auto& [id, rank] : ranks) rank.next_ping_s = std::min(rank.next_ping_s, now);
  ranks.note_change_of_all(now);
  down.nodes().ping_soon();
}

void Collector::State::publish_control(double now) {
  if (const auto note = shown.show(pauses.control(now))) messages.record(0, Severity::warning, *note);
}

/// The end is published once viewers can fetch every item before it. The run continues after it only if a
/// rank reconnects.
void Collector::State::publish_end(double now) {
  const bool over = stopping.load() || board.all_gone() || board.finished();
  if (over == shown.over()) return;
  if (over) {
    publish_rows(now);  // with the ranks' exit messages
    if (!record.recorder().idle()) return;
  }
  shown.show_over(over);
}

void Collector::State::publish_rows(double now) {
  for (auto& [id, rank] : ranks) publish_row(rank, now, true);
}

void Collector::State::commit_recording(double now) {
  if (!pacing.commit_due(now)) return;
  if (options.record_path.empty()) return;
  record.recorder().commit();
  const std::string error = record.recorder().error();
  if (board.recording_failed(error)) messages.record(0, Severity::error, error);
}

void Collector::State::finish_recording() {
  static_cast<void>(board.recording_failed(record.recorder().finish()));
}

}  // namespace shardscope::collector
