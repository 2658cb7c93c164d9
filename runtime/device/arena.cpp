#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "instrumentation/emitter.h"
#include "runtime/device/arena_state.h"
#include "runtime/device/error.h"

namespace shardscope::device {
namespace {

std::string with_unit(std::size_t bytes) {
  static constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
  return text.data();
}

std::string breakdown_of(const std::array<std::size_t, instrumentation::kMemoryCategoryCount>& bytes) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return bytes[a] > bytes[b]; });
  std::string text;
  for (const std::size_t i : order) {
    if (!text.empty()) text += ", ";
    text += name_of(static_cast<instrumentation::MemoryCategory>(i));
    text += ' ' + with_unit(bytes[i]);
  }
  return text.empty() ? "nothing in use" : text;
}

}  // namespace

// ---- State -------------------------------------------------------------------------------------------

Arena::State::Pool& Arena::State::pool_for(std::size_t bytes, Stream& stream) {
  const bool small = bytes <= kSmallRequest;
  auto& slot = pools[{&stream, small}];
  if (!slot) {
    slot = std::make_unique<Pool>();
    slot->stream = &stream;
    slot->small = small;
  }
  return *slot;
}

Arena::State::Block* Arena::State::take(Pool& from, std::size_t bytes) {
  Block wanted;
  wanted.bytes = bytes;  // data is null, so among equal sizes the lowest address is found
  const auto found = from.free_blocks.lower_bound(&wanted);
  if (found == from.free_blocks.end()) return nullptr;
  Block* block = *found;
  auto node = from.free_blocks.extract(found);
  if (block->bytes > bytes) {
    auto rest = std::make_unique<Block>();
    rest->data = block->data + bytes;
    rest->bytes = block->bytes - bytes;
    rest->before = block;
    rest->after = block->after;
    rest->pool = &from;
    if (rest->after != nullptr) rest->after->before = rest.get();
    block->after = rest.get();
    block->bytes = bytes;
    node.value() = rest.get();
    from.free_blocks.insert(std::move(node));
    Block* key = rest.get();
    blocks.emplace(key, std::move(rest));
  }
  block->free = false;
  live.emplace(block->data, block);
  return block;
}

void Arena::State::add_segment(Pool& to, void* data, std::size_t bytes) {
  auto block = std::make_unique<Block>();
  block->data = static_cast<std::byte*>(data);
  block->bytes = bytes;
  block->pool = &to;
  to.free_blocks.insert(block.get());
  Block* key = block.get();
  blocks.emplace(key, std::move(block));
  reserved += bytes;
}

void Arena::State::give_back(Block* block) {
  block->free = true;
  const auto absorb = [&](Block* left, Block* right) {
    left->bytes += right->bytes;
    left->after = right->after;
    if (left->after != nullptr) left->after->before = left;
    blocks.erase(right);
  };
  if (Block* after = block->after; after != nullptr && after->free) {
    block->pool->free_blocks.erase(after);
    absorb(block, after);
  }
  if (Block* before = block->before; before != nullptr && before->free) {
    before->pool->free_blocks.erase(before);
    absorb(before, block);
    block = before;
  }
  block->pool->free_blocks.insert(block);
}

void Arena::State::account(instrumentation::EventKind kind, std::size_t bytes, MemoryTag tag) noexcept {
  auto& category = by_category[static_cast<std::size_t>(tag.category)];
  if (kind == instrumentation::EventKind::memory_alloc) {
    used += bytes;
    category += bytes;
    peak = std::max(peak, used);
  } else {
    used -= bytes;
    category -= bytes;
  }
  emit(kind, bytes, tag, used);
}

