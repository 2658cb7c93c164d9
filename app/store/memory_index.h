// Memory of one pool on one rank by category: at any time, its peaks, and stacked columns for a plot.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "app/store/store_rows.h"

namespace shardscope::store {

/// [Note: memory that adds up after a drop]
/// A pool's bytes at a time are the sum of the changes so far. Every event also carries the pool's bytes
/// after it; wherever the two begin to disagree because events are missing, a correction is inserted: bytes
/// that appeared go to `other` ("pool total minus what the arenas know"), bytes that went are taken from
/// `other`, then from the categories that come and go fastest. What of `other` is freed as another category
/// later was of that category. So categories always sum to the pool as the rank counted it, and no peak is
/// higher than what it counted.
class MemoryIndex {
 public:
  struct Change {
    std::int64_t at_ns = 0;
    std::int64_t delta = 0;  ///< bytes of the category, negative when freed
    std::int64_t after = 0;  ///< the pool's bytes after it, as the rank counted
    ev::MemoryCategory category{};
  };

  /// What an index must know to go on from a time.
  struct Keyframe {
    bool any = false;        ///< there was a change before; without one the rest means nothing
    std::int64_t at_ns = 0;  ///< of the last change
    CategoryBytes bytes{};
  };
  /// The highest instant of a few consecutive changes.
  struct Leaf {
    std::int64_t begin_ns = 0;  ///< of its first change; it reaches to the next leaf
    MemorySample highest;
  };

  MemoryIndex() = default;
  /// Goes on where another index was.
  explicit MemoryIndex(const Keyframe& from);
  /// The same, with the corrections that the other inserted in the stretch that follows; it inserts none
  /// itself.
  MemoryIndex(const Keyframe& from, std::span<const Change> corrections);
  [[nodiscard]] Keyframe keyframe() const;

  void push(const Change& change) { changes_.push_back(change); }
  void reserve(std::size_t changes) { changes_.reserve(changes_.size() + changes); }
  void gap() {
    resync_ = !changes_.empty();
    gap_at_ = changes_.size();
  }
  /// Orders what was pushed since the last call, inserts corrections, brings keyframes up to date.
  void settle();
  /// Forgets every change, but not the bytes they led to.
  void begin_next_stretch();
  /// What was inserted since the last begin_next_stretch().
  [[nodiscard]] std::span<const Change> corrections() const noexcept { return corrections_; }
  /// About `most` leaves over all changes.
  [[nodiscard]] std::vector<Leaf> leaves(std::size_t most) const;
  /// Categories that count as model state (see Store::model_state_peak).
  void set_model_state(const std::array<bool, ev::kMemoryCategoryCount>& counts);

  [[nodiscard]] bool empty() const noexcept { return changes_.empty(); }
  /// Changes of this stretch, corrections included.
  [[nodiscard]] std::size_t change_count() const noexcept { return changes_.size() - (has_base_ ? 1 : 0); }
  [[nodiscard]] std::size_t bytes() const noexcept;
  /// Adds the changes up to a time to `sample`, without what was before this stretch.
  void replay(std::int64_t at_ns, MemorySample& sample) const;
  [[nodiscard]] MemorySample at(std::int64_t at_ns) const;
  [[nodiscard]] std::optional<MemorySample> peak() const;
  [[nodiscard]] std::optional<MemorySample> model_state_peak() const;
  /// At each column the highest sample within it, or what was held when it began.
  void columns(std::int64_t begin_ns, std::int64_t end_ns, std::span<MemorySample> columns) const;

 private:
  static constexpr std::size_t kBlock = 64;  ///< changes per block, blocks per group
  struct Top {
    std::size_t index = 0;  ///< of the change after which it was reached
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
  bool has_base_ = false;     ///< the first change stands for all before this stretch
  std::int64_t base_ns_ = 0;  ///< when the last of them was
  bool books_ = true;
  std::array<bool, ev::kMemoryCategoryCount> counts_{};
  bool resync_ = false;            ///< events are missing before what follows
  std::size_t gap_at_ = 0;         ///< how many changes there were when events were found missing
  std::int64_t unattributed_ = 0;  ///< of `other`: put there by a correction
  std::int64_t mismatch_ = 0;      ///< last disagreement, and how often in a row it was the same
  int repeated_ = 0;
};

}  // namespace shardscope::store
