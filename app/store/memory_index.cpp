#include "app/store/memory_index.h"

#include <algorithm>
#include <numeric>

#include "app/store/merge_in_time.h"

namespace shardscope::store {
namespace {

using ev::MemoryCategory;
constexpr int kRepeatsThatProve = 4;
constexpr std::size_t kOutOfOrder = 5;

/// Categories in the order in which missing frees are most likely theirs: the most volatile first.
constexpr std::array<MemoryCategory, ev::kMemoryCategoryCount> kByVolatility = {
    MemoryCategory::other,         MemoryCategory::temporary,      MemoryCategory::activation,
    MemoryCategory::gather_buffer, MemoryCategory::param_gathered, MemoryCategory::grad_full,
    MemoryCategory::reduce_bucket, MemoryCategory::quantization,   MemoryCategory::swap_buffer,
    MemoryCategory::input,         MemoryCategory::grad_shard,     MemoryCategory::param_secondary,
    MemoryCategory::param_shard,   MemoryCategory::variance,       MemoryCategory::momentum,
    MemoryCategory::master_weight};

std::int64_t sum(const CategoryBytes& bytes) noexcept {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}
std::int64_t& of(CategoryBytes& bytes, MemoryCategory category) noexcept {
  return bytes[static_cast<std::size_t>(category) % ev::kMemoryCategoryCount];
}
std::int64_t of(const CategoryBytes& bytes, MemoryCategory category) noexcept {
  return bytes[static_cast<std::size_t>(category) % ev::kMemoryCategoryCount];
}

/// Change of each category of `bytes` for the pool to have `missing` more bytes.
CategoryBytes correction_of(const CategoryBytes& bytes, std::int64_t missing) noexcept {
  CategoryBytes delta{};
  std::int64_t left = missing;
  for (std::size_t c = 0; c < bytes.size(); ++c) {  // frees without an allocation
    if (bytes[c] >= 0) continue;
    delta[c] = -bytes[c];
    left -= delta[c];
  }
  if (left > 0) {
    of(delta, MemoryCategory::other) += left;
    return delta;
  }
  for (const MemoryCategory category : kByVolatility) {
    const std::int64_t taken =
        std::min(std::max<std::int64_t>(of(bytes, category) + of(delta, category), 0), -left);
    of(delta, category) -= taken;
    left += taken;
  }
  return delta;
}

}  // namespace

/// Threads may stamp their changes in another order than they were counted. Then a few changes from `index`
/// on, in some order, each continue from the pool bytes of the one before; the first from `total`. Returns
/// their number; 0 where there is no such order.
std::size_t MemoryIndex::counted_in_another_order(std::size_t index, std::int64_t total) const {
  const std::size_t most = std::min(kOutOfOrder, changes_.size() - index);
  for (std::size_t length = 2; length <= most; ++length) {
    const std::span window = std::span(changes_).subspan(index, length);
    std::array<bool, kOutOfOrder> taken{};
    std::int64_t counted = total;
    std::size_t in_order = 0;
    for (std::size_t i = 0; i < length; ++i) {
      if (taken[i] || window[i].after - window[i].delta != counted) continue;
      taken[i] = true;
      counted = window[i].after;
      if (++in_order == length) return length;
      i = SIZE_MAX;  // restart from the first
    }
  }
  return 0;
}

void MemoryIndex::correct_first() {
  const Change first = changes_.front();
  const std::int64_t known_before = first.after - first.delta;
  if (known_before <= 0) return;
  // Bytes allocated before the first received event.
  const Change before{
      .at_ns = first.at_ns, .delta = known_before, .after = known_before, .category = MemoryCategory::other};
  changes_.insert(changes_.begin(), before);
  corrections_.push_back(before);
  of(running_, before.category) += before.delta;
  ++gap_at_;
}

bool MemoryIndex::events_are_missing() {
  if (resync_) return true;
  // A single difference proves nothing unless events are known to be missing.
  const std::int64_t missing = changes_.back().after - sum(running_);
  repeated_ = missing != 0 && missing == mismatch_ ? repeated_ + 1 : 0;
  mismatch_ = missing;
  return repeated_ >= kRepeatsThatProve;
}

void MemoryIndex::correct(std::size_t old_size) {
  if (old_size == 0) correct_first();
  const bool missing = events_are_missing();
  if (!missing && unattributed_ == 0) return;
  CategoryBytes bytes = running_;  // before each of the new changes
  for (std::size_t i = old_size; i < changes_.size(); ++i)
    of(bytes, changes_[i].category) -= changes_[i].delta;
  std::int64_t total = sum(bytes);
  std::size_t explained = 0;  // changes before this index were only counted in another order
  std::vector<Change> out;
  out.reserve(changes_.size() - old_size);
  const auto insert = [&](std::int64_t at_ns, const CategoryBytes& delta) {
    for (const bool more : {false, true}) {  // decreases first: no intermediate sum is a peak
      for (std::size_t c = 0; c < delta.size(); ++c) {
        if (delta[c] == 0 || (delta[c] > 0) != more) continue;
        bytes[c] += delta[c];
        total += delta[c];
        out.push_back(
            {.at_ns = at_ns, .delta = delta[c], .after = total, .category = static_cast<MemoryCategory>(c)});
        corrections_.push_back(out.back());
      }
    }
    unattributed_ = std::clamp<std::int64_t>(unattributed_ + of(delta, MemoryCategory::other), 0,
                                             std::max<std::int64_t>(of(bytes, MemoryCategory::other), 0));
  };
  for (std::size_t i = old_size; i < changes_.size(); ++i) {
    const Change& change = changes_[i];
    if (missing && change.after != total + change.delta && i >= explained)
      explained = i + counted_in_another_order(i, total);
    if (missing && change.after != total + change.delta && i >= explained) {
      insert(change.at_ns, correction_of(bytes, change.after - change.delta - total));
      mismatch_ = 0;
      repeated_ = 0;
    }
    // Freed without a recorded allocation: it is among the bytes of unknown category.
    const std::int64_t short_of = -(of(bytes, change.category) + change.delta);
    if (const std::int64_t moved = std::min(short_of, unattributed_); moved > 0) {
      CategoryBytes delta{};
      of(delta, MemoryCategory::other) -= moved;
      of(delta, change.category) += moved;
      insert(change.at_ns, delta);
    }
    of(bytes, change.category) += change.delta;
    total += change.delta;
    out.push_back(change);
  }
  // Where the missing events are the latest, the next change still has to be corrected.
  resync_ = resync_ && gap_at_ >= changes_.size();
  running_ = bytes;
  changes_.resize(old_size);
  changes_.insert(changes_.end(), out.begin(), out.end());
}

void MemoryIndex::settle() {
  if (settled_ == changes_.size()) return;
  const auto time = [](const Change& c) { return c.at_ns; };
  const std::size_t old_size = settled_;
  for (std::size_t i = old_size; i < changes_.size(); ++i)
    of(running_, changes_[i].category) += changes_[i].delta;
  const std::size_t from = std::min(old_size, merge_in_time(changes_, old_size, time));
  if (books_) correct(old_size);  // corrections are inserted among the new changes
  rebuild(from);
  settled_ = changes_.size();
}

void MemoryIndex::rebuild(std::size_t from) {
  const std::size_t first_block = from / kBlock;
  CategoryBytes state{};
  if (first_block < blocks_.size()) {
    state = blocks_[first_block].before;
  } else if (first_block > 0) {
    state = after(first_block * kBlock - 1);
  }
  totals_.resize(changes_.size());
  blocks_.resize((changes_.size() + kBlock - 1) / kBlock);
  groups_.resize((blocks_.size() + kBlock - 1) / kBlock);
  std::int64_t total = sum(state);
  std::int64_t model = 0;
  for (std::size_t c = 0; c < state.size(); ++c) model += counts_[c] ? state[c] : 0;
  for (std::size_t b = first_block; b < blocks_.size(); ++b) {
    Block block{.before = state, .total = {}, .model = {}};
    const std::size_t end = std::min(changes_.size(), (b + 1) * kBlock);
    for (std::size_t i = b * kBlock; i < end; ++i) {
      const Change& change = changes_[i];
      of(state, change.category) += change.delta;
      total += change.delta;
      if (counts_[static_cast<std::size_t>(change.category) % counts_.size()]) model += change.delta;
      totals_[i] = total;
      block.total.take(i, total);
      block.model.take(i, model);
    }
    blocks_[b] = block;
  }
  for (std::size_t g = first_block / kBlock; g < groups_.size(); ++g) {
    Group group;
    for (std::size_t b = g * kBlock; b < std::min(blocks_.size(), (g + 1) * kBlock); ++b) {
      group.total.take(blocks_[b].total);
      group.model.take(blocks_[b].model);
    }
    groups_[g] = group;
  }
}

void MemoryIndex::set_model_state(const std::array<bool, ev::kMemoryCategoryCount>& counts) {
  if (counts == counts_) return;
  counts_ = counts;
  if (settled_ > 0) rebuild(0);
}

MemoryIndex::MemoryIndex(const Keyframe& from) {
  if (!from.any) return;
  running_ = from.bytes;
  // One empty change, earlier than all others, represents all before: the bytes before it are those
  // after them.
  changes_ = {{.at_ns = INT64_MIN, .delta = 0, .after = sum(running_), .category = MemoryCategory::other}};
  blocks_ = {{.before = running_, .total = {}, .model = {}}};
  has_base_ = true;
  base_ns_ = from.at_ns;
  settled_ = 1;
  rebuild(0);
}

MemoryIndex::MemoryIndex(const Keyframe& from, std::span<const Change> corrections) : MemoryIndex(from) {
  books_ = false;
  changes_.insert(changes_.end(), corrections.begin(), corrections.end());
}

MemoryIndex::Keyframe MemoryIndex::keyframe() const {
  Keyframe out;
  out.any = settled_ > 0;
  if (!out.any) return out;
  out.at_ns = change_count() == 0 ? base_ns_ : changes_.back().at_ns;
  out.bytes = running_;
  return out;
}

void MemoryIndex::begin_next_stretch() {
  corrections_.clear();
  if (change_count() == 0) return;
  const Keyframe now = keyframe();
  const std::array<bool, ev::kMemoryCategoryCount> counts = counts_;
  const bool resync = resync_, books = books_;
  const std::int64_t mismatch = mismatch_, unattributed = unattributed_;
  const int repeated = repeated_;
  *this = MemoryIndex(now);
  counts_ = counts;
  resync_ = resync;
  books_ = books;
  mismatch_ = mismatch;
  repeated_ = repeated;
  unattributed_ = unattributed;
  gap_at_ = changes_.size();
  rebuild(0);
}

std::vector<MemoryIndex::Leaf> MemoryIndex::leaves(std::size_t most) const {
  std::vector<Leaf> out;
  const std::size_t first = has_base_ ? 1 : 0;
  const std::size_t count = changes_.size() - first;
  if (count == 0) return out;
  const std::size_t each = (count + most - 1) / most;
  for (std::size_t i = first; i < changes_.size(); i += each) {
    const Top top = largest(i, std::min(i + each, changes_.size()));
    out.push_back({.begin_ns = changes_[i].at_ns, .highest = sample(top.index)});
  }
  return out;
}

std::size_t MemoryIndex::bytes() const noexcept {
  return changes_.capacity() * sizeof(Change) + totals_.capacity() * sizeof(std::int64_t) +
         blocks_.capacity() * sizeof(Block) + groups_.capacity() * sizeof(Group);
}

void MemoryIndex::replay(std::int64_t at_ns, MemorySample& sample) const {
  for (std::size_t i = has_base_ ? 1 : 0; i < changes_.size() && changes_[i].at_ns <= at_ns; ++i) {
    of(sample.bytes, changes_[i].category) += changes_[i].delta;
    sample.at_ns = std::max(sample.at_ns, changes_[i].at_ns);
  }
}

CategoryBytes MemoryIndex::after(std::size_t index) const {
  CategoryBytes state = blocks_[index / kBlock].before;
  for (std::size_t i = index / kBlock * kBlock; i <= index; ++i)
    of(state, changes_[i].category) += changes_[i].delta;
  return state;
}

MemorySample MemoryIndex::sample(std::size_t index) const {
  const bool base = has_base_ && index == 0;
  MemorySample sample{.at_ns = base ? base_ns_ : changes_[index].at_ns, .bytes = after(index)};
  // A category is below 0 where its allocation is missing; others then include bytes that are freed already.
  std::int64_t surplus = 0;
  for (std::int64_t& bytes : sample.bytes) {
    surplus -= std::min<std::int64_t>(bytes, 0);
    bytes = std::max<std::int64_t>(bytes, 0);
  }
  for (const MemoryCategory category : kByVolatility) {
    const std::int64_t taken = std::min(of(sample.bytes, category), surplus);
    of(sample.bytes, category) -= taken;
    surplus -= taken;
  }
  return sample;
}

MemorySample MemoryIndex::at(std::int64_t at_ns) const {
  const auto next = std::partition_point(changes_.begin(), changes_.end(),
                                         [&](const Change& c) { return c.at_ns <= at_ns; });
  if (next == changes_.begin()) return {.at_ns = at_ns};
  return sample(static_cast<std::size_t>(next - changes_.begin()) - 1);
}

std::optional<MemorySample> MemoryIndex::peak() const {
  if (settled_ == 0) return std::nullopt;
  Top top;
  for (const Group& group : groups_) top.take(group.total);
  return sample(top.index);
}

std::optional<MemorySample> MemoryIndex::model_state_peak() const {
  if (settled_ == 0) return std::nullopt;
  Top top;
  for (const Group& group : groups_) top.take(group.model);
  MemorySample peak = sample(top.index);
  for (std::size_t c = 0; c < peak.bytes.size(); ++c) {
    if (!counts_[c]) peak.bytes[c] = 0;
  }
  return peak;
}

MemoryIndex::Top MemoryIndex::largest(std::size_t begin, std::size_t end) const {
  Top top;
  while (begin < end) {
    if (begin % (kBlock * kBlock) == 0 && begin + kBlock * kBlock <= end) {
      top.take(groups_[begin / (kBlock * kBlock)].total);
      begin += kBlock * kBlock;
    } else if (begin % kBlock == 0 && begin + kBlock <= end) {
      top.take(blocks_[begin / kBlock].total);
      begin += kBlock;
    } else {
      top.take(begin, totals_[begin]);
      ++begin;
    }
  }
  return top;
}

void MemoryIndex::columns(std::int64_t begin_ns, std::int64_t end_ns, std::span<MemorySample> columns) const {
  const double width =
      static_cast<double>(end_ns - begin_ns) / static_cast<double>(std::max<std::size_t>(columns.size(), 1));
  const auto before = [&](std::int64_t at) { return [at](const Change& c) { return c.at_ns < at; }; };
  std::size_t next = static_cast<std::size_t>(
      std::partition_point(changes_.begin(), changes_.end(), before(begin_ns)) - changes_.begin());
  std::size_t sampled = SIZE_MAX;  // columns without a change repeat the sample before
  MemorySample last;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const auto from = begin_ns + static_cast<std::int64_t>(width * static_cast<double>(c));
    const auto to = begin_ns + static_cast<std::int64_t>(width * static_cast<double>(c + 1));
    const std::size_t first = next;
    // Gallop: the column's end is near when changes are sparse and far when they are dense.
    std::size_t step = 1;
    while (next + step < changes_.size() && changes_[next + step].at_ns < to) step *= 2;
    const auto limit = changes_.begin() + static_cast<std::ptrdiff_t>(std::min(next + step, changes_.size()));
    next = static_cast<std::size_t>(
        std::partition_point(changes_.begin() + static_cast<std::ptrdiff_t>(next), limit, before(to)) -
        changes_.begin());
    if (next == 0) {
      columns[c] = {.at_ns = from};
      continue;
    }
    Top top;
    if (first > 0) top.take(first - 1, totals_[first - 1]);  // bytes when the column begins
    top.take(largest(first, next));
    if (sampled != top.index) {
      last = sample(top.index);
      sampled = top.index;
    }
    columns[c] = last;
    columns[c].at_ns = std::max(last.at_ns, from);
  }
}

}  // namespace shardscope::store
