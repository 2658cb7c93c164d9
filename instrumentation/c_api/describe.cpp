// The C interface's description of a run: modules, parameters, which rank owns which slice.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "instrumentation/c_api/run.h"
#include "instrumentation/c_api/status.h"
#include "instrumentation/capability.h"
#include "instrumentation/wire.h"

namespace shardscope::instrumentation::c_api {
namespace {

constexpr std::size_t kMaxDims = 16;

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

RunTables tables_of(const shardscope_run_info& info) {
  RunTables tables;
  tables.run_id = limited(info.run_id, wire::kMaxName, "run_id");
  require(!tables.run_id.empty(),
          "run_id is empty; give every run an id of its own, the same on all its ranks");
  tables.model = limited(info.model, wire::kMaxText, "model");
  tables.device = limited(info.device, wire::kMaxText, "device");
  tables.hardware = limited(info.hardware, wire::kMaxText, "hardware");
  tables.versions = limited(info.versions, wire::kMaxText, "versions");
  tables.config_json = limited(info.config_json, wire::kMaxConfig, "config_json");
  require(tables.config_json.empty() || nlohmann::json::accept(tables.config_json),
          "config_json is not JSON; give the effective configuration as one JSON object");
  tables.host = info.host != nullptr ? limited(info.host, wire::kMaxName, "host") : host_name();
  require(
      info.world >= 1 && info.world <= wire::kMaxWorld,
      "world is " + std::to_string(info.world) + "; it must be from 1 to " + std::to_string(wire::kMaxWorld));
  require(info.rank < info.world,
          "rank " + std::to_string(info.rank) + " in a world of " + std::to_string(info.world));
  require(
      info.local_world >= 1 && info.local_world <= info.world,
      "local_world is " + std::to_string(info.local_world) + " in a world of " + std::to_string(info.world));
  require(info.stage >= 0 && info.stage <= 3,
          "stage is " + std::to_string(info.stage) + "; ZeRO has the stages 0 to 3");
  require(info.elems >= 0, "elems is negative");
  require(std::isfinite(info.link_gbps) && std::isfinite(info.link_latency_us) && info.link_gbps >= 0 &&
              info.link_latency_us >= 0,
          "link_gbps and link_latency_us must be finite and not negative");
  tables.rank = info.rank;
  tables.world = info.world;
  tables.local_world = info.local_world;
  tables.stage = info.stage;
  tables.pid = static_cast<std::int32_t>(getpid());
  tables.elems = info.elems;
  tables.param_bytes = info.param_bytes;
  tables.grad_bytes = info.grad_bytes;
  tables.master_bytes = info.master_bytes;
  tables.simulated = info.simulated != 0;
  tables.link_gbps = info.link_gbps;
  tables.link_latency_us = info.link_latency_us;
  tables.framework = limited(info.framework, wire::kMaxText, "framework");
  require((info.records & ~kAllCapabilities) == 0,
          "records has bits that this library does not know; use one as new as the header");
  tables.records = info.records;
  return tables;
}

std::int64_t elems_of(const std::vector<std::int64_t>& shape) {
  std::int64_t elems = 1;
  for (const std::int64_t extent : shape) {
    require(extent >= 0, "a shape has a negative extent");
    require(extent == 0 || elems <= std::numeric_limits<std::int64_t>::max() / extent,
            "a shape has more elements than 64 bits count");
    elems *= extent;
  }
  return elems;
}

/// Blocks of a slice must not overlap, and the last must end within the parameter's `whole` elements.
void require_strided(const SliceInfo& slice, std::int64_t whole) {
  if (slice.block_elems == 0 && slice.stride_elems == 0) return;
  const std::string which = "a slice of parameter " + std::to_string(slice.param);
  require(slice.block_elems > 0 && slice.stride_elems >= slice.block_elems,
          which + " has pieces of " + std::to_string(slice.block_elems) + " elements that begin " +
              std::to_string(slice.stride_elems) + " apart");
  if (slice.elems == 0) return;
  const std::int64_t before_last = (slice.elems - 1) / slice.block_elems;
  const std::int64_t last = slice.elems - before_last * slice.block_elems;
  require(before_last <= (whole - slice.param_offset - last) / slice.stride_elems,
          which + " ends behind its " + std::to_string(whole) + " elements");
}

/// Runs `body` on the tables of a run, before or after its start.
template <typename Body>
[[nodiscard]] shardscope_status describe(shardscope_run* run, Body&& body) noexcept {
  return guarded([&] {
    require(run != nullptr, "run is NULL");
    const std::lock_guard lock(run->mutex);
    if (run->phase == shardscope_run::Phase::finished)
      throw Failure(SHARDSCOPE_INVALID_STATE, "the run has been finished: it accepts no further calls");
    body(run->tables);
  });
}

}  // namespace
}  // namespace shardscope::instrumentation::c_api

