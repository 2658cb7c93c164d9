// The C interface's description of a run: modules, parameters, who owns what.
#include <unistd.h>

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "instrumentation/c_api/run.h"
#include "instrumentation/c_api/status.h"
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

/// Runs `body` on the tables of a run that has not started yet.
template <typename Body>
[[nodiscard]] shardscope_status describe(shardscope_run* run, Body&& body) noexcept {
  return guarded([&] {
    require(run != nullptr, "run is NULL");
    const std::lock_guard lock(run->mutex);
    if (run->phase != shardscope_run::Phase::described)
      throw Failure(SHARDSCOPE_INVALID_STATE, "the run has started: describe it before shardscope_start()");
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
    tables.modules.push_back({next,
                              known.parent,
                              limited(known.path, wire::kMaxText, "path"),
                              limited(known.type, wire::kMaxName, "type"),
                              {},
                              known.hooks != 0});
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
    tables.slices.push_back(
        {known.param, known.rank, known.param_offset, known.shard_offset, known.elems, known.padding_elems});
  });
}

}  // extern "C"
