#include "app/store/replay.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <stdexcept>
#include <utility>

#include "app/store/recorded_run.h"

namespace shardscope::store {
namespace {

std::int64_t on_collector_clock(const ev::Event& event, const Chunk& chunk) {
  return static_cast<std::int64_t>(event.ticks) + chunk.clock_offset_ns;
}

}  // namespace

Replay::Replay(const std::string& path)
    : whole_(open_recording(path, &info_)), database_(path, Database::Access::read) {
  if (keeps_a_part()) return;
  for (const RankRow& row : whole_.ranks()) {
    Statement chunks = database_.prepare("SELECT bytes FROM chunks WHERE rank = ?1 ORDER BY id");
    chunks.bind(1, std::int64_t{row.rank});
    ranks_.try_emplace(row.rank, std::move(chunks)).first->second.row = row;
  }
}

bool Replay::read_next(Rank& rank) {
  while (rank.rows.step()) {
    const std::span<const std::byte> bytes = rank.rows.bytes(0);
    try {
      rank.chunk = Chunk::decode(bytes.data(), bytes.size());
      return true;
    } catch (const std::runtime_error&) {  // reported by open_recording()
    }
  }
  rank.chunk.reset();
  return false;
}

void Replay::hand_over(Store& to, Rank& rank, std::int64_t until_ns) const {
  const std::int64_t until = until_ns + whole_.origin_ns();
  while (rank.chunk || read_next(rank)) {
    Chunk& rest = *rank.chunk;
    // Events are in order of time within each lane only.
    const auto later = std::stable_partition(
        rest.events.begin(), rest.events.end(),
        [&](const ev::Event& event) { return on_collector_clock(event, rest) <= until; });
    if (later == rest.events.begin() && !rest.events.empty()) return;
    Chunk now;
    now.rank = rest.rank;
    now.sequence = rank.sequence++;
    now.clock_offset_ns = rest.clock_offset_ns;
    now.clock_residual_ns = rest.clock_residual_ns;
    now.missing_begin_ns = std::exchange(rest.missing_begin_ns, 0);
    now.missing_end_ns = std::exchange(rest.missing_end_ns, 0);
    now.dropped_before = std::exchange(rest.dropped_before, 0);
    now.shed_before = std::exchange(rest.shed_before, 0);
    now.lost_before = std::exchange(rest.lost_before, 0);
    now.lost_between = std::exchange(rest.lost_between, 0);
    now.events.assign(rest.events.begin(), later);
    rest.events.erase(rest.events.begin(), later);
    RankRow row = rank.row;
    row.connected = true;
    row.finished = row.outlived_recording = false;
    row.exit_code = 0;
    row.exit_message.clear();
    row.dropped = rank.handed.dropped += now.dropped_before;
    row.lost_messages = rank.handed.lost += now.lost_before;
    row.events = rank.handed.events += now.events.size();
    to.ingest(now);
    to.set_rank(row);
    if (!rest.events.empty()) return;
    rank.chunk.reset();
  }
  if (std::exchange(rank.over, true)) return;
  to.set_rank(rank.row);
}

void Replay::advance(Store& to, std::int64_t until_ns) {
  if (!std::exchange(begun_, true)) {
    RecordedRun(to).all_ranks_came();
    for (const auto& [number, rank] : ranks_) {
      const ev::RunTables* const own = whole_.rank_tables(number);
      if (own == nullptr) continue;
      to.set_tables(number, number == whole_.tables().rank ? whole_.tables() : *own);
    }
  }
  for (auto& [number, rank] : ranks_) hand_over(to, rank, until_ns);
  const std::span<const Message> messages = whole_.messages();
  for (; messages_ < messages.size() && messages[messages_].at_ns <= until_ns; ++messages_)
    to.add_message(messages[messages_]);
}

bool Replay::paused() const {
  const auto of_pause = [](const ev::Event& event) {
    return event.kind == ev::EventKind::paused_begin || event.kind == ev::EventKind::paused_end;
  };
  return std::ranges::any_of(ranks_, [&](const auto& entry) {
    const std::optional<Chunk>& chunk = entry.second.chunk;
    if (!chunk) return false;
    const auto next = std::ranges::find_if(chunk->events, of_pause);
    return next != chunk->events.end() && next->kind == ev::EventKind::paused_end;
  });
}

}  // namespace shardscope::store