void Arena::State::emit(instrumentation::EventKind kind, std::size_t bytes, MemoryTag tag,
                        std::size_t used_then) const noexcept {
  if (!instrumentation::enabled(instrumentation::Detail::params)) return;
  // memory_free has the same fields.
  instrumentation::Event event = instrumentation::make<instrumentation::EventKind::memory_alloc>(
      {.pool = pool,
       .category = tag.category,
       .owner = tag.owner,
       .bytes = static_cast<std::int64_t>(bytes),
       .pool_bytes = static_cast<std::int64_t>(used_then)});
  event.kind = kind;
  instrumentation::emit(event);
}

// ---- Arena -------------------------------------------------------------------------------------------

Arena::Arena(instrumentation::MemoryPool pool) : state_(std::make_unique<State>(pool)) {}
Arena::~Arena() = default;

Buffer Arena::allocate(std::size_t bytes, MemoryTag tag, Stream& stream) {
  if (bytes == 0) return {};
  State& state = *state_;
  const std::size_t rounded = State::round_up(bytes, kAlignment);
  std::unique_lock lock(state.mutex);
  State::Pool& pool = state.pool_for(rounded, stream);
  State::Block* block = state.take(pool, rounded);
  // First a segment of regular size, then, near the limit, one for just this request, then again after
  // trimming idle segments.
  for (int attempt = 0; block == nullptr && attempt < 4; ++attempt) {
    if (attempt == 2) {
      lock.unlock();
      const std::size_t returned = trim();
      lock.lock();
      if (returned == 0) break;
    }
    std::size_t segment = State::round_up(rounded, State::kPage);
    if (attempt % 2 == 0) {
      segment = pool.small                       ? State::kSmallSegment
                : rounded < State::kLargeRequest ? State::kLargeSegment
                                                 : State::round_up(rounded, State::kLargeRounding);
    }
    if (state.limit != 0 && state.reserved + segment > state.limit) continue;
    if (void* data = raw_allocate(segment)) {
      state.add_segment(pool, data, segment);
      block = state.take(pool, rounded);
    }
  }
  if (block == nullptr) {
    const std::string limit = state.limit != 0 ? " of the limit of " + with_unit(state.limit) : std::string();
    throw BackendError(
        "allocate", 0,
        std::string(name_of(state.pool)) + " memory exhausted: asked for " + with_unit(bytes) + " (" +
            name_of(tag.category) + "), in use " + with_unit(state.used) + ", reserved " +
            with_unit(state.reserved) + limit + "; in use by category: " + breakdown_of(state.by_category) +
            ". Use a smaller micro-batch or bucket, a higher ZeRO stage or more ranks, or raise the limit",
        "device/arena");
  }
  state.account(instrumentation::EventKind::memory_alloc, rounded, tag);
  return Buffer(this, block->data, bytes, tag, &stream);
}

void Arena::free(void* data, std::size_t bytes, MemoryTag tag) noexcept {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  const auto found = state.live.find(data);
  if (found == state.live.end()) return;  // only after release_segments, which has reported it
  State::Block* block = found->second;
  state.live.erase(found);
  state.give_back(block);
  state.account(instrumentation::EventKind::memory_free, State::round_up(bytes, kAlignment), tag);
}

void Arena::retag(Buffer& buffer, MemoryTag tag) {
  if (!buffer || buffer.arena_ != this) return;
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  const std::size_t rounded = State::round_up(buffer.bytes_, kAlignment);
  state.account(instrumentation::EventKind::memory_free, rounded, buffer.tag_);
  state.account(instrumentation::EventKind::memory_alloc, rounded, tag);
  buffer.tag_ = tag;
}

void Arena::rebook(std::size_t bytes, MemoryTag from, MemoryTag to) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  state.account(instrumentation::EventKind::memory_free, bytes, from);
  state.account(instrumentation::EventKind::memory_alloc, bytes, to);
}

