#include "app/store/block_access.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "app/store/block_sum.h"
#include "app/store/tile.h"

namespace shardscope::store {
namespace {

/// A frame needs a few: the view, the whole run, and what is beside the view.
constexpr std::size_t kMostShownRanges = 64;

// Keys of a block's data in the cache: its page, or a part as RankState::For.
// Counted from 255 down: values of RankState::For are small numbers from 0 up, and both are keys of a cache.
constexpr std::uint8_t page_of(BlockAccess::Detail detail) noexcept {
  return static_cast<std::uint8_t>(255 - static_cast<std::uint8_t>(detail));
}
constexpr std::uint8_t kTilePart = page_of(static_cast<BlockAccess::Detail>(BlockAccess::kDetails));
constexpr std::uint8_t part_of(RankState::For part) noexcept { return static_cast<std::uint8_t>(part); }

/// The part of a chunk that is decoded.
// Chunks store changes of state apart from other events (column_decoder.cpp), so that either can be decoded
// alone.
constexpr Chunk::Part events_for(RankState::For part) noexcept {
  if (part == RankState::For::spans) return Chunk::Part::others;
  if (part == RankState::For::states) return Chunk::Part::states;
  return Chunk::Part::all;
}

/// Makes a medium page of a full one.
void drop_finer(BlockPage& page) {
  for (std::vector<DensityPyramid>& lane : page.lanes) {
    for (DensityPyramid& row : lane) row.drop_finer(BlockAccess::kMediumBuckets);
  }
  page.waits.drop_finer(BlockAccess::kMediumBuckets);
}

}  // namespace

void BlockAccess::limit(std::optional<std::chrono::nanoseconds> time, std::chrono::nanoseconds frame) {
  // Before the measurements of the last limit are reset.
  note_drawing();
  // A new range is drawn completely; the time for drawing is estimated from the frames before.
  // Never more than requested, and nothing where drawing alone fills the frame.
  if (time && frame.count() > 0) time = std::clamp(frame - drawing_, std::chrono::nanoseconds(0), *time);
  left_ = time;
  granted_ = time.value_or(std::chrono::nanoseconds(0));
  frame_ = frame;
  looked_ = std::chrono::nanoseconds(0);
  // Between two frames there may be a call without a limit and without shown ranges.
  if (!ranges_.empty()) {
    ranges_.swap(ranges_before_);
    ranges_.clear();
  }
  all_seen_before_ = true;
  // Each limit allows one read again, see may_read().
  read_since_limit_ = short_of_time_ = packed_left_ = false;
}

void BlockAccess::note_drawing() {
  if (!left_ || ranges_.empty() || all_seen_before_) return;
  // Time of queries without their reads: granted minus left is the time spent on reading.
  const std::chrono::nanoseconds took = looked_ - (granted_ - *left_);
  // Decays slowly, so that an expensive frame is still expected in the next ones.
  drawing_ = std::max(took, drawing_ - drawing_ / 8);
}

void BlockAccess::share_cache() {
  // A query over all ranks needs a state of each: with many ranks states get half of the cache, with few
  // an eighth.
  const std::size_t states = ranks_ > kRanksWithRoom ? cache_limit_ / 2 : cache_limit_ / 8;
  states_cache_.set_limit(states);
  cache_.set_limit(cache_limit_ - states);
}

void BlockAccess::set_cache_bytes(std::size_t bytes) {
  cache_limit_ = bytes;
  share_cache();
}

void BlockAccess::set_ranks(std::size_t ranks) {
  if (ranks == ranks_) return;
  ranks_ = ranks;
  share_cache();
}

// The time of a read counts against the limit even where it throws: hence the destructor.
class BlockAccess::Measured {
 public:
  Measured(BlockAccess& access, Pace& pace) : access_(access), pace_(pace) {
    // Without a limit the clock is not read.
    if (access.left_) begin_ = std::chrono::steady_clock::now();
  }
  ~Measured() {
    if (!access_.left_) return;
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin_;
    pace_.took(took);
    *access_.left_ -= took;
  }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

