// A set of kinds of events.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "instrumentation/event.h"

namespace shardscope::store {

namespace ev = shardscope::instrumentation;

class KindSet {
 public:
  void add(ev::EventKind kind) noexcept { words_[word(kind)] |= bit(kind); }
  void remove(ev::EventKind kind) noexcept { words_[word(kind)] &= ~bit(kind); }
  void add(const KindSet& others) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= others.words_[i];
  }
  void keep_only(const KindSet& others) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= others.words_[i];
  }
  /// May be true for a kind of a newer program.
  [[nodiscard]] bool has(ev::EventKind kind) const noexcept { return (words_[word(kind)] & bit(kind)) != 0; }
  [[nodiscard]] bool empty() const noexcept { return (words_[0] | words_[1]) == 0; }

 private:
  [[nodiscard]] static std::size_t word(ev::EventKind kind) noexcept {
    return static_cast<std::size_t>(kind) / 64 % 2;
  }
  [[nodiscard]] static std::uint64_t bit(ev::EventKind kind) noexcept {
    return std::uint64_t{1} << static_cast<unsigned>(kind) % 64;
  }
  std::array<std::uint64_t, 2> words_{};
};

}  // namespace shardscope::store