std::size_t Arena::trim() {
  State& state = *state_;
  const auto is_whole_segment = [](const State::Block* b) {
    return b->before == nullptr && b->after == nullptr;
  };
  std::vector<Stream*> owners;
  {
    const std::lock_guard lock(state.mutex);
    for (const auto& [key, pool] : state.pools) {
      if (std::any_of(pool->free_blocks.begin(), pool->free_blocks.end(), is_whole_segment)) {
        owners.push_back(pool->stream);
      }
    }
  }
  for (Stream* stream : owners) stream->synchronize();
  const std::lock_guard lock(state.mutex);
  std::size_t returned = 0;
  for (const auto& [key, pool] : state.pools) {
    // A segment that became free after the wait for its stream is kept until the next trim.
    if (std::find(owners.begin(), owners.end(), pool->stream) == owners.end()) continue;
    for (auto it = pool->free_blocks.begin(); it != pool->free_blocks.end();) {
      State::Block* block = *it;
      if (!is_whole_segment(block)) {
        ++it;
        continue;
      }
      it = pool->free_blocks.erase(it);
      raw_free(block->data, block->bytes);
      returned += block->bytes;
      state.reserved -= block->bytes;
      state.blocks.erase(block);
    }
  }
  return returned;
}

void Arena::release_segments() noexcept {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (!state.live.empty()) {
    std::fprintf(stderr, "shardscope: %zu buffers outlive their %s arena (%s)\n", state.live.size(),
                 name_of(state.pool), breakdown_of(state.by_category).c_str());
  }
  for (const auto& [key, block] : state.blocks) {
    if (block->before != nullptr) continue;  // not the head of its segment
    std::size_t bytes = 0;
    for (const State::Block* b = block.get(); b != nullptr; b = b->after) bytes += b->bytes;
    raw_free(block->data, bytes);
  }
  state.live.clear();
  state.pools.clear();
  state.blocks.clear();
  state.reserved = 0;
}

void Arena::emit_used() const noexcept {
  const std::lock_guard lock(state_->mutex);
  std::size_t total = 0;
  for (std::size_t i = 0; i < state_->by_category.size(); ++i) {
    const std::size_t bytes = state_->by_category[i];
    if (bytes == 0) continue;
    total += bytes;
    state_->emit(instrumentation::EventKind::memory_alloc, bytes,
                 {static_cast<instrumentation::MemoryCategory>(i)}, total);
  }
}

std::size_t Arena::used_bytes() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->used;
}
std::size_t Arena::peak_bytes() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->peak;
}
std::size_t Arena::used_bytes(instrumentation::MemoryCategory category) const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->by_category[static_cast<std::size_t>(category)];
}
std::size_t Arena::reserved_bytes() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->reserved;
}
instrumentation::MemoryPool Arena::pool() const noexcept { return state_->pool; }
void Arena::set_limit(std::size_t bytes) noexcept {
  const std::lock_guard lock(state_->mutex);
  state_->limit = bytes;
}
std::size_t Arena::limit_bytes() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->limit;
}
std::string Arena::breakdown() const {
  const std::lock_guard lock(state_->mutex);
  return breakdown_of(state_->by_category);
}

// ---- Buffer ------------------------------------------------------------------------------------------

Buffer::Buffer(Arena* arena, void* data, std::size_t bytes, MemoryTag tag, Stream* stream)
    : arena_(arena), data_(data), bytes_(bytes), tag_(tag), stream_(stream) {}

Buffer::Buffer(Buffer&& other) noexcept
    : arena_(std::exchange(other.arena_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      tag_(other.tag_),
      stream_(std::exchange(other.stream_, nullptr)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    reset();
    arena_ = std::exchange(other.arena_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    tag_ = other.tag_;
    stream_ = std::exchange(other.stream_, nullptr);
  }
  return *this;
}

Buffer::~Buffer() { reset(); }

void Buffer::reset() {
  if (arena_ != nullptr && data_ != nullptr) arena_->free(data_, bytes_, tag_);
  arena_ = nullptr;
  data_ = nullptr;
  bytes_ = 0;
  stream_ = nullptr;
}

}  // namespace shardscope::device
