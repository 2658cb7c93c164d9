#include "app/store/store.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <unordered_map>

#include "app/store/chunk.h"
#include "app/store/lane.h"
#include "app/store/memory_index.h"
#include "app/store/merge_in_time.h"
#include "app/store/span_totals.h"
#include "app/store/status_index.h"
#include "app/store/step_table.h"

namespace shardscope::store {
namespace {

using ev::Event;
using ev::EventKind;

/// Times beyond this (73 years) are damage; keeping them out keeps every sum of times in range.
constexpr std::int64_t kMaxTimeNs = std::int64_t{1} << 61;

enum class Role : std::uint8_t { unknown, begin, end, mark, instant };

/// What ingest() does with each kind, looked up instead of asked per event.
const std::array<Role, 256>& roles() {
  static const std::array<Role, 256> table = [] {
    std::array<Role, 256> out{};
    for (std::size_t k = 1; k <= static_cast<std::size_t>(ev::kLastEventKind); ++k) {
      const auto kind = static_cast<EventKind>(k);
      out[k] = ev::is_begin(kind)                      ? Role::begin
               : ev::is_end(kind)                      ? Role::end
               : kind == EventKind::collective_entered ? Role::mark
                                                       : Role::instant;
    }
    return out;
  }();
  return table;
}

bool model_state_category(ev::MemoryCategory category, std::int32_t stage) noexcept {
  switch (category) {
    case ev::MemoryCategory::param_shard:
    case ev::MemoryCategory::param_secondary:
    case ev::MemoryCategory::grad_full:
    case ev::MemoryCategory::grad_shard:
    case ev::MemoryCategory::master_weight:
    case ev::MemoryCategory::momentum:
    case ev::MemoryCategory::variance:
      return true;
    case ev::MemoryCategory::param_gathered:
      return stage < 3;
    default:
      return false;
  }
}

struct RankData {
  std::uint32_t rank = 0;
  std::array<Lane, ev::kStreamCount> lanes;
  std::vector<Event> instants;
  StatusIndex status;
  std::array<MemoryIndex, ev::kMemoryPoolCount> memory;
  std::vector<Store::GateRow> gates;
  std::optional<ev::RunTables> tables;  ///< without modules, parameters and slices
  std::uint64_t next_sequence = 0;
  bool has_events = false;
};

}  // namespace

std::int64_t MemorySample::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

struct Store::State {
  explicit State(Keep k) : keep(k) {}

  Keep keep;
  SpanTotals totals;  ///< with Keep::totals: of the spans that were let go
  std::uint64_t revision = 0;
  std::map<std::uint32_t, RankData> ranks;
  std::vector<RankRow> rows;            ///< by rank
  std::optional<ev::RunTables> tables;  ///< whole, of the lowest rank
  StepTable steps;
  std::vector<Message> messages;
  std::vector<Gap> gaps;
  std::unordered_map<std::uint64_t, std::string> names;
  std::vector<std::uint32_t> parents;  ///< by module
  std::int64_t origin_ns = 0, end_ns = 0;
  bool has_origin = false;
  std::uint64_t events = 0, dropped = 0;
  std::array<bool, ev::kMemoryCategoryCount> model_state{};
  ParamState initial;  ///< of a parameter before its first change

