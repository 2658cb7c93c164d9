#include "app/gui/model/moved_params.h"

#include <algorithm>

#include "app/gui/model/names.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {
namespace {

std::uint32_t owner_of(const ev::RunTables& tables, std::uint32_t param) {
  const auto at = std::ranges::lower_bound(tables.params, param, {}, &ev::ParamInfo::id);
  if (at == tables.params.end() || at->id != param || at->modules.empty()) return ev::kNoId;
  return at->modules.front();
}

}  // namespace

std::span<const std::uint32_t> moved_params(const RunIndex& index, store::LaneId lane,
                                            const store::Span& collective) {
  if (collective.kind != ev::EventKind::collective_begin) return {};
  if (lane.stream == ev::StreamId::gather) {
    const Fetch* const fetch = index.fetch_of(lane.rank, collective);
    return fetch == nullptr ? std::span<const std::uint32_t>{} : fetch->params;
  }
  return index.parts(lane.rank, ev::as<ev::EventKind::collective_begin>(collective).sequence);
}

std::uint32_t moved_for(const store::Store& store, const RunIndex& index, store::LaneId lane,
                        const store::Span& collective) {
  if (!store.has_tables()) return ev::kNoId;
  if (lane.stream == ev::StreamId::gather && collective.kind == ev::EventKind::collective_begin) {
    const Fetch* const fetch = index.fetch_of(lane.rank, collective);
    if (fetch != nullptr && fetch->module != ev::kNoId) return fetch->module;
  }
  const auto params = moved_params(index, lane, collective);
  if (params.empty()) return ev::kNoId;
  const std::uint32_t first = owner_of(store.tables(), params.front());
  const bool one = std::ranges::all_of(
      params, [&](std::uint32_t param) { return owner_of(store.tables(), param) == first; });
  return one ? first : ev::kNoId;
}

}  // namespace shardscope::gui
