#include "app/store/recording_blocks.h"

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include "app/store/packed.h"
#include "app/store/recording.h"

namespace shardscope::store {
namespace {

class Rows final : public BlockRows {
 public:
  explicit Rows(std::shared_ptr<Database> database) : database_(std::move(database)) {}

  Chunk chunk(std::int64_t row) override {
    // Prepared when needed: a table may be damaged, and older recordings have no levels.
    if (!chunk_) chunk_.emplace(database_->prepare("SELECT bytes FROM chunks WHERE id = ?1"));
    const Done done(*chunk_);
    chunk_->bind(1, row);
    if (!chunk_->step()) throw std::runtime_error("is not in the recording any more");
    const std::span<const std::byte> bytes = chunk_->bytes(0);
    return Chunk::decode(bytes.data(), bytes.size());
  }

  std::vector<std::byte> page(std::int64_t row) override {
    if (!levels_) levels_.emplace(database_->prepare("SELECT bytes FROM levels WHERE id = ?1"));
    const Done done(*levels_);
    levels_->bind(1, row);
    if (!levels_->step()) throw std::runtime_error("are not in the recording");
    const std::span<const std::byte> bytes = levels_->bytes(0);
    return {bytes.begin(), bytes.end()};
  }

 private:
  /// A statement in the middle of its rows would hold a lock.
  struct Done {
    explicit Done(Statement& s) : statement(s) {}
    ~Done() { statement.reset(); }
    Done(const Done&) = delete;
    Done& operator=(const Done&) = delete;
    Statement& statement;
  };
  std::shared_ptr<Database> database_;
  std::optional<Statement> chunk_, levels_;
};

void verify_rows(Database& database) {
  Statement chunks = database.prepare("SELECT id, bytes FROM chunks ORDER BY id");
  while (chunks.step()) {
    const std::span<const std::byte> bytes = chunks.bytes(1);
    Chunk::verify(bytes.data(), bytes.size());
  }
  Statement levels = database.prepare("SELECT id, bytes FROM levels ORDER BY id");
  while (levels.step()) {
    const std::span<const std::byte> bytes = levels.bytes(1);
    verify_packed(bytes.data(), bytes.size());
  }
}

}  // namespace

std::unique_ptr<BlockRows> rows_of(std::shared_ptr<Database> database) {
  return std::make_unique<Rows>(std::move(database));
}

StoredBlocks read_blocks(Database& database, Verify verify) {
  StoredBlocks out;
  // From the index, which is small: the table's pages hold the events.
  std::vector<std::pair<std::int64_t, std::uint32_t>> rows;
  Statement ids = database.prepare("SELECT id, rank FROM chunks INDEXED BY chunks_by_time");
  while (ids.step()) rows.emplace_back(ids.integer(0), static_cast<std::uint32_t>(ids.integer(1)));
  std::sort(rows.begin(), rows.end());

  Statement stored = database.prepare("SELECT id, bytes FROM blocks ORDER BY id");
  std::set<std::uint32_t> ended;  // ranks whose last block was seen
  bool more = stored.step();
  for (const auto& [row, rank] : rows) {
    if (more && stored.integer(0) < row) throw std::runtime_error("a block has no events");
    if (!more || stored.integer(0) != row) {
      ended.insert(rank);
      out.rest.push_back(row);
      continue;
    }
    const std::span<const std::byte> bytes = stored.bytes(1);
    Block block = decode_block(bytes.data(), bytes.size());
    if (block.rank != rank || ended.contains(rank)) throw std::runtime_error("a block is not in its place");
    block.rows = {row};
    out.blocks.push_back(std::move(block));
    more = stored.step();
  }
  if (more) throw std::runtime_error("a block has no events");

  Statement tails = database.prepare("SELECT rank, bytes, levels FROM tails");
  while (tails.step()) {
    const std::span<const std::byte> bytes = tails.bytes(1), levels = tails.bytes(2);
    Block tail = decode_block(bytes.data(), bytes.size());
    tail.page.assign(levels.begin(), levels.end());
    (void)decode_page(tail.page.data(), tail.page.size());  // throws
    out.tails.insert_or_assign(tail.rank, std::move(tail));
  }
  if (verify == Verify::everything) verify_rows(database);
  return out;
}

}  // namespace shardscope::store
