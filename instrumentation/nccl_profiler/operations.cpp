#include "instrumentation/nccl_profiler/operations.h"

#include <algorithm>
#include <bit>

namespace shardscope::nccl_profiler {
namespace {

// The word of a slot: generation in bits 32-63, users in bits 8-31, state in bits 0-7.
constexpr std::uint64_t kStateMask = 0xFF;
constexpr std::uint64_t kUser = 0x100;
constexpr std::uint64_t kUsersMask = 0xFFFFFF00;
enum State : std::uint64_t { kFree = 0, kFilling = 1, kOpen = 2 };

std::uint32_t generation_of(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word >> 32U); }
std::uint64_t word_of(std::uint32_t generation, State state) noexcept {
  return std::uint64_t{generation} << 32U | state;
}

template <typename T>
void lower(std::atomic<T>& value, T other) noexcept {
  T seen = value.load(std::memory_order_relaxed);
  while (other < seen && !value.compare_exchange_weak(seen, other, std::memory_order_relaxed)) {
  }
}
template <typename T>
void raise(std::atomic<T>& value, T other) noexcept {
  T seen = value.load(std::memory_order_relaxed);
  while (other > seen && !value.compare_exchange_weak(seen, other, std::memory_order_relaxed)) {
  }
}

}  // namespace

void* Handle::pack() const noexcept {
  std::uint64_t word = std::uint64_t{static_cast<std::uint8_t>(kind)} << 60U;
  if (kind == HandleKind::call) {
    word |= index | std::uint64_t{channel} << 32U;
  } else {
    word |= (index & 0xFFFFU) | std::uint64_t{generation} << 16U | std::uint64_t{channel} << 48U;
  }
  return reinterpret_cast<void*>(word);
}

Handle Handle::unpack(const void* handle) noexcept {
  const auto word = reinterpret_cast<std::uint64_t>(handle);
  Handle out;
  const auto kind = static_cast<std::uint8_t>(word >> 60U);
  if (kind > static_cast<std::uint8_t>(HandleKind::context)) return out;
  out.kind = static_cast<HandleKind>(kind);
  if (out.kind == HandleKind::call) {
    out.index = static_cast<std::uint32_t>(word);
    out.channel = static_cast<std::uint8_t>(word >> 32U);
  } else {
    out.index = static_cast<std::uint32_t>(word & 0xFFFFU);
    out.generation = static_cast<std::uint32_t>(word >> 16U);
    out.channel = static_cast<std::uint8_t>(word >> 48U);
  }
  return out;
}

struct Operations::Place {
  std::atomic<std::uint64_t> word{word_of(1, kFree)};
  OperationFacts facts;  ///< written while filling, read while open
  std::atomic<bool> stopped{false};
  std::atomic<std::int64_t> last_report_ns{0};
  std::atomic<std::uint64_t> channels_begun{0}, channels_ended{0};  ///< a bit per channel: reports may repeat
  std::atomic<std::uint64_t> begin_gpu_ns{0}, first_end_gpu_ns{0}, end_gpu_ns{0};
  std::atomic<std::uint32_t> proxies_begun{0}, proxies_ended{0};
  std::atomic<std::int64_t> proxy_begin_ns{0}, proxy_end_ns{0};
  bool reported = false;  ///< whether the reader got its start; only used by the reader's thread

