// What ranks publish: accepted in order, handed to the sink; events are gathered into chunks.
#include <algorithm>
#include <array>
#include <utility>

#include "app/collector/collector_state.h"
#include "app/collector/frame_pack.h"
#include "app/collector/now.h"

namespace shardscope::collector {

using instrumentation::GateKind;
using instrumentation::monotonic_now_ns;
using instrumentation::ShedClass;

namespace {
constexpr std::int64_t kPatience_ns = 1'000'000'000;                 ///< with a recorder that stands still
constexpr std::size_t kLarge = 64U << 10, kLargeRelayed = 2U << 10;  ///< messages, bytes
constexpr std::size_t kMaxRanksWithoutTables = 1U << 16;
/// Steps, errors and tables never go; of memory the watermarks stay.
constexpr std::array kShedOrder = {ShedClass::kernels, ShedClass::params, ShedClass::modules,
                                   ShedClass::phases, ShedClass::memory};
}  // namespace

void Collector::State::receive_published() {
  zmq::message_t message;
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    // Steps and watermarks are never shed here; ranks wait, and shed in their own queues what is less.
    if (upstream && upstream->full()) return;
    if (intake_full()) {
      // A recorder that gets on is waited for: ZeroMQ's queues are short, and behind them are the ranks' own.
      // One that stands still must not take the live view with it. With nothing left to shed they wait too.
      const std::int64_t still_ns = monotonic_now_ns() - recorder->progress_ns();
      if (still_ns < kPatience_ns || !make_room()) return;
    }
    if (!sockets.receive_published(message)) return;
    PackedFrames frames({static_cast<const std::uint8_t*>(message.data()), message.size()});
    if (message.size() == 0) on_frame({});  // which no peer of ours sends: counted as the rest of its kind
    for (auto frame = frames.next(); !frame.empty(); frame = frames.next(), ++i) on_frame(frame);
    if (frames.damaged())
      reject(wire::name_of(wire::Reject::garbage), "a node", "a pack of messages is damaged");
  }
}

void Collector::State::on_frame(std::span<const std::uint8_t> frame) {
  wire::Decoded decoded =
      wire::decode(frame.data(), frame.size(), wire::From::rank_publish, std::move(batch_storage));
  if (!decoded.message) {
    reject(wire::name_of(decoded.reject), "a rank", decoded.why);
    return;
  }
  const std::uint32_t rank = decoded.message->header.rank;
  on_published(std::move(*decoded.message), frame.size());
  if (const auto known = ranks.find(rank); known != ranks.end()) note_change(known->second, now_s());
}

std::size_t Collector::State::intake_bytes() const noexcept {
  return pending_bytes + recorder->queued_bytes();
}

bool Collector::State::make_room() {
  // An eighth below the bound, so that the scan is paid once for many messages.
  const std::size_t target = options.intake_bytes - options.intake_bytes / 8;
  std::uint64_t gone = 0;
  for (const ShedClass victim : kShedOrder) {
    for (auto& [id, rank] : ranks) {
      if (intake_bytes() <= target) break;
      std::uint32_t here = 0;
      pending(rank, [&, &of = rank] { here = of.shed(victim); });
      if (here != 0) note_change(rank, now_s());
      gone += here;
    }
  }
  if (gone != 0) {
    {
      const std::lock_guard lock(status_mutex);
      status.shed += gone;
    }
    report_problem(
        "shed",
        "events arrive faster than they can be recorded: the collector sheds them, lowest detail first");
  }
  return intake_bytes() <= options.intake_bytes;
}

