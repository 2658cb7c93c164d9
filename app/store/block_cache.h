// What was read from blocks lately, within a bound on memory: the least recently used goes first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

namespace shardscope::store {

class BlockCache {
 public:
  struct Key {
    std::uint32_t rank = 0;
    std::uint32_t block = 0;
    std::uint8_t part = 0;  ///< of what the block holds
    friend bool operator==(const Key&, const Key&) = default;
  };
  static constexpr std::size_t kDefaultBytes = std::size_t{256} << 20;

  /// Null when it is not there.
  [[nodiscard]] std::shared_ptr<const void> find(const Key& key);
  void put(const Key& key, std::shared_ptr<const void> value, std::size_t bytes);
  void clear();
  void set_limit(std::size_t bytes);
  /// Grows with every put(), clear(), set_limit() and doubt(): as long as it does not, what was found is
  /// still here.
  void doubt() noexcept { ++changes_; }  ///< what was found must be asked for again
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
  /// Held now. At most the limit and the one that was put last.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Entry {
    Key key;
    std::shared_ptr<const void> value;
    std::size_t bytes = 0;
    std::uint64_t moved = 0;  ///< changes_ when it was moved to the front
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept {
      const std::uint64_t mixed = (std::uint64_t{key.rank} << 32 | key.block) * 0x9E3779B97F4A7C15U;
      return (mixed ^ mixed >> 32) + key.part;
    }
  };
  void make_room();

  std::list<Entry> entries_;  ///< most recently used first
  std::unordered_map<Key, std::list<Entry>::iterator, Hash> index_;
  std::uint64_t changes_ = 1;
  std::size_t bytes_ = 0, limit_ = kDefaultBytes;
};

}  // namespace shardscope::store
