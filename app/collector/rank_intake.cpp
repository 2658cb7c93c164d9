// Messages published by ranks: accepted in order, queued for the recorder; events are collected into chunks.
#include <utility>

#include "app/collector/collector_pace.h"
#include "app/collector/collector_state.h"
#include "app/collector/frame_pack.h"
#include "app/collector/now.h"

namespace shardscope::collector {

using instrumentation::monotonic_now_ns;

namespace {
constexpr std::int64_t kRecorderStallTimeout_ns = 1'000'000'000;     ///< without progress of the recorder
constexpr std::size_t kLarge = 64U << 10, kLargeRelayed = 2U << 10;  ///< messages, bytes
constexpr std::size_t kMaxRanksWithoutTables = 1U << 16;
}  // namespace

void Collector::State::receive_published() {
  zmq::message_t message;
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    // Steps and watermarks are never shed here; ranks wait, and shed lower detail in their own queues.
    if (relay.full()) return;
    if (intake_full()) {
      // Ranks wait for a recorder that makes progress: ZeroMQ's queues are short, then the ranks' own fill. A
      // stalled recorder must not stop the live view. With nothing left to shed the ranks wait, too.
      const std::int64_t still_ns = monotonic_now_ns() - record.recorder().progress_ns();
      if (still_ns < kRecorderStallTimeout_ns || !shed()) return;
    }
    if (!sockets.receive_published(message)) return;
    PackedFrames frames({static_cast<const std::uint8_t*>(message.data()), message.size()});
    if (message.size() == 0) on_frame({});  // no peer of ours sends it: rejected like any garbage
    for (auto frame = frames.next(); !frame.empty(); frame = frames.next(), ++i) on_frame(frame);
    if (frames.damaged())
      problems.reject(wire::name_of(wire::Reject::garbage), "a node",
                      "a pack of messages is damaged, or longer than " +
                          std::to_string(FramePack::kBytes >> 10U) + " KiB");
  }
}

void Collector::State::on_frame(std::span<const std::uint8_t> frame) {
  wire::Decoded decoded =
      wire::decode(frame.data(), frame.size(), wire::From::rank_publish, record.take_batch_storage());
  if (!decoded.message) {
    problems.reject(wire::name_of(decoded.reject), "a rank", decoded.why);
    return;
  }
  const std::uint32_t rank = decoded.message->header.rank;
  on_published(std::move(*decoded.message), frame.size());
  if (const RankSession* const known = ranks.known(rank)) ranks.note_change(*known, now_s());
}

bool Collector::State::shed() {
  if (record.shed(ranks, now_s()) != 0) {
    problems.report(
        "shed",
        "events arrive faster than they can be recorded: the collector sheds them, lowest detail first");
  }
  return !record.full();
}

