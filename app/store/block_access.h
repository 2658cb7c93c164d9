// Reads blocks on demand: from a recording or from memory, through a cache, and within the time budget of a
// frame.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/store/block.h"
#include "app/store/block_cache.h"
#include "app/store/chunk.h"
#include "app/store/spill_file.h"

namespace shardscope::store {

/// A row that existed when the recording was opened is missing.
class RowMissing : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A recording's rows. All throw std::runtime_error naming what is damaged.
class BlockRows {
 public:
  virtual ~BlockRows() = default;
  [[nodiscard]] virtual Chunk chunk(std::int64_t row, Chunk::Part part) = 0;
  [[nodiscard]] virtual std::vector<std::byte> page(std::int64_t row) = 0;
  /// Never empty: a row without them is damaged.
  [[nodiscard]] virtual std::vector<std::byte> statuses(std::int64_t row) = 0;
  /// One row of the tile that ends with the block of row `row`; `tile_row`: tile_row(). Empty when it is not
  /// there.
  [[nodiscard]] virtual std::vector<std::byte> tile(std::int64_t row, std::uint32_t tile_row) = 0;
  /// Whether the recorder, which goes on, has deleted since then what a rank's chunk `sequence` is in: then a
  /// missing row is no damage.
  [[nodiscard]] virtual bool was_deleted(std::uint32_t rank, std::uint64_t sequence) = 0;
};

class BlockAccess {
 public:
  // Inputs for decoding the events of every rank.
  std::vector<std::uint32_t> parents;  ///< by module
  std::array<bool, ev::kMemoryCategoryCount> model_state{};
  ParamState initial;  ///< of a parameter before its first change

  /// Most events of a rank whose blocks a view reads for the spans themselves; all of it must fit the
  /// cache.
  std::size_t most_in_view = std::size_t{1} << 16;

  void set_rows(std::unique_ptr<BlockRows> rows) { rows_ = std::move(rows); }
  BlockAccess() { share_cache(); }
  void set_ranks(std::size_t ranks);  ///< how many there are
  [[nodiscard]] std::size_t ranks() const noexcept { return ranks_; }
  void set_cache_bytes(std::size_t bytes);  ///< bound on cached data
  [[nodiscard]] std::size_t cache_bytes() const noexcept { return cache_.bytes() + states_cache_.bytes(); }
  /// BlockCache::version() of pages.
  [[nodiscard]] std::uint64_t page_version() const noexcept { return cache_.version(); }

  /// Bounds on the memory of a live run, however long it gets; nullopt: everything is kept in memory.
  std::optional<Store::Bounds> bounds;
  /// Bytes over all ranks, kept up by them: in blocks that can be spilled, and of what is kept beside them.
  std::size_t packed_bytes = 0, index_bytes = 0;
  [[nodiscard]] std::uint64_t spilled_bytes() const noexcept { return spill_.bytes(); }
  /// Moves the block's packed data to the temporary file. False when that cannot be written.
  [[nodiscard]] bool spill(Block& block);
  /// The block is evicted.
  void forget(const Block& block);
  /// The data in memory or in the temporary file; empty: in neither. Throws std::runtime_error.
  [[nodiscard]] std::vector<std::byte> packed(const std::vector<std::byte>& held,
                                              const SpillFile::Place& spilled) const;

  /// From now on Read::if_time may take about this long in all, but reads one block at least; nullopt: no
  /// limit. What would likely take longer is not begun. Only the reading counts: who draws a view of many
  /// blocks for longer than this would else read one block in each frame. Where everything looked at was
  /// looked at under the limit before, most of it need not be drawn again: then reading may go on until all
  /// the looking takes as long as `frame`. Where it is new it gets what drawing will likely leave of `frame`,
  /// unless that is 0.
  void limit(std::optional<std::chrono::nanoseconds> time, std::chrono::nanoseconds frame);
  /// What is looked at, as far as it matters to whether it is drawn again.
  struct ShownRange {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint64_t revision = 0;
    friend bool operator==(const ShownRange&, const ShownRange&) = default;
  };
  /// It is looked at while this lives.
  class BudgetedRead {
   public:
    BudgetedRead(BlockAccess& access, const ShownRange& range) : access_(access) {
      if (access.left_) access.begin_read(range);
    }
    ~BudgetedRead() {
      if (access_.left_) access_.looked_ += std::chrono::steady_clock::now() - access_.looking_since_;
    }
    BudgetedRead(const BudgetedRead&) = delete;
    BudgetedRead& operator=(const BudgetedRead&) = delete;

   private:
    BlockAccess& access_;
  };
  /// Whether Read::if_time may find time to read anything; notes that it was wanted where not.
  [[nodiscard]] bool has_time();
  /// Number of reads that Read::if_time denied; a caller compares it before and after.
  [[nodiscard]] std::uint64_t denied() const noexcept { return denied_; }
  /// Whether a read was denied since the last limit().
  [[nodiscard]] bool short_of_time() const noexcept { return short_of_time_ || packed_left_; }