void Collector::State::on_published(wire::Message message, std::size_t bytes) {
  // A text or a name alone does not identify a run.
  const bool identifies = std::holds_alternative<wire::Tables>(message.body) ||
                          std::holds_alternative<wire::Batch>(message.body) || identity.known();
  if (!is_of_run(message.header, identifies ? RunIdentity::Proof::published : RunIdentity::Proof::greeting))
    return;
  if ((identity.world_known() && message.header.rank >= identity.world()) ||
      ranks.size() > kMaxRanksWithoutTables) {
    reject("rank", "rank " + std::to_string(message.header.rank),
           "there is no such rank in a world of " + std::to_string(identity.world()));
    return;
  }
  RankSession& rank = session(message.header.rank);
  const RankSession::Accepted accepted = rank.accept(message.header, now_s());
  if (accepted.order == RankSession::Order::nonsense) {
    reject("value", "rank " + std::to_string(message.header.rank),
           "message number " + std::to_string(message.header.sequence) +
               " is further ahead than any process can have sent");
    return;
  }
  if (accepted.order == RankSession::Order::again) {
    const std::lock_guard lock(status_mutex);
    ++status.repeated;
    return;
  }
  if (accepted.order != RankSession::Order::next) {
    reject("order", "rank " + std::to_string(message.header.rank), "a message came twice or out of order");
    return;
  }
  if (accepted.new_process) {
    rank.row.finished = false;
    rank.first_message_s = now_s();
    rank.has_tables = false;
    rank.names.clear();
    clock_samples.restart();
    gates.restart();
  }
  if (accepted.missing != 0) {
    record_message(
        rank.row.rank, clock_now(), Severity::warning,
        std::to_string(accepted.missing) + " messages of rank " + std::to_string(rank.row.rank) +
            (rank.node_clock != nullptr ? " did not arrive from its node's collector" : " did not arrive"));
  }
  // Before its sender has to wait: a rank keeps a quarter of its queue, a node for a rank much less.
  const std::uint64_t most = rank.node_clock != nullptr && bytes >= kLargeRelayed ? 1
                             : bytes >= kLarge                                    ? 2
                                               : RankSession::kConfirmMessages;
  if (rank.unconfirmed() >= most) confirm(rank);
  if (const auto* batch = std::get_if<wire::Batch>(&message.body);
      batch != nullptr && rank.passed_on_before(*batch)) {
    const std::lock_guard lock(status_mutex);
    ++status.repeated;
    return;
  }
  // Tables or names may have been among what is missing.
  const bool are_tables = std::holds_alternative<wire::Tables>(message.body);
  if (!are_tables && (accepted.missing != 0 || !rank.has_tables)) {
    rank.has_tables = false;
    ask_for_tables(rank);
  }
  // Its end may come before its next control message. A node's collector says it of its own ranks, and the
  // text goes up before the end: a rank that has ended is not silent.
  if (rank.silent() && std::holds_alternative<wire::Finish>(message.body))
    end_silence(rank, now_s(), as_before(rank));
  if (upstream) upstream->published(rank, message, accepted.new_process ? 0 : accepted.missing);
  {
    const std::lock_guard lock(status_mutex);
    ++status.messages;
    if (const auto* batch = std::get_if<wire::Batch>(&message.body)) status.events += batch->events.size();
  }
  if (auto* batch = std::get_if<wire::Batch>(&message.body)) {
    if (census.clocks_differ() && rank.on_refinable_clock()) learn_clocks(rank, *batch);
    if (identity.world() > 1 && !upstream) compare_gates(rank.row.rank, *batch);
    if (clock_settled(rank, now_s()) && recorder_has_room() && rank.begins_another_gap(*batch, now_s())) {
      while (rank.pending()) flush(rank);
    }
    pending(rank, [&] { rank.add(*batch, now_s(), [this] { return recorder->take_storage(); }); });
    batch_storage = std::move(batch->events);
    if (rank.due(now_s(), 1e9) && recorder_has_room()) flush(rank);
  } else if (const auto* tables = std::get_if<wire::Tables>(&message.body)) {
    on_tables(rank, *tables, bytes);
  } else if (const auto* text = std::get_if<wire::Text>(&message.body)) {
    if (rank.node_clock != nullptr) note_silence_of_node(rank, text->text);
    record_message(rank.row.rank, rank.on_our_clock(text->at_ns), text->severity, text->text);
  } else if (const auto* name = std::get_if<wire::Name>(&message.body)) {
    if (rank.names.insert(name->id).second) recorder->name(rank.row.rank, *name);  // or sent again on request
  } else if (const auto* finish = std::get_if<wire::Finish>(&message.body)) {
    on_finish(rank, *finish);
  }
}

