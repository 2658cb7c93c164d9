#include "tests/app/store/synthetic_model.h"

#include <algorithm>

namespace shardscope::store {
namespace {

class Builder {
 public:
  explicit Builder(ev::RunTables& tables) : tables_(tables) {}

  std::uint32_t module(std::uint32_t parent, const std::string& name, const std::string& type,
                       bool hooks = true) {
    const auto id = static_cast<std::uint32_t>(tables_.modules.size());
    std::string path = name;
    if (parent != ev::kNoId && !tables_.modules[parent].path.empty())
      path = tables_.modules[parent].path + "." + name;
    tables_.modules.push_back(
        {.id = id, .parent = parent, .path = path, .type = type, .params = {}, .hooks = hooks});
    return id;
  }
  std::uint32_t param(std::uint32_t module, const std::string& name, std::vector<std::int64_t> shape) {
    const auto id = static_cast<std::uint32_t>(tables_.params.size());
    ev::ParamInfo info;
    info.id = id;
    info.name = tables_.modules[module].path + "." + name;
    info.dtype = "bf16";
    info.elems = 1;
    for (const std::int64_t dim : shape) info.elems *= dim;
    info.shape = std::move(shape);
    info.modules = {module};
    tables_.params.push_back(info);
    tables_.modules[module].params.push_back(id);
    return id;
  }
  void linear(std::uint32_t parent, const std::string& name, std::int64_t in, std::int64_t out) {
    const std::uint32_t id = module(parent, name, "Linear");
    param(id, "weight", {out, in});
    param(id, "bias", {out});
  }
  void layer_norm(std::uint32_t parent, const std::string& name, std::int64_t width) {
    const std::uint32_t id = module(parent, name, "LayerNorm");
    param(id, "weight", {width});
    param(id, "bias", {width});
  }

 private:
  ev::RunTables& tables_;
};

void add_slices(ev::RunTables& tables) {
  const std::int64_t world = tables.world;
  if (tables.stage == 3) {
    for (ev::ParamInfo& param : tables.params) {
      param.shard_elems = (param.elems + world - 1) / world;
      param.padding_elems = param.shard_elems * world - param.elems;
      for (std::uint32_t rank = 0; rank < tables.world; ++rank) {
        const std::int64_t begin = std::min(param.elems, param.shard_elems * rank);
        const std::int64_t real = std::min(param.elems - begin, param.shard_elems);
        tables.slices.push_back({.param = param.id,
                                 .rank = rank,
                                 .param_offset = begin,
                                 .shard_offset = 0,
                                 .elems = real,
                                 .padding_elems = param.shard_elems - real});
      }
    }
    return;
  }
  const std::int64_t shard = (tables.elems + 2 * world - 1) / (2 * world) * 2;
  std::int64_t flat = 0;
  for (const ev::ParamInfo& param : tables.params) {
    for (std::int64_t done = 0; done < param.elems;) {
      const std::int64_t rank = (flat + done) / shard;
      const std::int64_t elems = std::min(param.elems - done, shard * (rank + 1) - flat - done);
      tables.slices.push_back({.param = param.id,
                               .rank = static_cast<std::uint32_t>(rank),
                               .param_offset = done,
                               .shard_offset = flat + done - shard * rank,
                               .elems = elems,
                               .padding_elems = 0});
      done += elems;
    }
    flat += param.elems;
  }
}

}  // namespace

ev::RunTables make_synthetic_tables(const SyntheticOptions& o) {
  ev::RunTables tables;
  tables.run_id = "synthetic-" + std::to_string(o.seed);
  tables.model = "gpt-synthetic";
  tables.device = "cpu";
  tables.hardware = "virtual machine, 4 cores";
  tables.versions = "shardscope test generator";
  tables.config_json = R"({"train_batch_size":)" + std::to_string(o.world * o.micro_steps) +
                       R"(,"train_micro_batch_size_per_gpu":1,"gradient_accumulation_steps":)" +
                       std::to_string(o.micro_steps) +
                       R"(,"bf16":{"enabled":true},"zero_optimization":{"stage":)" + std::to_string(o.stage) +
                       R"(,"overlap_comm":true,"reduce_bucket_size":)" + std::to_string(o.bucket_elems) +
                       R"(,"stage3_prefetch_bucket_size":)" + std::to_string(o.prefetch_elems) +
                       R"(,"stage3_param_persistence_threshold":)" + std::to_string(o.persistence_elems) +
                       "}}";
  tables.world = tables.local_world = o.world;
  tables.stage = o.stage;
  tables.param_bytes = 2;
  tables.grad_bytes = 2;
  tables.master_bytes = 4;
  tables.link_gbps = o.link_gbps;
  tables.link_latency_us = o.link_latency_us;
  tables.simulated = true;
  tables.host = "synthetic";

  Builder build(tables);
  const std::uint32_t root = build.module(ev::kNoId, "", "GPT");
  const std::uint32_t transformer = build.module(root, "transformer", "Transformer");
  const std::uint32_t wte = build.module(transformer, "wte", "Embedding");
  const std::uint32_t tied = build.param(wte, "weight", {o.vocabulary, o.width});
  const std::uint32_t wpe = build.module(transformer, "wpe", "Embedding");
  build.param(wpe, "weight", {o.context, o.width});
  const std::uint32_t blocks = build.module(transformer, "h", "ModuleList", false);
  for (std::uint32_t l = 0; l < o.layers; ++l) {
    const std::uint32_t block = build.module(blocks, std::to_string(l), "Block");
    build.layer_norm(block, "ln_1", o.width);
    const std::uint32_t attention = build.module(block, "attn", "Attention");
    build.linear(attention, "c_attn", o.width, 3 * o.width);
    build.linear(attention, "c_proj", o.width, o.width);
    build.layer_norm(block, "ln_2", o.width);
    const std::uint32_t mlp = build.module(block, "mlp", "MLP");
    build.linear(mlp, "c_fc", o.width, 4 * o.width);
    build.module(mlp, "act", "GELU");
    build.linear(mlp, "c_proj", 4 * o.width, o.width);
  }
  build.layer_norm(transformer, "ln_f", o.width);
  const std::uint32_t head = build.module(root, "lm_head", "Linear");
  tables.modules[head].params.push_back(tied);
  tables.params[tied].modules.push_back(head);

  for (ev::ParamInfo& param : tables.params) {
    tables.elems += param.elems;
    param.persistent = o.stage == 3 && param.elems <= o.persistence_elems;
  }
  add_slices(tables);
  return tables;
}

}  // namespace shardscope::store