  [[nodiscard]] bool complete() const noexcept {
    const int ended = std::popcount(channels_ended.load(std::memory_order_relaxed));
    return stopped.load(std::memory_order_relaxed) && ended >= facts.channels &&
           proxies_begun.load(std::memory_order_relaxed) == proxies_ended.load(std::memory_order_relaxed);
  }
  [[nodiscard]] OperationTimes times() const noexcept {
    OperationTimes out;
    const std::uint64_t whole =
        channels_begun.load(std::memory_order_relaxed) & channels_ended.load(std::memory_order_relaxed);
    out.channels_timed = static_cast<std::uint32_t>(std::popcount(whole));
    out.begin_gpu_ns = begin_gpu_ns.load(std::memory_order_relaxed);
    out.first_end_gpu_ns = first_end_gpu_ns.load(std::memory_order_relaxed);
    out.end_gpu_ns = end_gpu_ns.load(std::memory_order_relaxed);
    out.proxies = proxies_ended.load(std::memory_order_relaxed);
    out.proxy_begin_ns = proxy_begin_ns.load(std::memory_order_relaxed);
    out.proxy_end_ns = proxy_end_ns.load(std::memory_order_relaxed);
    return out;
  }
};

/// While it exists the slot of a handle's operation is not reused; empty if the operation is past.
class Operations::Use {
 public:
  Use(Place* place, std::uint32_t generation) noexcept {
    if (place == nullptr) return;
    const std::uint64_t before = place->word.fetch_add(kUser, std::memory_order_acquire);
    if (generation_of(before) == generation && (before & kStateMask) == kOpen) {
      place_ = place;
    } else {
      place->word.fetch_sub(kUser, std::memory_order_release);
    }
  }
  ~Use() {
    if (place_ != nullptr) place_->word.fetch_sub(kUser, std::memory_order_release);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  explicit operator bool() const noexcept { return place_ != nullptr; }
  Place* operator->() const noexcept { return place_; }

 private:
  Place* place_ = nullptr;
};

Operations::Operations() : places_(std::make_unique<Place[]>(kPlaces)) { fresh_.reserve(kPlaces); }
Operations::~Operations() = default;

Operations::Place* Operations::place_of(Handle handle) noexcept {
  switch (handle.kind) {
    case HandleKind::operation:
    case HandleKind::channel:
    case HandleKind::proxy:
      return handle.index < kPlaces ? &places_[handle.index] : nullptr;
    case HandleKind::none:
    case HandleKind::call:
    case HandleKind::context:
      break;
  }
  return nullptr;
}

void* Operations::start(const OperationFacts& facts) noexcept {
  // The next slot is nearly always free; a few are tried, so that a blocked one is skipped.
  constexpr int kTries = 16;
  for (int i = 0; i < kTries; ++i) {
    const std::uint32_t index = next_.fetch_add(1, std::memory_order_relaxed) % kPlaces;
    Place& place = places_[index];
    std::uint64_t word = place.word.load(std::memory_order_relaxed);
    if ((word & (kStateMask | kUsersMask)) != kFree) continue;
    const std::uint32_t generation = generation_of(word);
    if (!place.word.compare_exchange_strong(word, word_of(generation, kFilling), std::memory_order_acquire))
      continue;
    place.facts = facts;
    place.reported = false;
    place.stopped.store(false, std::memory_order_relaxed);
    place.last_report_ns.store(facts.started_ns, std::memory_order_relaxed);
    for (auto* zero : {&place.channels_begun, &place.channels_ended, &place.end_gpu_ns})
      zero->store(0, std::memory_order_relaxed);
    for (auto* most : {&place.begin_gpu_ns, &place.first_end_gpu_ns})
      most->store(std::numeric_limits<std::uint64_t>::max(), std::memory_order_relaxed);
    place.proxies_begun.store(0, std::memory_order_relaxed);
    place.proxies_ended.store(0, std::memory_order_relaxed);
    place.proxy_begin_ns.store(std::numeric_limits<std::int64_t>::max(), std::memory_order_relaxed);
    place.proxy_end_ns.store(0, std::memory_order_relaxed);
    // Added, not stored: the holder of an outdated handle may be changing the user count of the same word.
    place.word.fetch_add(kOpen - kFilling, std::memory_order_release);
    return Handle{HandleKind::operation, 0, generation, index}.pack();
  }
  lost_.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

void Operations::stop(Handle operation) noexcept {
  const Use use(place_of(operation), operation.generation);
  if (use) use->stopped.store(true, std::memory_order_relaxed);
}

void* Operations::begin_channel(Handle operation, std::uint8_t channel, std::uint64_t gpu_ns,
                                std::int64_t host_ns) noexcept {
  const Use use(place_of(operation), operation.generation);
  if (!use || channel >= 64) return nullptr;
  lower(use->begin_gpu_ns, gpu_ns);
  raise(use->last_report_ns, host_ns);
  use->channels_begun.fetch_or(std::uint64_t{1} << channel, std::memory_order_relaxed);
  return Handle{HandleKind::channel, channel, operation.generation, operation.index}.pack();
}

void Operations::end_channel(Handle channel, std::uint64_t gpu_ns, std::int64_t host_ns) noexcept {
  const Use use(place_of(channel), channel.generation);
  if (!use || channel.channel >= 64) return;
  lower(use->first_end_gpu_ns, gpu_ns);
  raise(use->end_gpu_ns, gpu_ns);
  raise(use->last_report_ns, host_ns);
  use->channels_ended.fetch_or(std::uint64_t{1} << channel.channel, std::memory_order_relaxed);
}

void* Operations::begin_proxy(Handle operation, std::int64_t host_ns) noexcept {
  const Use use(place_of(operation), operation.generation);
  if (!use) return nullptr;
  lower(use->proxy_begin_ns, host_ns);
  raise(use->last_report_ns, host_ns);
  use->proxies_begun.fetch_add(1, std::memory_order_relaxed);
  return Handle{HandleKind::proxy, 0, operation.generation, operation.index}.pack();
}

void Operations::end_proxy(Handle proxy, std::int64_t host_ns) noexcept {
  const Use use(place_of(proxy), proxy.generation);
  if (!use) return;
  raise(use->proxy_end_ns, host_ns);
  raise(use->last_report_ns, host_ns);
  use->proxies_ended.fetch_add(1, std::memory_order_relaxed);
}

bool Operations::communicator_of(Handle handle, std::uint32_t& context) noexcept {
  const Use use(place_of(handle), handle.generation);
  if (use) context = use->facts.communicator;
  return static_cast<bool>(use);
}

std::size_t Operations::collect(Reader& reader, std::int64_t now_ns, std::int64_t timeout_ns) {
  fresh_.clear();
  std::size_t open = 0;
  for (std::uint32_t i = 0; i < kPlaces; ++i) {
    if ((places_[i].word.load(std::memory_order_acquire) & kStateMask) != kOpen) continue;
    ++open;
    if (!places_[i].reported) fresh_.push_back(i);
  }
  std::sort(fresh_.begin(), fresh_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return places_[a].facts.started_ns < places_[b].facts.started_ns;
  });
  for (const std::uint32_t i : fresh_) {
    reader.started(places_[i].facts);
    places_[i].reported = true;
  }
  if (open == 0) return 0;
  std::size_t remain = 0;
  for (std::uint32_t i = 0; i < kPlaces; ++i) {
    Place& place = places_[i];
    const std::uint64_t word = place.word.load(std::memory_order_acquire);
    if ((word & kStateMask) != kOpen || !place.reported) continue;
    const bool timed_out = now_ns - place.last_report_ns.load(std::memory_order_relaxed) >= timeout_ns;
    ++remain;
    if (!place.complete() && !timed_out) continue;
    // Closed first: with the next generation no thread becomes a user, and the data read here is complete. A
    // concurrent writer makes this fail; the next call collects the operation.
    std::uint64_t idle = word_of(generation_of(word), kOpen);
    if (!place.word.compare_exchange_strong(idle, word_of(generation_of(word) + 1, kFilling),
                                            std::memory_order_acq_rel))
      continue;
    reader.ended(place.facts, place.times());
    place.word.fetch_sub(kFilling - kFree, std::memory_order_release);
    --remain;
  }
  return remain;
}

}  // namespace shardscope::nccl_profiler
