#include "app/collector/viewed_items.h"

#include <exception>
#include <span>
#include <utility>

#include "app/collector/for_store.h"

namespace shardscope::collector {
namespace {

namespace wire = instrumentation::wire;

ViewedItem viewed_chunk(wire::ViewItem item, KeepEncoded encoded, std::uint64_t& damaged) {
  try {
    ArrivedChunk out{
        store::Chunk::decode(reinterpret_cast<const std::byte*>(item.data.data()), item.data.size()), {}};
    if (encoded == KeepEncoded::yes) out.encoded = std::move(item.data);
    return out;
  } catch (const std::exception& error) {
    ++damaged;
    return store::Message{0, item.rank, instrumentation::Severity::error,
                          std::string("a piece of the run was damaged on the way: ") + error.what()};
  }
}

ViewedItem viewed_tables(const wire::ViewItem& item, std::uint64_t& damaged) {
  wire::Decoded tables = wire::decode(item.data.data(), item.data.size(), wire::From::rank_publish);
  if (tables.message && std::holds_alternative<wire::Tables>(tables.message->body))
    return std::get<wire::Tables>(std::move(tables.message->body)).tables;
  ++damaged;
  return store::Message{0, item.rank, instrumentation::Severity::error,
                        "tables of a rank were damaged on the way: " + tables.why};
}

}  // namespace

ViewedItem viewed_item(wire::ViewItem item, KeepEncoded encoded, std::uint64_t& damaged) {
  switch (item.kind) {
    case wire::ViewItem::Kind::chunk:
      return viewed_chunk(std::move(item), encoded, damaged);
    case wire::ViewItem::Kind::tables:
      return viewed_tables(item, damaged);
    case wire::ViewItem::Kind::name:
      return NamedId{item.rank, item.id, std::move(item.text)};
    case wire::ViewItem::Kind::message:
      break;
  }
  return store::Message{item.at_ns, item.rank, item.severity, std::move(item.text)};
}

store::RankRow viewed_row(wire::RankState state) {
  store::RankRow row;
  row.rank = state.rank;
  row.connected = state.connected;
  row.finished = state.finished;
  row.exit_code = state.exit_code;
  row.host = std::move(state.host);
  row.exit_message = std::move(state.exit_message);
  row.pid = state.pid;
  row.events = state.events;
  row.dropped = state.dropped;
  row.lost_messages = state.lost_messages;
  row.clock_offset_ns = state.clock_offset_ns;
  row.clock_residual_ns = state.clock_residual_ns;
  row.last_ns = state.last_ns;
  row.gate = state.gate.position;
  return row;
}

std::size_t size_of(const ViewedItem& item) {
  const auto* arrived = std::get_if<ArrivedChunk>(&item);
  if (arrived == nullptr) return 128;
  return 128 + arrived->chunk.events.size() * sizeof(instrumentation::Event) + arrived->encoded.size();
}

void hand_over(ViewedItem& item, store::Store& store, ViewObserver* observer) {
  if (auto* arrived = std::get_if<ArrivedChunk>(&item)) {
    if (observer != nullptr) observer->chunk(arrived->chunk, std::as_bytes(std::span(arrived->encoded)));
    store.ingest(arrived->chunk);
  } else if (auto* tables = std::get_if<instrumentation::RunTables>(&item)) {
    if (observer != nullptr) observer->tables(*tables);
    store.set_tables(tables->rank, *tables);
  } else if (auto* message = std::get_if<store::Message>(&item)) {
    message->at_ns = in_run_time(message->at_ns, store);
    if (observer != nullptr) observer->message(*message);
    store.add_message(std::move(*message));
  } else if (auto* name = std::get_if<NamedId>(&item)) {
    if (observer != nullptr) observer->name(name->rank, name->id, name->name);
    store.add_name(name->rank, name->id, std::move(name->name));
  } else {
    ViewTraffic before = std::get<AnotherRun>(item).before;
    before.waiting_bytes = 0;
    if (observer != nullptr) observer->another_run(before);
    store::Store fresh;
    if (store.bounds()) fresh.bound(*store.bounds());
    store = std::move(fresh);
  }
}

}  // namespace shardscope::collector