void Collector::State::on_published(wire::Message message, std::size_t bytes) {
  // A text or a name alone does not identify a run.
  const bool identifies = std::holds_alternative<wire::Tables>(message.body) ||
                          std::holds_alternative<wire::Batch>(message.body) || identity.known();
  if (!is_of_run(message.header, identifies ? RunIdentity::Proof::published : RunIdentity::Proof::hello))
    return;
  // A text or a name does not prove the run: another run that publishes may still take its place. So nothing
  // is stored of its ranks before tables or a batch arrive; earlier messages count as lost.
  if (!identifies) return;
  if ((identity.world_known() && message.header.rank >= identity.world()) ||
      ranks.size() > kMaxRanksWithoutTables) {
    problems.reject("rank", "rank " + std::to_string(message.header.rank),
                    "there is no such rank in a world of " + std::to_string(identity.world()));
    return;
  }
  RankSession& rank = ranks.session(message.header.rank);
  const bool came_before = rank.next_sequence() != 0;
  const RankSession::Accepted accepted = rank.accept(message.header, now_s());
  if (accepted.order == RankSession::Order::implausible) {
    problems.reject("value", "rank " + std::to_string(message.header.rank),
                    "message number " + std::to_string(message.header.sequence) +
                        " is further ahead than any process can have sent");
    return;
  }
  if (accepted.order == RankSession::Order::again) {
    board.repeated();
    ranks.note_change(rank, now_s());  // it is to be confirmed again
    return;
  }
  if (accepted.order != RankSession::Order::next) {
    problems.reject("order", "rank " + std::to_string(message.header.rank),
                    "a message came twice or out of order");
    return;
  }
  if (accepted.new_process) {
    // The end of the process before may have arrived after the hello of this one. Of a first process its
    // launcher may have reported the end already.
    if (came_before) forget_end(rank);
    rank.row.finished = false;
    listed.rank_changed(rank);
    rank.first_message_s = now_s();
    rank.has_tables = false;
    rank.names.clear();
    collective_clocks.restart();
    // Not at its first process: what the ranks that came earlier have passed is compared with it.
    if (came_before) gates.restart();
  }
  if (accepted.missing != 0) {
    messages.record(
        rank.row.rank, Severity::warning,
        std::to_string(accepted.missing) + " messages of rank " + std::to_string(rank.row.rank) +
            (rank.node_clock != nullptr ? " did not arrive from its node's collector" : " did not arrive"));
  }
  // Before its sender has to wait: a rank's window is a quarter of its queue, a node's window per rank less.
  const std::uint64_t most = rank.node_clock != nullptr && bytes >= kLargeRelayed ? 1
                             : bytes >= kLarge                                    ? 2
                                               : RankSession::kConfirmMessages;
  if (rank.unconfirmed() >= most) sender.confirm(rank);
  const auto* const published_text = std::get_if<wire::Text>(&message.body);
  if (const auto* batch = std::get_if<wire::Batch>(&message.body);
      (batch != nullptr && rank.passed_on_before(*batch)) ||
      (published_text != nullptr && rank.node_clock != nullptr &&
       (message.header.source_next != 0 ? rank.passed_on_before(message.header)
                                        : rank.passed_on_before(*published_text)))) {
    rank.add_repeated(message);
    board.repeated();
    return;
  }
  rank.add_relayed(
      message.header);  // also before its node's hello: else earlier messages would count as lost
  report_events_lost_with_node(rank);
  // Tables or names may be among the missing messages.
  const bool are_tables = std::holds_alternative<wire::Tables>(message.body);
  if (!are_tables && (accepted.missing != 0 || !rank.has_tables)) {
    rank.has_tables = false;
    sender.ask_for_tables(rank);
  }
  // Its end may arrive before its next control message. A node's collector reports the silence's end for its
  // own ranks, and relays that text before the rank's end: a rank that has ended is not silent.
  if (rank.silent() && std::holds_alternative<wire::Finish>(message.body))
    liveness.end_silence(rank, now_s(), RankLiveness::as_before(rank));
  if (Upstream* const above = relay.upstream())
    above->published(rank, message, accepted.new_process ? 0 : accepted.missing);
  auto* const batch = std::get_if<wire::Batch>(&message.body);
  board.received(batch != nullptr ? batch->events.size() : 0);
  if (batch != nullptr) {
    learn_clocks(rank, *batch);
    if (identity.world() > 1 && relay.is_top()) compare_gates(rank.row.rank, *batch);
    if (rank.clock_settled(now_s()) && record.has_room() && rank.begins_another_gap(*batch, now_s()))
      record.flush_all(rank);
    record.add(rank, *batch, now_s());
    report_events_lost_with_node(rank);
    if (rank.due(now_s(), 1e9) && record.has_room()) record.flush(rank);
    if (pacing.pace().chunk_age_s > kShortestIdleAge_s && record.crowded()) record.hand_over(ranks, now_s());
  } else if (const auto* tables = std::get_if<wire::Tables>(&message.body)) {
    on_tables(rank, *tables, bytes);
  } else if (const auto* text = std::get_if<wire::Text>(&message.body)) {
    messages.record_at(rank.row.rank, rank.on_our_clock(text->at_ns), text->severity, text->text);
    if (rank.node_clock != nullptr)
      liveness.note_silence_of_node(rank, message.header.incarnation, text->text);
  } else if (const auto* name = std::get_if<wire::Name>(&message.body)) {
    if (rank.names.insert(name->id).second)
      record.recorder().name(rank.row.rank, *name);  // else it was sent again on request
  } else if (const auto* finish = std::get_if<wire::Finish>(&message.body)) {
    on_finish(rank, *finish);
  }
}