  enum class Read : std::uint8_t { always, if_time, never };
  /// How much of a page is kept: of hundreds of blocks in view all of it would not fit the cache.
  enum class Detail : std::uint8_t { medium, full };
  static constexpr std::size_t kDetails = 2;
  /// Buckets of a medium page are 2^kMediumFiner times as narrow as those of a block; kMediumBuckets: most of
  /// a row.
  static constexpr unsigned kMediumFiner = 3;
  static constexpr std::size_t kMediumBuckets = kBlockBuckets << kMediumFiner;
  /// Null when it is damaged, which is then noted in the block and in problems(), when its events were not
  /// kept, or when there is no time to read it. `index`: of the block in its rank.
  [[nodiscard]] std::shared_ptr<const RankState> state(Block& block, std::uint32_t index, RankState::For part,
                                                       Read read);
  /// Whether state() has nothing to read: it did before, or the block cannot be read.
  [[nodiscard]] bool is_read(const Block& block, std::uint32_t index, RankState::For part);
  /// A page, null likewise; valid until page_version() changes.
  [[nodiscard]] const BlockCache::Held* read_page(Block& block, std::uint32_t index, Detail detail,
                                                  Read read);
  /// The same where it was read before; else null.
  [[nodiscard]] const BlockCache::Held* known_page(const Block& block, std::uint32_t index, Detail detail);
  /// Decodes a packed block; one that is damaged comes back as such, with its origin alone. Nothing: there is
  /// no time.
  [[nodiscard]] std::optional<Block> unpack(PackedBlock& packed, Read read);
  struct TileRead {
    const BlockCache::Held* held = nullptr;  ///< a DensityPyramid; null: not there, or no time
    bool stored = false;                     ///< it is there
  };
  /// Row `row` of the rank's tile number `tile`, whose last block is `last`; what there is time for. One that
  /// is damaged is not there: its blocks have the same.
  [[nodiscard]] TileRead read_tile(const Block& last, std::uint32_t tile, std::uint32_t row);
  [[nodiscard]] const std::vector<std::string>& problems() const noexcept { return problems_; }
  /// Blocks that could not be read.
  struct Damage {
    std::uint32_t rank = 0;
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint64_t events = 0;
    bool deleted = false;  ///< by the recorder, within its limits: no problem
  };
  [[nodiscard]] const std::vector<Damage>& damage() const noexcept { return damage_; }

 private:
  /// What was read lately took about this long; of pages and of spans, which differ much.
  struct Pace {
    std::chrono::nanoseconds each{0};
    void took(std::chrono::nanoseconds time) noexcept { each += (time - each) / 4; }
  };
  /// Measures a read where there is a limit.
  class Measured;
  [[nodiscard]] bool may_read(const Pace& pace);
  /// As may_read(), within the time for reading alone: what looks at nothing new has no more of it.
  [[nodiscard]] bool may_unpack();
  [[nodiscard]] std::chrono::nanoseconds time_left() const;
  void begin_read(const ShownRange& range);
  /// The looking since the last limit() is over.
  void note_drawing();
  [[nodiscard]] std::vector<Chunk> chunks(const Block& block, Chunk::Part part);
  [[nodiscard]] std::vector<ParamState> statuses(const Block& block);
  void damaged(Block& block, const std::string& why);
  /// A row of it is not there any more: as damaged(), unless its recorder has let it go.
  void missing(Block& block, const std::string& why);

  /// States get room for some questions about every rank. Who moves through time asks for ever others, and
  /// memory that was used before is much cheaper than new memory.
  void share_cache();

  std::size_t ranks_ = 0, cache_limit_ = BlockCache::kDefaultBytes;
  BlockCache cache_, states_cache_;
  std::unique_ptr<BlockRows> rows_;
  SpillFile spill_;
  std::optional<std::chrono::nanoseconds> left_;  ///< of the limit
  std::chrono::nanoseconds frame_{0};             ///< of the limit
  std::chrono::nanoseconds granted_{0};           ///< of the limit; less what is left_: spent on reading
  std::chrono::nanoseconds looked_{0};            ///< since it was set, reading included
  std::chrono::nanoseconds drawing_{0};           ///< of something new, without reading, as of late
  std::chrono::steady_clock::time_point looking_since_;
  std::vector<ShownRange> ranges_, ranges_before_;  ///< under this limit and the one before
  bool all_seen_before_ = true;
  std::uint64_t denied_ = 0;
  bool read_since_limit_ = false, short_of_time_ = false, packed_left_ = false;
  Pace pages_, states_, tiles_, packed_;
  std::vector<std::string> problems_;
  std::vector<Damage> damage_;
};

}  // namespace shardscope::store
