#include "app/gui/model/moved_params.h"

#include <vector>

#include "app/store/gather_contents.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {

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
  const std::vector<std::uint32_t> owners = store::owners_of(store, moved_params(index, lane, collective));
  return owners.size() == 1 ? owners.front() : ev::kNoId;
}

}  // namespace shardscope::gui