  void apply_stage(std::int32_t stage);
  RankData& data(std::uint32_t rank);
  RankRow& row(std::uint32_t rank);
  [[nodiscard]] const RankData* find(std::uint32_t rank) const;
  [[nodiscard]] const Lane* lane(LaneId id) const;
  void shift(std::int64_t delta_ns);
  void note_gap(RankData& data, const RankRow& row, const Chunk& chunk, std::int64_t begin_ns);
  void add_event(RankData& data, const Event& event, std::int64_t at_ns);
  void add_instant(RankData& data, const Event& event, std::int64_t at_ns);
  void let_go(RankData& data);
};

void Store::State::apply_stage(std::int32_t stage) {
  for (std::size_t c = 0; c < model_state.size(); ++c) {
    model_state[c] = model_state_category(static_cast<ev::MemoryCategory>(c), stage);
  }
  // Below stage 3 parameters are never partitioned: without any change they are available.
  initial.status = stage < 3 ? 2 : 0;
  initial.cause = stage < 3 ? ev::StatusCause::persistent : ev::StatusCause::partition;
  for (auto& [rank, data] : ranks) {
    for (MemoryIndex& memory : data.memory) memory.set_model_state(model_state);
    data.status.set_initial(initial);
  }
}

RankData& Store::State::data(std::uint32_t rank) {
  const auto [at, added] = ranks.try_emplace(rank);
  if (added) {
    at->second.rank = rank;
    at->second.status.set_initial(initial);
    if (keep == Keep::totals) {
      for (Lane& lane : at->second.lanes) lane.without_density();
    }
    for (MemoryIndex& memory : at->second.memory) memory.set_model_state(model_state);
    (void)row(rank);
  }
  return at->second;
}

RankRow& Store::State::row(std::uint32_t rank) {
  auto at = std::lower_bound(rows.begin(), rows.end(), rank,
                             [](const RankRow& r, std::uint32_t value) { return r.rank < value; });
  if (at == rows.end() || at->rank != rank) {
    at = rows.insert(at, RankRow{});
    at->rank = rank;
  }
  return *at;
}

const RankData* Store::State::find(std::uint32_t rank) const {
  const auto at = ranks.find(rank);
  return at == ranks.end() ? nullptr : &at->second;
}

const Lane* Store::State::lane(LaneId id) const {
  const RankData* data = find(id.rank);
  const auto stream = static_cast<std::size_t>(id.stream);
  return data == nullptr || stream >= data->lanes.size() ? nullptr : &data->lanes[stream];
}

void Store::State::shift(std::int64_t delta_ns) {
  for (auto& [rank, data] : ranks) {
    for (Lane& lane : data.lanes) lane.shift(delta_ns);
    for (Event& event : data.instants) event.ticks += static_cast<std::uint64_t>(delta_ns);
    data.status.shift(delta_ns);
    for (MemoryIndex& memory : data.memory) memory.shift(delta_ns);
    for (GateRow& gate : data.gates) gate.at_ns += delta_ns;
  }
  for (RankRow& row : rows) row.last_ns += delta_ns;
  for (Message& message : messages) message.at_ns += delta_ns;
  for (Gap& gap : gaps) {
    gap.begin_ns += delta_ns;
    gap.end_ns += delta_ns;
  }
  steps.shift(delta_ns);
  end_ns += delta_ns;
}

void Store::State::note_gap(RankData& data, const RankRow& row, const Chunk& chunk, std::int64_t begin_ns) {
  const bool missing_chunks = chunk.sequence > data.next_sequence;
  if (chunk.dropped_before == 0 && chunk.lost_before == 0 && !missing_chunks) return;
  std::int64_t since = data.has_events ? row.last_ns : begin_ns;
  std::int64_t until = begin_ns;
  if (chunk.lost_before == 0 && !missing_chunks && chunk.missing_begin_ns < chunk.missing_end_ns &&
      chunk.missing_begin_ns > -kMaxTimeNs && chunk.missing_end_ns < kMaxTimeNs &&
      chunk.clock_offset_ns > -kMaxTimeNs && chunk.clock_offset_ns < kMaxTimeNs) {
    since = chunk.missing_begin_ns + chunk.clock_offset_ns - origin_ns;
    until = chunk.missing_end_ns + chunk.clock_offset_ns - origin_ns;
  }
  // 0 events: an unknown number, because whole messages are missing as well.
  const bool count_known = chunk.lost_before == 0 && !missing_chunks;
  gaps.push_back({.rank = data.rank,
                  .begin_ns = std::min(since, until),
                  .end_ns = std::max(since, until),
                  .events = count_known ? chunk.dropped_before : 0,
                  .shed = count_known ? std::min(chunk.shed_before, chunk.dropped_before) : 0,
                  .messages = chunk.lost_before,
                  .messages_between = std::min(chunk.lost_between, chunk.lost_before)});
  for (Lane& lane : data.lanes) lane.gap();
  for (MemoryIndex& memory : data.memory) memory.gap();
}

void Store::State::add_instant(RankData& data, const Event& event, std::int64_t at_ns) {
  if (keep == Keep::everything) {
    data.instants.push_back(event);
    data.instants.back().ticks = static_cast<std::uint64_t>(at_ns);
  }
  switch (event.kind) {
    case EventKind::param_status:
      if (keep == Keep::totals) return;
      data.status.push(
          {.at_ns = at_ns, .param = event.a, .module = event.b, .gather = event.c, .code = event.code});
      return;
    case EventKind::memory_alloc:
    case EventKind::memory_free: {
      const std::size_t pool = event.code >> 4;
      if (pool >= data.memory.size()) return;
      data.memory[pool].push({.at_ns = at_ns,
                              .delta = event.kind == EventKind::memory_alloc ? event.v0 : -event.v0,
                              .after = event.v1,
                              .category = static_cast<ev::MemoryCategory>(event.code & 0xFU)});
      return;
    }
    case EventKind::loss:
    case EventKind::grad_norm:
    case EventKind::loss_scale:
    case EventKind::learning_rate:
    case EventKind::tokens:
      steps.add(data.rank, event, at_ns);
      return;
    case EventKind::gate:
      if (keep == Keep::totals) return;
      data.gates.push_back(
          {.at_ns = at_ns, .number = event.a, .kind = static_cast<ev::GateKind>(event.code), .id = event.b});
      return;
    default:
      return;
  }
}

void Store::State::add_event(RankData& data, const Event& event, std::int64_t at_ns) {
  const auto kind = static_cast<std::size_t>(event.kind);
  const auto stream = static_cast<std::size_t>(event.stream);
  if (kind >= roles().size() || stream >= data.lanes.size()) return;
  switch (roles()[kind]) {
    case Role::begin:
      data.lanes[stream].begin(event, at_ns, parents);
      if (event.kind == EventKind::step_begin) steps.add(data.rank, event, at_ns);
      return;
    case Role::end: {
      const Span* span = data.lanes[stream].end(event, at_ns);
      if (event.kind == EventKind::step_end) steps.add(data.rank, event, at_ns);
      if (event.kind == EventKind::paused_end && span != nullptr) {
        steps.paused(data.rank, span->end_ns - span->begin_ns);
      }
      return;
    }
    case Role::mark:
      data.lanes[stream].mark(event, at_ns);
      return;
    case Role::instant:
      add_instant(data, event, at_ns);
      return;
    case Role::unknown:
      return;
  }
}

void Store::State::let_go(RankData& data) {
  for (std::size_t i = 0; i < data.lanes.size(); ++i) {
    const LaneId id{data.rank, static_cast<ev::StreamId>(i)};
    data.lanes[i].let_go([&](const Span& span) { totals.add(id, span); });
  }
  for (MemoryIndex& memory : data.memory) memory.let_go();
}

Store::Store(Keep keep) : state_(std::make_unique<State>(keep)) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

void Store::set_tables(std::uint32_t rank, const ev::RunTables& tables) {
  State& s = *state_;
  RankData& data = s.data(rank);
  // Modules, parameters and slices are the same on every rank and, with many ranks, large: kept once.
  const bool poorer = s.tables && tables.modules.empty() && !s.tables->modules.empty();
  if (!poorer && (!s.tables || rank <= s.tables->rank || s.tables->modules.empty())) {
    s.tables = tables;
    s.tables->rank = rank;
  }
  ev::RunTables own = tables;
  own.modules.clear();
  own.params.clear();
  own.slices.clear();
  data.tables = std::move(own);
  RankRow& row = s.row(rank);
  if (row.host.empty()) row.host = tables.host;
  if (row.pid == 0) row.pid = tables.pid;
  const ev::RunTables& run = this->tables();
  s.parents.assign(run.modules.size(), ev::kNoId);
  for (const ev::ModuleInfo& module : run.modules) {
    if (module.id < s.parents.size()) s.parents[module.id] = module.parent;
  }
  s.steps.set_world(run.world);
  s.apply_stage(run.stage);
  ++s.revision;
}

void Store::ingest(const Chunk& chunk) {
  State& s = *state_;
  RankData& data = s.data(chunk.rank);
  if (chunk.sequence < data.next_sequence) return;  // seen before, e.g. in a snapshot

  const auto plausible = [](std::int64_t ns) { return ns > -kMaxTimeNs && ns < kMaxTimeNs; };
  const std::int64_t begin = chunk.begin_ns();
  const std::int64_t end = chunk.end_ns();
  const bool usable = plausible(begin) && plausible(end) && plausible(chunk.clock_offset_ns);
  if (usable && !chunk.events.empty()) {
    const std::int64_t earliest = begin + chunk.clock_offset_ns;
    if (!s.has_origin || earliest < s.origin_ns) {
      if (s.has_origin) s.shift(s.origin_ns - earliest);
      s.origin_ns = earliest;
      s.has_origin = true;
    }
  }
  RankRow& row = s.row(chunk.rank);
  const std::int64_t to_run = usable ? chunk.clock_offset_ns - s.origin_ns : 0;
  s.note_gap(data, row, chunk, usable && !chunk.events.empty() ? begin + to_run : row.last_ns);
  data.next_sequence = chunk.sequence + chunk.parts;

  if (usable) {
    const std::size_t old_instants = data.instants.size();
    const std::size_t old_gates = data.gates.size();
    for (const Event& event : chunk.events) {
      s.add_event(data, event, static_cast<std::int64_t>(event.ticks) + to_run);
    }
    merge_in_time(data.instants, old_instants,
                  [](const Event& e) { return static_cast<std::int64_t>(e.ticks); });
    merge_in_time(data.gates, old_gates, [](const GateRow& g) { return g.at_ns; });
    data.status.settle();
    for (MemoryIndex& memory : data.memory) memory.settle();
    for (Lane& lane : data.lanes) lane.settle();
    if (s.keep == Keep::totals) s.let_go(data);
    if (!chunk.events.empty()) {
      data.has_events = true;
      row.last_ns = std::max(row.last_ns, end + to_run);
      s.end_ns = std::max(s.end_ns, end + to_run);
    }
    row.clock_offset_ns = chunk.clock_offset_ns;
    row.clock_residual_ns = chunk.clock_residual_ns;
  }
  s.events += chunk.events.size();
  s.dropped += chunk.dropped_before;
  row.events += chunk.events.size();
  row.dropped += chunk.dropped_before;
  row.lost_messages += chunk.lost_before;
  ++s.revision;
}

void Store::set_rank(const RankRow& row) {
  State& s = *state_;
  (void)s.data(row.rank);
  RankRow& own = s.row(row.rank);
  const RankRow old = own;
  own = row;
  // Counts and times of what was ingested are this store's own.
  own.events = std::max(old.events, row.events);
  own.dropped = std::max(old.dropped, row.dropped);
  own.lost_messages = std::max(old.lost_messages, row.lost_messages);
  own.last_ns = std::max(old.last_ns, row.last_ns);
  if (own.host.empty()) own.host = old.host;
  if (own.pid == 0) own.pid = old.pid;
  if (row.clock_offset_ns == 0 && row.clock_residual_ns == 0) {
    own.clock_offset_ns = old.clock_offset_ns;
    own.clock_residual_ns = old.clock_residual_ns;
  }
  ++s.revision;
}

void Store::add_message(Message message) {
  auto& messages = state_->messages;
  messages.push_back(std::move(message));
  merge_in_time(messages, messages.size() - 1, [](const Message& m) { return m.at_ns; });
  ++state_->revision;
}

void Store::add_name(std::uint32_t rank, std::uint32_t id, std::string name) {
  state_->names[static_cast<std::uint64_t>(rank) << 32 | id] = std::move(name);
  ++state_->revision;
}

std::uint64_t Store::revision() const noexcept { return state_->revision; }

bool Store::has_tables() const noexcept { return state_->tables.has_value(); }

const ev::RunTables& Store::tables() const {
  static const ev::RunTables none;
  return state_->tables ? *state_->tables : none;
}

const ev::RunTables* Store::rank_tables(std::uint32_t rank) const {
  const RankData* data = state_->find(rank);
  return data == nullptr || !data->tables ? nullptr : &*data->tables;
}

std::span<const RankRow> Store::ranks() const { return state_->rows; }
std::span<const StepRow> Store::steps() const { return state_->steps.rows(); }
std::span<const Message> Store::messages() const { return state_->messages; }
std::span<const Gap> Store::gaps() const { return state_->gaps; }
std::int64_t Store::end_ns() const noexcept { return state_->end_ns; }
std::int64_t Store::origin_ns() const noexcept { return state_->origin_ns; }
std::uint64_t Store::event_count() const noexcept { return state_->events; }
std::uint64_t Store::dropped_count() const noexcept { return state_->dropped; }

std::string Store::name(std::uint32_t rank, std::uint32_t id) const {
  const auto at = state_->names.find(static_cast<std::uint64_t>(rank) << 32 | id);
  return at == state_->names.end() ? std::string() : at->second;
}

std::vector<SpanTotal> Store::span_totals() const {
  if (state_->keep == Keep::totals) return state_->totals.rows();
  SpanTotals totals;
  for (const LaneId lane : lanes()) {
    for (std::uint8_t depth = 0; depth < depth_count(lane); ++depth) {
      for (const Span& span : spans(lane, depth)) {
        if (span.end_ns != kOpen) totals.add(lane, span);
      }
    }
  }
  return totals.rows();
}

std::vector<LaneId> Store::lanes() const {
  std::vector<LaneId> out;
  for (const auto& [rank, data] : state_->ranks) {
    for (std::size_t i = 0; i < data.lanes.size(); ++i) {
      if (!data.lanes[i].empty()) out.push_back({rank, static_cast<ev::StreamId>(i)});
    }
  }
  return out;
}

std::span<const Span> Store::spans(LaneId lane, std::uint8_t depth) const {
  const Lane* found = state_->lane(lane);
  return found == nullptr ? std::span<const Span>{} : found->spans(depth);
}

std::pair<std::size_t, std::size_t> Store::visible(LaneId lane, std::uint8_t depth, std::int64_t begin_ns,
                                                   std::int64_t end_ns) const {
  const Lane* found = state_->lane(lane);
  return found == nullptr ? std::pair<std::size_t, std::size_t>{} : found->visible(depth, begin_ns, end_ns);
}

std::uint8_t Store::depth_count(LaneId lane) const {
  const Lane* found = state_->lane(lane);
  return found == nullptr ? std::uint8_t{0} : found->depth_count();
}

void Store::density(LaneId lane, std::uint8_t depth, std::int64_t begin_ns, std::int64_t end_ns,
                    std::span<Density> columns) const {
  const Lane* found = state_->lane(lane);
  if (found == nullptr) {
    std::fill(columns.begin(), columns.end(), Density{});
    return;
  }
  found->density(depth, begin_ns, end_ns, state_->end_ns, columns);
}

std::span<const Event> Store::instants(std::uint32_t rank) const {
  const RankData* data = state_->find(rank);
  return data == nullptr ? std::span<const Event>{} : data->instants;
}

ParamState Store::param_state(std::uint32_t rank, std::uint32_t param, std::int64_t at_ns) const {
  const RankData* data = state_->find(rank);
  return data == nullptr ? ParamState{} : data->status.at(param, at_ns);
}

void Store::param_states(std::uint32_t rank, std::int64_t at_ns, std::span<ParamState> out) const {
  const RankData* data = state_->find(rank);
  if (data == nullptr) {
    std::fill(out.begin(), out.end(), ParamState{});
    return;
  }
  data->status.all_at(at_ns, out);
}

std::vector<Store::StatusChange> Store::status_history(std::uint32_t rank, std::uint32_t param) const {
  const RankData* data = state_->find(rank);
  return data == nullptr ? std::vector<StatusChange>{} : data->status.history(param);
}

namespace {

const MemoryIndex* memory_of(const RankData* data, ev::MemoryPool pool) {
  const auto index = static_cast<std::size_t>(pool);
  return data == nullptr || index >= data->memory.size() ? nullptr : &data->memory[index];
}

}  // namespace

MemorySample Store::memory_at(std::uint32_t rank, ev::MemoryPool pool, std::int64_t at_ns) const {
  const MemoryIndex* memory = memory_of(state_->find(rank), pool);
  return memory == nullptr ? MemorySample{.at_ns = at_ns} : memory->at(at_ns);
}

std::optional<MemorySample> Store::memory_peak(std::uint32_t rank, ev::MemoryPool pool) const {
  const MemoryIndex* memory = memory_of(state_->find(rank), pool);
  return memory == nullptr ? std::nullopt : memory->peak();
}

std::optional<MemorySample> Store::model_state_peak(std::uint32_t rank, ev::MemoryPool pool) const {
  const MemoryIndex* memory = memory_of(state_->find(rank), pool);
  return memory == nullptr ? std::nullopt : memory->model_state_peak();
}

void Store::memory_columns(std::uint32_t rank, ev::MemoryPool pool, std::int64_t begin_ns,
                           std::int64_t end_ns, std::span<MemorySample> columns) const {
  const MemoryIndex* memory = memory_of(state_->find(rank), pool);
  if (memory == nullptr) {
    std::fill(columns.begin(), columns.end(), MemorySample{});
    return;
  }
  memory->columns(begin_ns, end_ns, columns);
}

std::span<const Store::GateRow> Store::gates(std::uint32_t rank) const {
  const RankData* data = state_->find(rank);
  return data == nullptr ? std::span<const GateRow>{} : data->gates;
}

}  // namespace shardscope::store