void Collector::State::report_events_lost_with_node(RankSession& rank) {
  const RankSession::LostWithNode lost_ones = rank.take_lost_with_node();
  if (lost_ones.messages == 0) return;
  messages.record(rank.row.rank, Severity::warning,
                  std::to_string(lost_ones.messages) + " messages of rank " + std::to_string(rank.row.rank) +
                      (lost_ones.exact ? "" : " at most") +
                      " did not arrive before another collector of its node took over");
}

void Collector::State::forget_end(RankSession& rank) {
  rank.forget_end();
  board.rank_restarted(rank.row.rank);
}

void Collector::State::on_finish(RankSession& rank, const wire::Finish& finish) {
  record.flush_all(rank);
  rank.row.finished = true;
  rank.row.exit_code = finish.exit_code;
  rank.row.exit_message = finish.text;
  rank.row_dirty = true;
  rank.row_sent_s = -1e300;
  sender.confirm(rank);
  sender.confirm_finish(rank);
  pauses.rank_finished(rank.row.rank, now_s());
  if (finish.exit_code != 0) {
    messages.record_at(rank.row.rank, rank.on_our_clock(finish.at_ns), Severity::error, finish.text);
  }
  ranks.note_change(rank, now_s());
  const std::uint32_t finished = ranks.counts().finished();
  board.rank_ended(rank.row.rank, finish.exit_code, finish.text, finished);
  if (relay.is_top()) board.set_finished(identity.world() != 0 && finished == identity.world());
  shown.changed();
}

void Collector::State::on_tables(RankSession& rank, const wire::Tables& tables, std::size_t bytes) {
  rank.has_tables = true;
  const instrumentation::RunTables& t = tables.tables;
  switch (identity.set_world(t.world, t.local_world)) {
    case RunIdentity::Tables::agree:
      break;
    case RunIdentity::Tables::change:
      // Ranks with another world have published nothing; those of this world repeat their hellos.
      forget_unpublished();
      pauses.set_world(t.world);
      break;
    case RunIdentity::Tables::contradict:
      problems.reject("world", "rank " + std::to_string(rank.row.rank), identity.contradiction_of(t.world));
      return;
  }
  gates.learn(t);
  rank.row.pid = t.pid;
  rank.row.host = t.host;
  rank.row_dirty = true;
  wire::Header from = header;
  from.rank = rank.row.rank;
  record.recorder().tables(from, tables, bytes);
}

void Collector::State::learn_clocks(const RankSession& rank, const wire::Batch& batch) {
  for (const std::size_t wrong : collective_clocks.learn(ranks, identity.world(), rank, batch, now_s())) {
    problems.report("clock",
                    "what a collective says of the clocks of " + std::to_string(wrong) +
                        " ranks contradicts their round trips and is ignored: a clock was set, or the "
                        "program emits wrong times or ends of collectives");
  }
}

void Collector::State::compare_gates(std::uint32_t rank, const wire::Batch& batch) {
  gates.alike_from(pauses.alike_from());
  const auto difference = gates.add(rank, batch.events);
  if (!difference) return;
  const std::string how = gates.text_of(*difference);
  pauses.ranks_differ(how);
  messages.record(rank, Severity::warning,
                  how + "; from here on this run is paused between steps only, until it is held there");
}

}  // namespace shardscope::collector
