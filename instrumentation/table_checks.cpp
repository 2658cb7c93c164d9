#include "instrumentation/table_checks.h"

#include <algorithm>
#include <cmath>

#include "instrumentation/wire.h"

namespace shardscope::instrumentation {

namespace {

// Tables come from another process, or from a file that may be damaged; accepted values are used as indices,
// multiplied and summed without further checks. So every number is bounded such that
//   elements x bytes of an element <= 2^50 x 2^6 = 2^56, and sums over 2^7 of these stay below 2^63,
// and every id is below the size of the list that it refers to.

/// Elements: sums and products with bytes per element stay far below 2^63.
constexpr std::int64_t kMostElems = std::int64_t{1} << 50;
constexpr std::uint32_t kMostElementBytes = 64;
constexpr std::size_t kMostDimensions = 16;

bool is_size(std::int64_t elems) noexcept { return elems >= 0 && elems <= kMostElems; }

/// Null if valid, else the problem as a static text for the message of the refusal. `at`: the index in its
/// list, to which its id must be equal.
const char* wrong_in(const ModuleInfo& module, std::size_t at, std::size_t params,
                     std::size_t models) noexcept {
  // Pre-order numbering: a parent comes before its children, so no cycle is possible.
  if (module.id != at) return "modules are not numbered in order";
  if (module.parent != kNoId && module.parent >= module.id)
    return "a module's parent does not come before it";
  if (module.model != 0 && module.model >= models) return "a module is of a model that is not there";
  const auto there = [&](std::uint32_t p) { return p < params; };
  if (!std::all_of(module.params.begin(), module.params.end(), there))
    return "a module names a parameter that is not there";
  return nullptr;
}

const char* wrong_in(const ParamInfo& param, std::size_t at, std::size_t modules) noexcept {
  if (param.id != at) return "parameters are not numbered in order";
  if (param.shape.size() > kMostDimensions) return "a parameter has more than 16 dimensions";
  if (!is_size(param.elems) || !is_size(param.shard_elems) || !is_size(param.padding_elems))
    return "a parameter's number of elements is out of range";
  const auto there = [&](std::uint32_t m) { return m < modules; };
  if (!std::all_of(param.modules.begin(), param.modules.end(), there))
    return "a parameter names a module that is not there";
  return nullptr;
}

/// A slice is `elems` elements of a rank's shard, in blocks of the parameter: each block_elems long, one
/// every stride_elems (both 0: one block). Its end must be representable: param_offset + (blocks - 1) x
/// stride + block.
const char* wrong_in(const SliceInfo& slice, const RunTables& tables) noexcept {
  if (slice.param >= tables.params.size() && slice.param != kNoId)
    return "a slice names a parameter that is not there";
  if (slice.rank >= tables.world) return "a slice names a rank that is not there";
  if (!is_size(slice.param_offset) || !is_size(slice.shard_offset) || !is_size(slice.elems) ||
      !is_size(slice.padding_elems))
    return "a slice's extent is out of range";
  if (slice.block_elems == 0 && slice.stride_elems == 0) return nullptr;
  if (!is_size(slice.block_elems) || !is_size(slice.stride_elems) || slice.block_elems < 1 ||
      slice.stride_elems < slice.block_elems)
    return "a slice's pieces overlap or have no length";
  // The last block may be shorter.
  const std::int64_t pieces = (slice.elems + slice.block_elems - 1) / slice.block_elems;
  if (pieces > 1 && slice.stride_elems > kMostElems / (pieces - 1)) return "a slice's extent is out of range";
  return nullptr;
}

const char* wrong_in(const GroupInfo& group, std::size_t at, std::uint32_t world) noexcept {
  if (group.id != at) return "groups are not numbered in order";
  if (group.purpose > GroupPurpose::expert) return "purpose of a group out of range";
  if (group.ranks.size() > world) return "a group has more ranks than the world";
  const auto there = [&](std::uint32_t rank) { return rank < world; };
  if (!std::all_of(group.ranks.begin(), group.ranks.end(), there))
    return "a group names a rank that is not there";
  return nullptr;
}

const char* wrong_in(const ParamGroupInfo& group, std::size_t params) noexcept {
  for (const double value : {group.lr, group.beta1, group.beta2, group.eps, group.weight_decay}) {
    if (!std::isfinite(value)) return "a setting of a parameter group is not a number";
  }
  const auto there = [&](std::uint32_t param) { return param < params; };
  if (!std::all_of(group.params.begin(), group.params.end(), there))
    return "a parameter group names a parameter that is not there";
  return nullptr;
}

/// Checks the fields of a rank that are not lists common to all ranks.
const char* wrong_in_own(const RunTables& t) noexcept {
  if (t.models.size() > wire::kMaxModels) return "more models than supported";
  for (std::size_t i = 0; i < t.models.size(); ++i) {
    if (t.models[i].id != i) return "models are not numbered in order";
  }
  if (t.groups.size() > wire::kMaxGroups) return "more groups than supported";
  for (std::size_t i = 0; i < t.groups.size(); ++i) {
    if (const char* wrong = wrong_in(t.groups[i], i, t.world)) return wrong;
  }
  const auto lane_there = [](const LaneName& lane) {
    return static_cast<std::uint8_t>(lane.lane) < kStreamCount;
  };
  if (t.lanes.size() > kStreamCount || !std::all_of(t.lanes.begin(), t.lanes.end(), lane_there))
    return "a name is of no lane";
  if (t.not_recorded.size() > wire::kMaxNotRecorded) return "more reasons than supported";
  return nullptr;
}

}  // namespace

const char* validate(const RunTables& t) noexcept {
  if (t.world < 1 || t.world > wire::kMaxWorld) return "world out of range";
  if (t.rank >= t.world) return "rank not below world";
  if (t.stage < 0 || t.stage > 3) return "ZeRO stage out of range";
  if (!is_size(t.elems)) return "the number of elements is out of range";
  if (t.param_bytes > kMostElementBytes || t.grad_bytes > kMostElementBytes ||
      t.master_bytes > kMostElementBytes)
    return "the bytes of an element are out of range";
  if (!std::isfinite(t.link_gbps) || !std::isfinite(t.link_latency_us))
    return "emulated link is not a number";
  if (const char* wrong = wrong_in_own(t)) return wrong;
  if (t.modules.size() > wire::kMaxModules) return "more modules than supported";
  if (t.params.size() > wire::kMaxParams) return "more parameters than supported";
  for (std::size_t i = 0; i < t.modules.size(); ++i) {
    if (const char* wrong = wrong_in(t.modules[i], i, t.params.size(), t.models.size())) return wrong;
  }
  for (std::size_t i = 0; i < t.params.size(); ++i) {
    if (const char* wrong = wrong_in(t.params[i], i, t.modules.size())) return wrong;
  }
  if (t.param_groups.size() > wire::kMaxParamGroups) return "more parameter groups than supported";
  for (const ParamGroupInfo& group : t.param_groups) {
    if (const char* wrong = wrong_in(group, t.params.size())) return wrong;
  }
  for (const SliceInfo& slice : t.slices) {
    if (const char* wrong = wrong_in(slice, t)) return wrong;
  }
  return nullptr;
}

}  // namespace shardscope::instrumentation