void Collector::State::on_finish(RankSession& rank, const wire::Finish& finish) {
  while (rank.pending()) flush(rank);
  rank.row.finished = true;
  rank.row.exit_code = finish.exit_code;
  rank.row.exit_message = finish.text;
  rank.row_dirty = true;
  rank.row_sent_s = -1e300;
  confirm(rank);
  confirm_finish(rank);
  pauses.rank_finished(rank.row.rank, now_s());
  if (finish.exit_code != 0) {
    record_message(rank.row.rank, rank.on_our_clock(finish.at_ns), Severity::error, finish.text);
  }
  note_change(rank, now_s());
  const std::lock_guard lock(status_mutex);
  if (finish.exit_code != 0 && status.exit_code == 0) {
    status.exit_code = finish.exit_code;
    status.failure = "rank " + std::to_string(rank.row.rank) + ": " + finish.text;
  }
  status.ranks_finished = census.finished();
  if (!upstream) status.finished = identity.world() != 0 && status.ranks_finished == identity.world();
  ++revision;
}

void Collector::State::on_tables(RankSession& rank, const wire::Tables& tables, std::size_t bytes) {
  rank.has_tables = true;
  const instrumentation::RunTables& t = tables.tables;
  switch (identity.set_world(t.world, t.local_world)) {
    case RunIdentity::Tables::agree:
      break;
    case RunIdentity::Tables::change:
      // Ranks with another world have published nothing; those of this world greet again.
      forget_unpublished();
      pauses.set_world(t.world);
      break;
    case RunIdentity::Tables::contradict:
      reject("world", "rank " + std::to_string(rank.row.rank), identity.contradiction_of(t.world));
      return;
  }
  constexpr std::size_t kMostPaths = 1U << 16;
  for (std::size_t m = module_paths.size(); m < std::min(t.modules.size(), kMostPaths); ++m)
    module_paths.push_back(t.modules[m].path);
  rank.row.pid = t.pid;
  rank.row.host = t.host;
  rank.row_dirty = true;
  wire::Header from = header;
  from.rank = rank.row.rank;
  recorder->tables(from, tables, bytes);
}

std::string Collector::State::gate_name(GateKind kind, std::uint32_t id) const {
  const auto module = [&](const char* when) {
    const bool known = id < module_paths.size() && !module_paths[id].empty();
    return std::string(when) + " " + (known ? module_paths[id] : "module " + std::to_string(id));
  };
  switch (kind) {
    case GateKind::step:
      return "step " + std::to_string(id);
    case GateKind::micro_step:
      return "micro-step " + std::to_string(id);
    case GateKind::pre_forward:
      return module("before the forward of");
    case GateKind::post_forward:
      return module("after the forward of");
    case GateKind::pre_backward:
      return module("before the backward of");
    case GateKind::post_backward:
      return module("after the backward of");
    case GateKind::bucket:
      return "the flush of bucket " + std::to_string(id);
    case GateKind::optimizer:
      return "the optimizer of step " + std::to_string(id);
  }
  return "a gate that this program does not know";
}

void Collector::State::compare_gates(std::uint32_t rank, const wire::Batch& batch) {
  gates.alike_from(pauses.alike_from());
  const auto difference = gates.add(rank, batch.events);
  if (!difference) return;
  const auto passed = [&](const GateComparison::Difference::Gate& gate) {
    return "rank " + std::to_string(gate.rank) + " passed " + gate_name(gate.kind, gate.id);
  };
  const std::string how = "ranks pass different gates: as gate " + std::to_string(difference->number) + " " +
                          passed(difference->one) + ", " + passed(difference->other);
  pauses.ranks_differ(how);
  record_message(rank, clock_now(), Severity::warning,
                 how + "; from here on this run is paused between steps only, until it is held there");
}

void Collector::State::flush(RankSession& rank) {
  store::Chunk chunk;
  pending(rank, [&] { chunk = rank.take_chunk(); });
  if (chunk.dropped_before != 0) {
    const std::lock_guard lock(status_mutex);
    status.dropped += chunk.dropped_before;
  }
  recorder->chunk(std::move(chunk));
}

}  // namespace shardscope::collector
