// Compares the `gate` events of all ranks: a gate's number must mean the same place on every rank, or a pause
// cannot be agreed on (gate.h, [Note: gates that differ]). Owns the gates' names, from the run's tables. The
// collector's thread passes it each batch.
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

/// Stores the last kRemembered gates; memory does not grow.
class GateComparison {
 public:
  /// Two ranks that passed different gates with the same number.
  struct Difference {
    std::uint32_t number = 0;
    struct Gate {
      std::uint32_t rank = 0, id = 0;
      instrumentation::GateKind kind{};
    };
    Gate one, other;
  };
  /// Adds a rank's events. Returns the first difference since the beginning or since alike_from(), once.
  [[nodiscard]] std::optional<Difference> add(std::uint32_t rank,
                                              std::span<const instrumentation::Event> events);
  /// For the user: which gate each of the two ranks passed.
  [[nodiscard]] std::string text_of(const Difference& difference) const;
  /// Reads the modules' names, which name gates, from a rank's tables.
  void learn(const instrumentation::RunTables& tables) { names_.learn(tables); }
  [[nodiscard]] const GateNames& names() const noexcept { return names_; }
  /// Gates after this number are compared again: from there on all ranks number alike.
  void alike_from(std::uint64_t number);
  /// A restarted process numbers its gates from the beginning. Modules keep their names.
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
  std::array<Gate, kRemembered> gates_;  ///< indexed by gate number modulo kRemembered
  std::uint32_t after_ = 0;              ///< numbers up to this one are not compared
  bool returned_ = false;                ///< a difference was returned
  GateNames names_;
};

}  // namespace shardscope::collector
