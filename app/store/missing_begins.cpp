#include "app/store/missing_begins.h"

#include <algorithm>
#include <array>

namespace shardscope::store {
namespace {

using ev::EventKind;

constexpr std::uint8_t kMostNested = 64;  ///< Lane::kMaxDepth
constexpr std::size_t kKinds = static_cast<std::size_t>(ev::kLastEventKind) + 1;

/// Begins of kinds above a level of detail.
KindSet begins_above(int level) {
  KindSet out;
  for (std::size_t k = 1; k < kKinds; ++k) {
    const auto kind = static_cast<EventKind>(k);
    if (ev::is_begin(kind) && static_cast<int>(ev::detail_of(kind)) > level) out.add(kind);
  }
  return out;
}

bool nests_in_itself(EventKind begin) noexcept {
  return begin == EventKind::module_begin || begin == EventKind::kernel_begin;
}

}  // namespace

EventKind begin_of(EventKind end) noexcept {
  static const std::array<EventKind, kKinds> table = [] {
    std::array<EventKind, kKinds> out{};
    for (std::size_t k = 1; k < kKinds; ++k) {
      const auto kind = static_cast<EventKind>(k);
      if (ev::is_begin(kind)) out[static_cast<std::size_t>(ev::end_of(kind))] = kind;
    }
    return out;
  }();
  const auto index = static_cast<std::size_t>(end);
  return index < table.size() ? table[index] : EventKind{};
}

int outer_level(EventKind begin) noexcept {
  if (begin == EventKind::step_begin) return 1;
  if (begin == EventKind::micro_step_begin) return 2;
  if (begin == EventKind::phase_begin) return 3;
  return 0;
}

MissingBegins::MissingBegins() {
  static const KindSet all = begins_above(-1);
  kinds_ = all;
}

MissingBegins MissingBegins::none() {
  MissingBegins out;
  out.kinds_ = {};
  return out;
}

void MissingBegins::missing(ev::Detail above, std::int64_t until_ns) {
  kinds_.add(begins_above(static_cast<int>(above)));
  until_ns_ = std::max(until_ns_, until_ns);
  nested_ = 0;
}

void MissingBegins::missing(std::int64_t until_ns) {
  *this = MissingBegins();
  until_ns_ = until_ns;
}

void MissingBegins::forget(EventKind kind, std::int64_t at_ns) noexcept {
  if (at_ns <= until_ns_) return;
  const int level = outer_level(kind);
  if (level == 0) {
    if (!nests_in_itself(kind)) kinds_.remove(kind);
    return;
  }
  KindSet outside;  // kinds that `kind` may lie in
  for (const EventKind outer : {EventKind::step_begin, EventKind::micro_step_begin, EventKind::phase_begin}) {
    if (outer_level(outer) < level) outside.add(outer);
  }
  kinds_.keep_only(outside);
}

bool MissingBegins::explains(EventKind begin, std::int64_t at_ns, bool inside) {
  if (!kinds_.has(begin)) return false;
  if (at_ns <= until_ns_) return true;
  if (!nests_in_itself(begin)) {
    kinds_.remove(begin);
    return true;
  }
  if (inside || nested_ == kMostNested) return false;
  ++nested_;
  return true;
}

}  // namespace shardscope::store
