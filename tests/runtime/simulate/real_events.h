// Training on real ranks (threads with devices and communicators), each of whose threads emits into a ring of
// its own: what simulations and viewers are compared with.
#pragma once

#include <array>
#include <ostream>
#include <string>
#include <vector>

#include "tests/runtime/simulate/support.h"

namespace shardscope::simulate::testing {

struct RealCase {
  std::string name;
  std::string model = "mlp";
  std::uint32_t world = 1;
  Json config;
  std::uint32_t ranks_per_node = 8;
};

inline std::ostream& operator<<(std::ostream& out, const RealCase& c) { return out << c.name; }

/// Its model, with the blocks that its configuration recomputes marked.
[[nodiscard]] plan::ModelSpec model_of(const RealCase& c);

/// Events of one rank by the queue whose thread emitted them, in order; times in raw ticks.
using Queues = std::array<std::vector<Event>, instrumentation::kStreamCount>;

/// Of each rank, what each of its threads emitted during the steps.
[[nodiscard]] std::vector<Queues> real_run(const RealCase& c, std::int64_t steps);

}  // namespace shardscope::simulate::testing
