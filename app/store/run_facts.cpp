#include "app/store/run_facts.h"

#include "app/store/model_states.h"

namespace shardscope::store {

std::vector<std::uint32_t> module_parents(const ev::RunTables& tables) {
  std::vector<std::uint32_t> out(tables.modules.size(), ev::kNoId);
  for (const ev::ModuleInfo& module : tables.modules) {
    if (module.id < out.size()) out[module.id] = module.parent;
  }
  return out;
}

std::array<bool, ev::kMemoryCategoryCount> model_state_categories(std::int32_t stage) {
  std::array<bool, ev::kMemoryCategoryCount> out{};
  for (std::size_t c = 0; c < out.size(); ++c) {
    out[c] = is_model_state(static_cast<ev::MemoryCategory>(c), stage);
  }
  return out;
}

ParamState initial_state(std::int32_t stage) {
  ParamState out;
  // Below stage 3 parameters are never partitioned: without changes they are available.
  out.status = stage < 3 ? 2 : 0;
  out.cause = stage < 3 ? ev::StatusCause::persistent : ev::StatusCause::partition;
  out.since_ns = INT64_MIN;  // never
  return out;
}

}  // namespace shardscope::store