 private:
  BlockAccess& access_;
  Pace& pace_;
  std::chrono::steady_clock::time_point begin_;
};

void BlockAccess::begin_read(const ShownRange& range) {
  looking_since_ = std::chrono::steady_clock::now();
  if (!ranges_.empty() && ranges_.back() == range) return;
  const auto in = [&](const std::vector<ShownRange>& ranges) {
    return std::find(ranges.begin(), ranges.end(), range) != ranges.end();
  };
  if (in(ranges_)) return;
  // One new range makes the frame count as new.
  all_seen_before_ = all_seen_before_ && in(ranges_before_);
  // A range beyond counts as new in the next frame, and time is left for drawing it.
  if (ranges_.size() < kMostShownRanges) ranges_.push_back(range);
}

std::chrono::nanoseconds BlockAccess::time_left() const {
  if (!all_seen_before_ || ranges_.empty()) return *left_;
  // Nothing new is drawn: all of the frame that queries do not need may be spent on reading.
  return std::max(*left_, frame_ - looked_ - (std::chrono::steady_clock::now() - looking_since_));
}

bool BlockAccess::may_read(const Pace& pace) {
  if (!left_) return true;
  // At least one, so that a slow machine makes progress.
  if (!std::exchange(read_since_limit_, true)) return true;
  // After the first denial all reads are denied until the next limit, even faster ones.
  if (!short_of_time_ && pace.each < time_left()) return true;
  short_of_time_ = true;
  ++denied_;
  return false;
}

// A separate flag instead of short_of_time_: a denied unpacking does not deny other reads.
bool BlockAccess::may_unpack() {
  if (!left_ || !std::exchange(read_since_limit_, true) || packed_.each < *left_) return true;
  packed_left_ = true;
  ++denied_;
  return false;
}

// The first read after limit() is always allowed.
bool BlockAccess::has_time() {
  if (!left_ || !read_since_limit_ || (!short_of_time_ && time_left().count() > 0)) return true;
  short_of_time_ = true;
  return false;
}

void BlockAccess::damaged(Block& block, const std::string& why) {
  // First: `damaged` prevents reading and reporting the block again.
  block.damaged = true;
  // Pages of it may be in view and must be drawn again.
  cache_.invalidate();
  // Chunk::decode() begins its texts with "chunk: "; the chunk's number is added below.
  std::string text = why;
  if (text.rfind("chunk: ", 0) == 0) text = text.substr(7);
  problems_.push_back((block.rows.empty() ? "a block" : "chunk " + std::to_string(block.rows.front())) +
                      " (rank " + std::to_string(block.rank) + ", sequence " +
                      std::to_string(block.sequence) + "): " + text + "; its " +
                      std::to_string(block.events) + " events are shown as a gap");
  damage_.push_back(
      {.rank = block.rank, .begin_ns = block.begin_ns, .end_ns = block.end_ns, .events = block.events});
}

void BlockAccess::missing(Block& block, const std::string& why) {
  if (rows_ == nullptr || !rows_->was_deleted(block.rank, block.sequence)) return damaged(block, why);
  block.sum = true;  // its figures are right, and all that is left
  cache_.invalidate();
  damage_.push_back({.rank = block.rank,
                     .begin_ns = block.begin_ns,
                     .end_ns = block.end_ns,
                     .events = block.events,
                     .deleted = true});
}

bool BlockAccess::spill(Block& block) {
  // Computed before and after: a move that fails halfway leaves packed_bytes correct.
  const std::size_t before = block.packed_bytes();
  // Bytes in memory are freed only when the file has them.
  const auto move = [&](std::vector<std::byte>& bytes, SpillFile::Place& to) {
    if (bytes.empty()) return true;
    const std::optional<SpillFile::Place> place = spill_.put(bytes);
    if (!place) return false;
    to = *place;
    std::vector<std::byte>().swap(bytes);  // frees the memory; assigning an empty list would not
    return true;
  };
  // && stops at the first that does not fit: the rest stays in memory, and the places of the moved ones are
  // set.
  bool all = move(block.chunk, block.spilled.chunk) && move(block.page, block.spilled.page) &&
             move(block.statuses, block.spilled.statuses);
  for (TileRow& row : block.tile) all = all && move(row.bytes, row.spilled);
  packed_bytes -= before - block.packed_bytes();
  return all;
}

// Places with 0 bytes are ignored by SpillFile.
void BlockAccess::forget(const Block& block) {
  packed_bytes -= block.packed_bytes();
  spill_.drop(block.spilled.chunk);
  spill_.drop(block.spilled.page);
  spill_.drop(block.spilled.statuses);
  for (const TileRow& row : block.tile) spill_.drop(row.spilled);
}

std::vector<std::byte> BlockAccess::packed(const std::vector<std::byte>& held,
                                           const SpillFile::Place& spilled) const {
  return spilled.bytes != 0 ? spill_.get(spilled) : held;
}

// Looked up in memory, then in the temporary file, then in the recording.
std::vector<Chunk> BlockAccess::chunks(const Block& block, Chunk::Part part) {
  std::vector<Chunk> out;
  if (!block.chunk.empty()) {
    out.push_back(Chunk::decode(block.chunk.data(), block.chunk.size(), part));
    return out;
  }
  if (block.spilled.chunk.bytes != 0) {
    const std::vector<std::byte> bytes = spill_.get(block.spilled.chunk);
    out.push_back(Chunk::decode(bytes.data(), bytes.size(), part));
    return out;
  }
  if (rows_ == nullptr) throw std::runtime_error("its events are not there");
  // A damaged file may have another chunk under this id.
  for (const std::int64_t row : block.rows) {
    out.push_back(rows_->chunk(row, part));
    if (out.back().rank != block.rank) throw std::runtime_error("holds events of another rank");
  }
  if (!out.empty() && (out.front().sequence != block.sequence)) {
    throw std::runtime_error("is not the chunk that its block is of");
  }
  return out;
}

const BlockCache::Held* BlockAccess::known_page(const Block& block, std::uint32_t index, Detail detail) {
  return block.damaged || block.sum ? nullptr : cache_.find({block.rank, index, page_of(detail)});
}

const BlockCache::Held* BlockAccess::read_page(Block& block, std::uint32_t index, Detail detail, Read read) {
  if (block.damaged || block.sum || read == Read::never || (read == Read::if_time && !may_read(pages_)))
    return nullptr;
  // From here on time counts, including decoding.
  const Measured measured(*this, pages_);
  try {
    const auto page = std::make_shared<BlockPage>();
    if (!block.page.empty()) {
      *page = decode_page(block.page.data(), block.page.size());
    } else if (block.spilled.page.bytes != 0) {
      const std::vector<std::byte> bytes = spill_.get(block.spilled.page);
      *page = decode_page(bytes.data(), bytes.size());
    } else {
      if (rows_ == nullptr || block.rows.empty()) throw std::runtime_error("its page is not there");
      const std::vector<std::byte> bytes = rows_->page(block.rows.front());
      *page = decode_page(bytes.data(), bytes.size());
    }
    // After decoding: the page is read completely and kept in part, because hundreds of them are in view.
    if (detail == Detail::medium) drop_finer(*page);
    return cache_.put({block.rank, index, page_of(detail)}, page, page->bytes());
    // Before runtime_error, its base class: a row that the recorder deleted is no damage.
  } catch (const RowMissing& error) {
    missing(block, std::string("its levels of detail: ") + error.what());
    return nullptr;
  } catch (const std::runtime_error& error) {
    damaged(block, std::string("its levels of detail: ") + error.what());
    return nullptr;
  }
}

std::optional<Block> BlockAccess::unpack(PackedBlock& packed, Read read) {
  if (read == Read::never || (read == Read::if_time && !may_unpack())) return std::nullopt;
  const Measured measured(*this, packed_);
  Block block;
  try {
    block = decode_block(packed.bytes.data(), packed.bytes.size());
    // A sum's events are deleted, and so is the data that only serves to decode them.
    if (packed.sum) begin_sum(block);
  } catch (const std::runtime_error& error) {
    // Half-decoded fields must not be shown: only the origin is known to be right.
    block = Block();
    static_cast<BlockOrigin&>(block) = packed.origin;
    // Unpacked at every access, reported once.
    if (!std::exchange(packed.damaged, true))
      damaged(block, std::string("its levels of detail: ") + error.what());
  }
  block.damaged = packed.damaged;
  block.sum = packed.sum;
  if (!packed.sum) block.rows = {packed.row};
  return block;
}

BlockAccess::TileRead BlockAccess::read_tile(const Block& last, std::uint32_t tile, std::uint32_t row) {
  // Rows of a tile ascend.
  const auto own = std::lower_bound(last.tile.begin(), last.tile.end(), row,
                                    [](const TileRow& r, std::uint32_t value) { return r.row < value; });
  const bool in_memory = own != last.tile.end() && own->row == row;
  if (!in_memory && (rows_ == nullptr || last.rows.empty())) return {};
  // The row's bits are below the tile's, so that no two rows of a rank have the same key.
  const BlockCache::Key key{last.rank, tile << kTileRowBits | row, kTilePart};
  if (const auto* known = cache_.find(key)) return {.held = known, .stored = true};
  if (!may_read(tiles_)) return {.held = nullptr, .stored = true};
  const Measured measured(*this, tiles_);
  try {
    std::vector<std::byte> read;
    const bool spilled = in_memory && own->spilled.bytes != 0;
    if (spilled) read = spill_.get(own->spilled);
    if (!in_memory) read = rows_->tile(last.rows.front(), row);
    const std::vector<std::byte>& bytes = in_memory && !spilled ? own->bytes : read;
    // The row has no bytes: its blocks are used.
    if (bytes.empty()) return {};
    const auto levels = std::make_shared<DensityPyramid>(decode_tile(bytes.data(), bytes.size()));
    return {.held = cache_.put(key, levels, sizeof *levels + levels->bytes()), .stored = true};
    // Not damaged(): the blocks of the tile have the same data and stay readable.
  } catch (const std::runtime_error& error) {
    problems_.push_back("levels of detail of rank " + std::to_string(last.rank) + " up to " +
                        (last.rows.empty() ? "sequence " + std::to_string(last.sequence)
                                           : "chunk " + std::to_string(last.rows.front())) +
                        ": " + error.what() + "; finer ones are read instead");
    return {};
  }
}

std::vector<ParamState> BlockAccess::statuses(const Block& block) {
  if (!block.statuses.empty()) return decode_statuses(block.statuses.data(), block.statuses.size());
  if (block.spilled.statuses.bytes != 0) {
    const std::vector<std::byte> bytes = spill_.get(block.spilled.statuses);
    return decode_statuses(bytes.data(), bytes.size());
  }
  if (rows_ == nullptr || block.rows.empty()) throw std::runtime_error("its statuses are not there");
  const std::vector<std::byte> bytes = rows_->statuses(block.rows.front());
  return decode_statuses(bytes.data(), bytes.size());
}

bool BlockAccess::is_read(const Block& block, std::uint32_t index, RankState::For part) {
  BlockCache& cache = part == RankState::For::states ? states_cache_ : cache_;
  return block.damaged || block.sum || cache.find({block.rank, index, part_of(part)}) != nullptr;
}

std::shared_ptr<const RankState> BlockAccess::state(Block& block, std::uint32_t index, RankState::For part,
                                                    Read read) {
  const BlockCache::Key key{block.rank, index, part_of(part)};
  // States have a cache of their own, or moving through time would evict every page.
  BlockCache& cache = part == RankState::For::states ? states_cache_ : cache_;
  if (const auto* known = cache.find(key)) return std::static_pointer_cast<const RankState>(known->value);
  if (block.damaged || block.sum || (read == Read::if_time && !may_read(states_))) return nullptr;
  const Measured measured(*this, states_);
  try {
    // Spans alone need no parameter status before them.
    const bool with_statuses = part == RankState::For::states || part == RankState::For::views;
    std::vector<ParamState> before;
    if (with_statuses) before = statuses(block);
    if (block.damaged || block.sum) return nullptr;
    std::vector<Chunk> chunks = this->chunks(block, events_for(part));
    // The keyframe has the spans open at the block's begin; without it their ends would have no
    // begin.
    auto state = std::make_shared<RankState>(block.begin, std::move(before), block.corrections, part);
    state->set_stage(model_state, initial);
    std::optional<Missing> missing;
    if (block.gap) missing = missing_of(block);
    // With several chunks the first one's size would be wrong.
    if (chunks.size() == 1) state->reserve(chunks.front().events);
    for (Chunk& chunk : chunks) {
      state->add(chunk.events, chunk.clock_offset_ns, parents, missing);
      Chunk::recycle(std::move(chunk));
    }
    // No event follows: events may be missing after the last one.
    state->end_missing(missing);
    state->settle();
    cache.put(key, state, state->bytes());
    return state;
  } catch (const RowMissing& error) {
    missing(block, error.what());
    return nullptr;
  } catch (const std::runtime_error& error) {
    damaged(block, error.what());
    return nullptr;
  }
}

}  // namespace shardscope::store