using namespace shardscope::instrumentation;
using namespace shardscope::instrumentation::c_api;

extern "C" {

SHARDSCOPE_API shardscope_status shardscope_run_create(const shardscope_run_info* info,
                                                       shardscope_run** run) {
  return guarded([&] {
    require(run != nullptr, "the place for the run is NULL");
    const shardscope_run_info known = take(info, shardscope_run_info SHARDSCOPE_RUN_INFO_INIT, "info");
    auto made = std::make_unique<shardscope_run>();
    made->tables = tables_of(known);
    made->elems_given = known.elems != 0;
    *run = made.release();
  });
}

SHARDSCOPE_API shardscope_status shardscope_add_module(shardscope_run* run, const shardscope_module* module,
                                                       uint32_t* id) {
  return describe(run, [&](RunTables& tables) {
    const shardscope_module known = take(module, shardscope_module SHARDSCOPE_MODULE_INIT, "module");
    const auto next = static_cast<std::uint32_t>(tables.modules.size());
    require(next < wire::kMaxModules, "more modules than supported");
    require(known.parent == SHARDSCOPE_NO_ID || known.parent < next,
            "module " + std::to_string(next) + " has parent " + std::to_string(known.parent) +
                ", which has not been described; parents come first");
    require(known.parent != SHARDSCOPE_NO_ID || known.model == 0 || known.model < tables.models.size(),
            "module " + std::to_string(next) + " is of model " + std::to_string(known.model) +
                ", which has not been described");
    tables.modules.push_back(
        {next,
         known.parent,
         limited(known.path, wire::kMaxText, "path"),
         limited(known.type, wire::kMaxName, "type"),
         {},
         known.hooks != 0,
         known.parent == SHARDSCOPE_NO_ID ? known.model : tables.modules[known.parent].model});
    if (id != nullptr) *id = next;
  });
}

SHARDSCOPE_API shardscope_status shardscope_add_param(shardscope_run* run, const shardscope_param* param,
                                                      uint32_t* id) {
  return describe(run, [&](RunTables& tables) {
    const shardscope_param known = take(param, shardscope_param SHARDSCOPE_PARAM_INIT, "param");
    const auto next = static_cast<std::uint32_t>(tables.params.size());
    require(next < wire::kMaxParams, "more parameters than supported");
    require(known.dims <= kMaxDims, "a shape has " + std::to_string(known.dims) + " extents, at most " +
                                        std::to_string(kMaxDims) + " are allowed");
    require(known.dims == 0 || known.shape != nullptr, "shape is NULL but dims is not 0");
    require(known.shard_elems >= 0 && known.padding_elems >= 0, "shard_elems or padding_elems is negative");
    ParamInfo info;
    info.id = next;
    info.name = limited(known.name, wire::kMaxText, "name");
    info.dtype = limited(known.dtype, wire::kMaxName, "dtype");
    if (known.dims != 0) info.shape.assign(known.shape, known.shape + known.dims);
    info.elems = elems_of(info.shape);
    info.shard_elems = known.shard_elems;
    info.padding_elems = known.padding_elems;
    info.persistent = known.persistent != 0;
    if (!run->elems_given) tables.elems += info.elems;
    tables.params.push_back(std::move(info));
    if (id != nullptr) *id = next;
  });
}

SHARDSCOPE_API shardscope_status shardscope_use_param(shardscope_run* run, uint32_t module, uint32_t param) {
  return describe(run, [&](RunTables& tables) {
    require(module < tables.modules.size(), "module " + std::to_string(module) + " has not been described");
    require(param < tables.params.size(), "parameter " + std::to_string(param) + " has not been described");
    std::vector<std::uint32_t>& used = tables.modules[module].params;
    if (std::find(used.begin(), used.end(), param) != used.end()) return;
    used.push_back(param);
    tables.params[param].modules.push_back(module);
  });
}

SHARDSCOPE_API shardscope_status shardscope_freeze_param(shardscope_run* run, uint32_t param) {
  return describe(run, [&](RunTables& tables) {
    require(param < tables.params.size(), "parameter " + std::to_string(param) + " has not been described");
    tables.params[param].frozen = true;
  });
}

SHARDSCOPE_API shardscope_status shardscope_add_slice(shardscope_run* run, const shardscope_slice* slice) {
  return describe(run, [&](RunTables& tables) {
    const shardscope_slice known = take(slice, shardscope_slice SHARDSCOPE_SLICE_INIT, "slice");
    require(known.param < tables.params.size(),
            "parameter " + std::to_string(known.param) + " has not been described");
    require(known.rank < tables.world, "a slice of rank " + std::to_string(known.rank) + " in a world of " +
                                           std::to_string(tables.world));
    require(
        known.param_offset >= 0 && known.shard_offset >= 0 && known.elems >= 0 && known.padding_elems >= 0,
        "a slice has a negative extent");
    const std::int64_t whole = tables.params[known.param].elems;
    require(known.param_offset <= whole && known.elems <= whole - known.param_offset,
            "a slice of parameter " + std::to_string(known.param) + " ends behind its " +
                std::to_string(whole) + " elements");
    const SliceInfo info{known.param, known.rank,          known.param_offset, known.shard_offset,
                         known.elems, known.padding_elems, known.block_elems,  known.stride_elems};
    require_strided(info, whole);
    tables.slices.push_back(info);
  });
}

SHARDSCOPE_API shardscope_status shardscope_add_model(shardscope_run* run, const shardscope_model* model,
                                                      uint32_t* id) {
  return describe(run, [&](RunTables& tables) {
    const shardscope_model known = take(model, shardscope_model SHARDSCOPE_MODEL_INIT, "model");
    const auto next = static_cast<std::uint32_t>(tables.models.size());
    require(next < wire::kMaxModels, "more models than supported");
    tables.models.push_back(
        {next, limited(known.name, wire::kMaxText, "name"), limited(known.role, wire::kMaxName, "role")});
    if (id != nullptr) *id = next;
  });
}

SHARDSCOPE_API shardscope_status shardscope_add_group(shardscope_run* run, const shardscope_group* group,
                                                      uint32_t* id) {
  return describe(run, [&](RunTables& tables) {
    const shardscope_group known = take(group, shardscope_group SHARDSCOPE_GROUP_INIT, "group");
    const auto next = static_cast<std::uint32_t>(tables.groups.size());
    require(next < wire::kMaxGroups, "more groups than supported: " + std::to_string(wire::kMaxGroups));
    require(known.purpose >= SHARDSCOPE_GROUP_OTHER && known.purpose <= SHARDSCOPE_GROUP_EXPERT,
            "purpose is " + std::to_string(known.purpose) + "; use a SHARDSCOPE_GROUP_...");
    require(known.count >= 1 && known.count <= tables.world && known.ranks != nullptr,
            "a group has " + std::to_string(known.count) + " ranks in a world of " +
                std::to_string(tables.world));
    GroupInfo info{next, limited(known.name, wire::kMaxText, "name"),
                   static_cast<GroupPurpose>(known.purpose),
                   std::vector<std::uint32_t>(known.ranks, known.ranks + known.count)};
    for (const std::uint32_t rank : info.ranks) {
      require(rank < tables.world,
              "a group has rank " + std::to_string(rank) + " in a world of " + std::to_string(tables.world));
    }
    tables.groups.push_back(std::move(info));
    if (id != nullptr) *id = next;
  });
}

SHARDSCOPE_API shardscope_status shardscope_add_param_group(shardscope_run* run,
                                                            const shardscope_param_group* group) {
  return describe(run, [&](RunTables& tables) {
    const shardscope_param_group known =
        take(group, shardscope_param_group SHARDSCOPE_PARAM_GROUP_INIT, "parameter group");
    require(tables.param_groups.size() < wire::kMaxParamGroups,
            "more parameter groups than supported: " + std::to_string(wire::kMaxParamGroups));
    require(known.count == 0 || known.params != nullptr, "params is NULL");
    ParamGroupInfo info;
    info.name = limited(known.name, wire::kMaxName, "name");
    for (const double value : {known.lr, known.beta1, known.beta2, known.eps, known.weight_decay})
      require(std::isfinite(value), "a setting of parameter group " + info.name + " is not a number");
    info.lr = known.lr;
    info.beta1 = known.beta1;
    info.beta2 = known.beta2;
    info.eps = known.eps;
    info.weight_decay = known.weight_decay;
    if (known.count > 0) info.params.assign(known.params, known.params + known.count);
    std::vector<bool> taken(tables.params.size(), false);
    const auto take_all = [&](const ParamGroupInfo& one) {
      for (const std::uint32_t param : one.params) {
        require(param < tables.params.size(), "parameter group " + one.name + " has parameter " +
                                                  std::to_string(param) + ", which was not added");
        require(!taken[param], "parameter " + tables.params[param].name + " is in two parameter groups");
        taken[param] = true;
      }
    };
    for (const ParamGroupInfo& one : tables.param_groups) take_all(one);
    take_all(info);
    tables.param_groups.push_back(std::move(info));
  });
}

SHARDSCOPE_API shardscope_status shardscope_name_lane(shardscope_run* run, uint8_t lane, const char* name) {
  return describe(run, [&](RunTables& tables) {
    require(lane < kStreamCount, "lane is " + std::to_string(lane) + "; use a SHARDSCOPE_LANE_...");
    std::string words = limited(name, wire::kMaxName, "name");
    const auto known = std::find_if(tables.lanes.begin(), tables.lanes.end(), [&](const LaneName& named) {
      return named.lane == static_cast<StreamId>(lane);
    });
    if (known != tables.lanes.end()) {
      known->name = std::move(words);
    } else {
      tables.lanes.push_back({static_cast<StreamId>(lane), std::move(words)});
    }
  });
}

SHARDSCOPE_API shardscope_status shardscope_not_recorded(shardscope_run* run, uint64_t what,
                                                         const char* why) {
  return describe(run, [&](RunTables& tables) {
    require(what != 0 && (what & ~kAllCapabilities) == 0, "what is not one or more SHARDSCOPE_RECORDS_...");
    std::string words = limited(why, wire::kMaxText, "why");
    require(!words.empty(), "why is empty; say in words why it cannot be recorded");
    // The latest reason of each capability replaces earlier ones.
    for (NotRecorded& lack : tables.not_recorded) lack.what &= ~what;
    std::erase_if(tables.not_recorded, [](const NotRecorded& lack) { return lack.what == 0; });
    tables.not_recorded.push_back({what, std::move(words)});
    tables.records &= ~what;
  });
}

SHARDSCOPE_API shardscope_status shardscope_update_run(shardscope_run* run, const shardscope_run_info* info) {
  return describe(run, [&](RunTables& tables) {
    shardscope_run_info known = take(info, shardscope_run_info SHARDSCOPE_RUN_INFO_INIT, "info");
    // The identity of a run stays; these fields of `info` are ignored.
    known.run_id = tables.run_id.c_str();
    known.host = tables.host.c_str();
    known.rank = tables.rank;
    known.world = tables.world;
    known.local_world = tables.local_world;
    RunTables now = tables_of(known);
    for (const NotRecorded& lack : tables.not_recorded) now.records &= ~lack.what;
    run->elems_given = known.elems != 0;
    if (!run->elems_given) {
      for (const ParamInfo& param : tables.params) now.elems += param.elems;
    }
    now.not_recorded = std::move(tables.not_recorded);
    now.models = std::move(tables.models);
    now.groups = std::move(tables.groups);
    now.lanes = std::move(tables.lanes);
    now.modules = std::move(tables.modules);
    now.params = std::move(tables.params);
    now.slices = std::move(tables.slices);
    now.param_groups = std::move(tables.param_groups);
    tables = std::move(now);
  });
}

}  // extern "C"
