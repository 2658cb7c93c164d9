// Names of gates in texts, from the modules in the run's tables. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "instrumentation/event.h"
#include "instrumentation/run_tables.h"

namespace shardscope::collector {

class GateNames {
 public:
  /// Most modules whose names are stored; few models have more.
  static constexpr std::size_t kMostNames = std::size_t{1} << 16;

  void learn(const instrumentation::RunTables& tables);
  [[nodiscard]] std::string name(instrumentation::GateKind kind, std::uint32_t id) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace shardscope::collector
