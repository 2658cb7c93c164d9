#include "app/store/block_access.h"

#include <stdexcept>
#include <utility>

namespace shardscope::store {

void BlockAccess::limit(std::optional<std::chrono::nanoseconds> time) {
  until_.reset();
  if (time) until_ = std::chrono::steady_clock::now() + *time;
  read_since_limit_ = short_of_time_ = false;
}

bool BlockAccess::may_read() {
  if (!until_) return true;
  // One at least, so that a slow machine gets there as well.
  if (!std::exchange(read_since_limit_, true)) return true;
  if (std::chrono::steady_clock::now() < *until_) return true;
  short_of_time_ = true;
  return false;
}

void BlockAccess::damaged(Block& block, const std::string& why) {
  block.damaged = true;
  std::string text = why;
  if (text.rfind("chunk: ", 0) == 0) text = text.substr(7);
  problems_.push_back((block.rows.empty() ? "a block" : "chunk " + std::to_string(block.rows.front())) +
                      " (rank " + std::to_string(block.rank) + ", sequence " +
                      std::to_string(block.sequence) + "): " + text);
}

std::vector<Chunk> BlockAccess::chunks(const Block& block) {
  std::vector<Chunk> out;
  if (!block.chunk.empty()) {
    out.push_back(Chunk::decode(block.chunk.data(), block.chunk.size()));
    return out;
  }
  if (rows_ == nullptr) throw std::runtime_error("its events are not there");
  for (const std::int64_t row : block.rows) {
    out.push_back(rows_->chunk(row));
    if (out.back().rank != block.rank) throw std::runtime_error("holds events of another rank");
  }
  if (!out.empty() && (out.front().sequence != block.sequence)) {
    throw std::runtime_error("is not the chunk that its block is of");
  }
  return out;
}

bool BlockAccess::verify(Block& block) {
  if (block.damaged) return false;
  try {
    std::size_t events = 0;
    for (const Chunk& chunk : chunks(block)) events += chunk.events.size();
    if (events != block.events)
      throw std::runtime_error("holds another number of events than its block says");
    return true;
  } catch (const std::runtime_error& error) {
    damaged(block, error.what());
    return false;
  }
}

std::shared_ptr<const BlockPage> BlockAccess::page(Block& block, std::uint32_t index, Read read) {
  const BlockCache::Key key{block.rank, index, true};
  if (auto known = cache_.find(key)) return std::static_pointer_cast<const BlockPage>(std::move(known));
  if (block.damaged || (read == Read::if_time && !may_read())) return nullptr;
  try {
    std::shared_ptr<const BlockPage> page;
    if (!block.page.empty()) {
      page = std::make_shared<BlockPage>(decode_page(block.page.data(), block.page.size()));
    } else {
      if (rows_ == nullptr || block.rows.empty()) throw std::runtime_error("its page is not there");
      const std::vector<std::byte> bytes = rows_->page(block.rows.front());
      page = std::make_shared<BlockPage>(decode_page(bytes.data(), bytes.size()));
    }
    cache_.put(key, page, page->bytes());
    return page;
  } catch (const std::runtime_error& error) {
    damaged(block, std::string("its levels of detail: ") + error.what());
    return nullptr;
  }
}

std::shared_ptr<const RankState> BlockAccess::state(Block& block, std::uint32_t index, Read read) {
  const BlockCache::Key key{block.rank, index, false};
  if (auto known = cache_.find(key)) return std::static_pointer_cast<const RankState>(std::move(known));
  if (block.damaged || (read == Read::if_time && !may_read())) return nullptr;
  const std::shared_ptr<const BlockPage> page = this->page(block, index, Read::always);
  if (page == nullptr) return nullptr;
  try {
    const std::vector<Chunk> chunks = this->chunks(block);
    auto state = std::make_shared<RankState>(block.begin, page->statuses, &block.corrections);
    state->set_stage(model_state, initial);
    if (block.gap) state->gap();
    for (const Chunk& chunk : chunks) {
      for (const ev::Event& event : chunk.events) {
        state->add(event, static_cast<std::int64_t>(event.ticks) + chunk.clock_offset_ns, parents);
      }
    }
    state->settle();
    ++read_;
    cache_.put(key, state, state->bytes());
    return state;
  } catch (const std::runtime_error& error) {
    damaged(block, error.what());
    return nullptr;
  }
}

}  // namespace shardscope::store
