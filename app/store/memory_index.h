// Memory by category of one pool on one rank: at any time, its peaks, and stacked columns for a plot.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "app/store/store_rows.h"

namespace shardscope::store {

/// [Note: memory that adds up after a drop]
/// A pool's bytes at a time are the sum of the changes so far. Every event also has the pool's bytes
/// after it; where the two begin to differ because events are missing, a correction is inserted: additional
/// bytes go to `other` ("pool total minus what the arenas know"), missing bytes are subtracted from
/// `other`, then from the most volatile categories. When bytes of `other` are later freed as another
/// category, they are moved to that category. So categories always sum to the rank's own count, and no peak
/// exceeds it.
class MemoryIndex {
 public:
  struct Change {
    std::int64_t at_ns = 0;
    std::int64_t delta = 0;  ///< bytes of the category, negative when freed
    std::int64_t after = 0;  ///< the pool's bytes after it, as counted by the rank
    ev::MemoryCategory category{};
  };

  /// State from which an index can continue.
  struct Keyframe {
    bool any = false;        ///< whether there was a change before; else the rest is unused
    std::int64_t at_ns = 0;  ///< of the last change
    CategoryBytes bytes{};
  };
  /// The highest sample of a few consecutive changes.
  struct Leaf {
    std::int64_t begin_ns = 0;  ///< time of its first change; extends to the next leaf
    MemorySample highest;
  };

  MemoryIndex() = default;
  /// Continues another index.
  explicit MemoryIndex(const Keyframe& from);
  /// The same, with the corrections that the other index inserted in the events to come; this one inserts
  /// none.
  MemoryIndex(const Keyframe& from, std::span<const Change> corrections);
  [[nodiscard]] Keyframe keyframe() const;

  void push(const Change& change) { changes_.push_back(change); }
  void reserve(std::size_t changes) { changes_.reserve(changes_.size() + changes); }
  void gap() {
    resync_ = !changes_.empty();
    gap_at_ = changes_.size();
  }
  /// Sorts changes pushed since the last call, inserts corrections, updates the index.
  void settle();
  /// Removes every change, but keeps the bytes they add up to.
  void begin_next_stretch();
  /// Corrections inserted since the last begin_next_stretch().
  [[nodiscard]] std::span<const Change> corrections() const noexcept { return corrections_; }
  /// About `most` leaves over all changes.
  [[nodiscard]] std::vector<Leaf> leaves(std::size_t most) const;
  /// Categories that count as model state (see Store::model_state_peak).
  void set_model_state(const std::array<bool, ev::kMemoryCategoryCount>& counts);

  [[nodiscard]] bool empty() const noexcept { return changes_.empty(); }
  /// Changes since the last begin_next_stretch() or the keyframe, corrections included.
  [[nodiscard]] std::size_t change_count() const noexcept { return changes_.size() - (has_base_ ? 1 : 0); }
  [[nodiscard]] std::size_t bytes() const noexcept;
  /// Adds the changes up to a time to `sample`, without the state before the first of them.
  void replay(std::int64_t at_ns, MemorySample& sample) const;
  [[nodiscard]] MemorySample at(std::int64_t at_ns) const;
  [[nodiscard]] std::optional<MemorySample> peak() const;
  [[nodiscard]] std::optional<MemorySample> model_state_peak() const;
  /// For each column the highest sample within it, including the one at its begin.
  void columns(std::int64_t begin_ns, std::int64_t end_ns, std::span<MemorySample> columns) const;

 private:
  static constexpr std::size_t kBlock = 64;  ///< changes per block, blocks per group
  struct Top {
    std::size_t index = 0;  ///< of the change after which it occurred
    std::int64_t bytes = INT64_MIN;
    void take(std::size_t i, std::int64_t value) noexcept {
      if (value > bytes) *this = {i, value};
    }
    void take(const Top& top) noexcept { take(top.index, top.bytes); }
  };
  struct Block {
    CategoryBytes before{};  ///< categories before its first change
    Top total, model;
  };
  struct Group {
    Top total, model;
  };

  [[nodiscard]] CategoryBytes after(std::size_t index) const;
  [[nodiscard]] MemorySample sample(std::size_t index) const;
  [[nodiscard]] Top largest(std::size_t begin, std::size_t end) const;
  void correct(std::size_t old_size);
  void correct_first();
  [[nodiscard]] bool events_are_missing();
  [[nodiscard]] std::size_t counted_in_another_order(std::size_t index, std::int64_t total) const;
  void rebuild(std::size_t from);

  std::vector<Change> changes_;
  std::vector<std::int64_t> totals_;  ///< by change: the pool's bytes after it
  std::vector<Block> blocks_;
  std::vector<Group> groups_;
  std::size_t settled_ = 0;
  CategoryBytes running_{};  ///< after everything settled
  std::vector<Change> corrections_;
  bool has_base_ = false;     ///< the first change represents all before the keyframe
  std::int64_t base_ns_ = 0;  ///< time of the last of them
  bool books_ = true;
  std::array<bool, ev::kMemoryCategoryCount> counts_{};
  bool resync_ = false;            ///< events are missing before the next change
  std::size_t gap_at_ = 0;         ///< number of changes when the gap was found
  std::int64_t unattributed_ = 0;  ///< bytes of `other` that come from a correction
  std::int64_t mismatch_ = 0;      ///< last difference to the rank's count, and how often it repeated
  int repeated_ = 0;
};

}  // namespace shardscope::store
