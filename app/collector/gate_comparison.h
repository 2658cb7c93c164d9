// Whether ranks pass the same gates in the same order, from the `gate` events that they publish: a number
// must mean the same place on all of them, or a pause cannot be agreed on (gate.h, [Note: gates that
// differ]). Owns how texts call a gate, by the tables of the run. The collector's thread hands it each batch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "app/collector/gate_names.h"
#include "instrumentation/event.h"
#include "instrumentation/gate.h"
#include "instrumentation/run_tables.h"

namespace shardscope::collector {

/// Remembers the last few thousand gates; memory does not grow.
class GateComparison {
 public:
  /// A rank that passed another gate than one before it had, under the same number.
  struct Difference {
    std::uint32_t number = 0;
    struct Gate {
      std::uint32_t rank = 0, id = 0;
      instrumentation::GateKind kind{};
    };
    Gate one, other;
  };
  /// Takes a rank's events. Returns the first difference since the beginning or since alike_from(), once.
  [[nodiscard]] std::optional<Difference> add(std::uint32_t rank,
                                              std::span<const instrumentation::Event> events);
  /// For the user: which gate each of the two ranks passed.
  [[nodiscard]] std::string text_of(const Difference& difference) const;
  /// Tables of a rank: gates are called by their modules.
  void learn(const instrumentation::RunTables& tables) { names_.learn(tables); }
  [[nodiscard]] const GateNames& names() const noexcept { return names_; }
  /// Ranks number alike from behind this gate on.
  void alike_from(std::uint64_t number);
  /// A process begins to count anew. Modules keep their names.
  void restart() {
    gates_ = {};
    after_ = 0;
    returned_ = false;
  }

 private:
  struct Gate {
    std::uint32_t number = 0, rank = 0, id = 0;
    instrumentation::GateKind kind{};
    bool known = false;
  };
  static constexpr std::size_t kRemembered = 1U << 12;
  std::array<Gate, kRemembered> gates_;  ///< at its number modulo their count
  std::uint32_t after_ = 0;              ///< numbers up to this one are not compared
  bool returned_ = false;                ///< a difference
  GateNames names_;
};

}  // namespace shardscope::collector
