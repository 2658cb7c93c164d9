#include "app/gui/model/span_inside.h"

#include <algorithm>
#include <unordered_map>

#include "app/gui/model/find_spans.h"
#include "app/store/span_time.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {

SpanInside inside_of(const store::Store& store, store::LaneId lane, const store::Span& span) {
  constexpr std::uint64_t kMostChildren = 5000;
  constexpr std::size_t kMostMessages = 20;
  SpanInside out;
  const std::int64_t end_ns = store::time_of(store, lane.rank, span).until_ns;
  const auto depth = static_cast<std::uint8_t>(span.depth + 1);
  if (store.span_count(lane, depth, span.begin_ns, end_ns) > kMostChildren) {
    out.too_many = true;
  } else if (!store.ready(lane, span.begin_ns, end_ns)) {
    out.read = false;
  } else {
    std::unordered_map<std::string, std::size_t> known;
    store.for_each_span(lane, depth, span.begin_ns, end_ns, [&](const store::Span& child) {
      if (child.begin_ns < span.begin_ns || child.kind == ev::EventKind::paused_begin) return;
      std::string name = shared_name(store, lane.rank, child);
      const auto [at, made] = known.try_emplace(name, out.children.size());
      if (made) out.children.push_back({std::move(name), 0, 0, child.begin_ns});
      SpanInside::Children& group = out.children[at->second];
      ++group.count;
      group.time_ns += store::time_of(store, lane.rank, child).running_ns;
    });
    std::ranges::stable_sort(out.children, std::greater{}, &SpanInside::Children::time_ns);
  }
  const auto messages = store.messages();
  for (std::size_t i = 0; i < messages.size() && out.messages.size() < kMostMessages; ++i) {
    if (messages[i].rank == lane.rank && messages[i].at_ns >= span.begin_ns && messages[i].at_ns < end_ns)
      out.messages.push_back(i);
  }
  std::ranges::stable_sort(out.messages, {}, [&](std::size_t i) { return messages[i].at_ns; });
  if (store.memory_peak(lane.rank, ev::MemoryPool::device) && store.is_known(lane.rank, span.begin_ns) &&
      store.is_known(lane.rank, end_ns))
    out.memory_bytes = store.memory_at(lane.rank, ev::MemoryPool::device, end_ns).total() -
                       store.memory_at(lane.rank, ev::MemoryPool::device, span.begin_ns).total();
  return out;
}

const SpanInside& InsideCache::of(const store::Store& store, store::LaneId lane, const store::Span& span) {
  const SpanKey key(store, lane, span);
  if (key_ != key) {
    inside_ = inside_of(store, lane, span);
    key_ = inside_.read ? std::optional(key) : std::nullopt;
  }
  return inside_;
}

bool alike(const store::Span& a, const store::Span& b) noexcept {
  using Kind = ev::EventKind;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::step_begin:
    case Kind::micro_step_begin:
      return true;
    case Kind::module_begin:
      return ev::as<Kind::module_begin>(a).module == ev::as<Kind::module_begin>(b).module && a.code == b.code;
    case Kind::kernel_begin:
      return ev::as<Kind::kernel_begin>(a).name == ev::as<Kind::kernel_begin>(b).name && a.code == b.code;
    case Kind::span_begin:
      return ev::as<Kind::span_begin>(a).name == ev::as<Kind::span_begin>(b).name;
    case Kind::fetch_wait_begin:
      return module_of(a) == module_of(b);
    case Kind::gpu_begin: {
      const auto one = ev::as<Kind::gpu_begin>(a);
      const auto other = ev::as<Kind::gpu_begin>(b);
      return one.name == other.name && one.owner == other.owner && a.code == b.code;
    }
    default:
      return a.code == b.code;
  }
}

}  // namespace shardscope::gui
