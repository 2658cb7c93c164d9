// Cache of data read from blocks, with a bound on memory; evicts entries not used lately.
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

  struct Held {
    std::shared_ptr<const void> value;
    /// Looked at since room was last made: spared once. A frame looks at thousands of values, over and over;
    /// putting them in order each time would cost more than drawing them.
    mutable bool used = false;
  };
  /// Null when it is not there; else valid until version() changes, and marked as used.
  [[nodiscard]] const Held* find(const Key& key);
  /// Adds or replaces a value; the pointer is valid as find()'s.
  const Held* put(const Key& key, std::shared_ptr<const void> value, std::size_t bytes);
  void clear();
  void set_limit(std::size_t bytes);
  /// Grows when an entry is removed and with invalidate(): while it is unchanged, found pointers are valid.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  void invalidate() noexcept { ++version_; }  ///< earlier results must be queried again
  /// Bytes held. At most the limit, plus the newest entry.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Entry {
    Key key;
    Held held;
    std::size_t bytes = 0;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept {
      const std::uint64_t mixed = (std::uint64_t{key.rank} << 32 | key.block) * 0x9E3779B97F4A7C15U;
      return (mixed ^ mixed >> 32) + key.part;
    }
  };
  void make_room();

  std::list<Entry> entries_;  ///< last put, or spared, first
  std::unordered_map<Key, std::list<Entry>::iterator, Hash> index_;
  std::uint64_t version_ = 1;
  std::size_t bytes_ = 0, limit_ = kDefaultBytes;
};

}  // namespace shardscope::store
