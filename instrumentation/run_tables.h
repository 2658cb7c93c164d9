// The static tables of a run: rank and world, modules, parameters and which rank owns which slice. Sent when
// the run starts, sent again whenever something was added, and kept for viewers that join late. Ids count up
// from 0 and keep their meaning: later tables only extend earlier ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "instrumentation/event.h"

namespace shardscope::instrumentation {

/// One of several models that a process trains or uses: the policy and the reference of RL.
struct ModelInfo {
  std::uint32_t id = 0;
  std::string name, role;
  friend bool operator==(const ModelInfo&, const ModelInfo&) = default;
};
struct ModuleInfo {
  std::uint32_t id = 0, parent = kNoId;
  std::string path, type;
  std::vector<std::uint32_t> params;
  bool hooks = true;
  std::uint32_t model = 0;
  friend bool operator==(const ModuleInfo&, const ModuleInfo&) = default;
};
struct ParamInfo {
  std::uint32_t id = 0;
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::int64_t elems = 0;
  std::int64_t shard_elems = 0;  ///< stage 3: per rank, including padding; else 0
  std::int64_t padding_elems = 0;
  std::vector<std::uint32_t> modules;  ///< owner first
  bool persistent = false;
  bool frozen = false;  ///< not trained: no gradient, no optimizer states
  friend bool operator==(const ParamInfo&, const ParamInfo&) = default;
};
/// A rank's part of a parameter (stages 1, 2: of the flat buffer; stage 3: its shard): `elems` elements, as
/// one block from `param_offset`, or in blocks of `block_elems` whose starts are `stride_elems` apart (a
/// tensor that is sharded along a dimension other than the first).
struct SliceInfo {
  std::uint32_t param = 0, rank = 0;
  std::int64_t param_offset = 0, shard_offset = 0, elems = 0, padding_elems = 0;
  std::int64_t block_elems = 0, stride_elems = 0;  ///< 0: one block
  friend bool operator==(const SliceInfo&, const SliceInfo&) = default;
};
/// A process group of this rank. Ids are local to the rank; on another rank the same group is the one with
/// this name and these ranks.
struct GroupInfo {
  std::uint32_t id = 0;
  std::string name;
  GroupPurpose purpose = GroupPurpose::other;
  std::vector<std::uint32_t> ranks;
  friend bool operator==(const GroupInfo&, const GroupInfo&) = default;
};
/// Name of a lane in this run.
struct LaneName {
  StreamId lane{};
  std::string name;
  friend bool operator==(const LaneName&, const LaneName&) = default;
};
/// One of the optimizer's parameter groups and its initial settings; schedulers may change the rate.
struct ParamGroupInfo {
  std::string name;
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
  std::vector<std::uint32_t> params;
  friend bool operator==(const ParamGroupInfo&, const ParamGroupInfo&) = default;
};
/// Capabilities (capability.h) that this run lacks, and the reason.
struct NotRecorded {
  std::uint64_t what = 0;
  std::string why;
  friend bool operator==(const NotRecorded&, const NotRecorded&) = default;
};
struct RunTables {
  std::string run_id;  ///< equal on every rank
  std::string model, device, hardware, versions;
  std::string config_json;  ///< the whole effective configuration, including defaults
  std::uint32_t rank = 0, world = 1, local_world = 1;
  std::int32_t stage = 0, pid = 0;
  std::int64_t elems = 0;         ///< S
  std::uint32_t param_bytes = 4;  ///< bytes of one stored parameter element
  std::uint32_t grad_bytes = 4;
  std::uint32_t master_bytes = 0;  ///< 4 when fp32 master weights are kept beside 16-bit parameters
  double link_gbps = 0, link_latency_us = 0;  ///< emulated link; 0: none
  bool simulated = false;
  std::string host;
  std::string framework;      ///< "DeepSpeed 0.19.8"; empty: unknown
  std::uint64_t records = 0;  ///< capabilities (capability.h); 0: unknown
  std::vector<NotRecorded> not_recorded;
  std::vector<ModelInfo> models;  ///< empty: a single one, named `model`
  std::vector<GroupInfo> groups;  ///< this rank's
  std::vector<LaneName> lanes;
  std::vector<ModuleInfo> modules;
  std::vector<ParamInfo> params;
  std::vector<SliceInfo> slices;             ///< of all ranks
  std::vector<ParamGroupInfo> param_groups;  ///< empty: one group of all trained parameters
  /// Drops the lists that are equal on every rank: one rank's tables suffice for them.
  void drop_lists() {
    modules.clear();
    params.clear();
    slices.clear();
    param_groups.clear();
  }
  /// Copies these lists from another rank of the run.
  void take_lists(const RunTables& other) {
    modules = other.modules;
    params = other.params;
    slices = other.slices;
    param_groups = other.param_groups;
  }
  friend bool operator==(const RunTables&, const RunTables&) = default;
};

}  // namespace shardscope::instrumentation
