#include "tests/runtime/engine/support.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "runtime/comm/cuda/attach.h"
#include "runtime/comm/group_world.h"
#include "runtime/data/stream.h"
#include "runtime/model/init.h"
#include "runtime/plan/data_parallel.h"
#include "runtime/plan/leaf_modules.h"
#include "tests/runtime/comm/thread_ranks.h"

namespace shardscope::engine::testing {
using instrumentation::MemoryCategory;

/// metrics.md section 1: stage 3 holds gathered parameters only for a while, so they are no model state.
std::size_t model_states(device::Arena& memory, std::uint32_t stage) {
  std::size_t bytes = 0;
  for (const MemoryCategory category :
       {MemoryCategory::param_shard, MemoryCategory::grad_full, MemoryCategory::grad_shard,
        MemoryCategory::master_weight, MemoryCategory::momentum, MemoryCategory::variance}) {
    bytes += memory.used_bytes(category);
  }
  return stage < 3 ? bytes + memory.used_bytes(MemoryCategory::param_gathered) : bytes;
}

namespace {

/// Counts what passes, and looks at memory when it does.
class CountingCommunicator final : public comm::Communicator {
 public:
  CountingCommunicator(std::unique_ptr<comm::Communicator> inner, RankRun& out, device::Arena& memory,
                       std::uint32_t stage,
                       instrumentation::CollectiveScope scope = instrumentation::CollectiveScope::world)
      : inner_(std::move(inner)),
        out_(out),
        volume_(out.volume),
        memory_(memory),
        stage_(stage),
        scope_(static_cast<std::size_t>(scope)) {}
  [[nodiscard]] std::uint32_t rank() const noexcept override { return inner_->rank(); }
  [[nodiscard]] std::uint32_t world() const noexcept override { return inner_->world(); }
  [[nodiscard]] std::string describe() const override { return inner_->describe(); }
  void all_gather(std::span<const comm::GatherPart> parts, kernels::DType type, device::Stream& stream,
                  comm::CollectiveLabel label) override {
    for (const auto& part : parts) {
      volume_.gathered += part.shard_elems * world();
      count(volume_.gathers, part.shard_elems * world(), type, label);
    }
    see();
    inner_->all_gather(parts, type, stream, label);
  }
  void reduce_scatter(std::span<const comm::ReduceScatterPart> parts, kernels::DType type, float factor,
                      device::Stream& stream, comm::CollectiveLabel label) override {
    for (const auto& part : parts) {
      volume_.reduced += part.shard_elems * world();
      count(volume_.reductions, part.shard_elems * world(), type, label);
    }
    see();
    inner_->reduce_scatter(parts, type, factor, stream, label);
    for (const auto& part : parts) overflow(part.param, part.out, part.shard_elems, type, stream);
  }
  void reduce(std::span<const comm::ReducePart> parts, kernels::DType type, float factor,
              device::Stream& stream, comm::CollectiveLabel label) override {
    Reduction submitted{"reduce", 0, {}};
    for (const auto& part : parts) {
      volume_.reduced += part.elems;
      submitted.elems += part.elems;
      if (submitted.roots.empty() || submitted.roots.back() != part.root) {
        submitted.roots.push_back(part.root);
      }
    }
    out_.reductions.push_back(std::move(submitted));
    see();
    inner_->reduce(parts, type, factor, stream, label);
    for (const auto& part : parts) {
      if (part.root == rank()) overflow(part.param, part.out, part.elems, type, stream);
    }
  }
  void all_reduce(std::span<const comm::AllReducePart> parts, kernels::DType type, float factor,
                  device::Stream& stream, comm::CollectiveLabel label) override {
    std::int64_t elems = 0;
    for (const auto& part : parts) elems += part.elems;
    volume_.reduced += 2 * elems;
    if (stream.id() == instrumentation::StreamId::reduce) {
      out_.reductions.push_back({"all_reduce", elems, {}});
    }
    count(stream.id() == instrumentation::StreamId::gather ? volume_.gathers : volume_.reductions, 2 * elems,
          type, label);
    see();
    inner_->all_reduce(parts, type, factor, stream, label);
    for (const auto& part : parts) overflow(part.param, part.data, part.elems, type, stream);
  }
  void all_reduce_host(std::span<double> values) override {
    // The engine's one call of a step: norm and flags, when the gradients are complete.
    if (on_all_reduce_host) on_all_reduce_host();
    inner_->all_reduce_host(values);
  }
  void all_to_all(std::span<const comm::AllToAllPart> parts, kernels::DType type, device::Stream& stream,
                  comm::CollectiveLabel label) override {
    for (const auto& part : parts) {
      volume_.reduced += part.chunk_elems * label.packing * world();
      count(volume_.reductions, part.chunk_elems * world(), type, label);
    }
    see();
    inner_->all_to_all(parts, type, stream, label);
  }
  void max_host(std::span<std::uint64_t> values) override { inner_->max_host(values); }
  void broadcast_host(std::span<std::byte> bytes, std::uint32_t root) override {
    inner_->broadcast_host(bytes, root);
  }
  void barrier_host() override { inner_->barrier_host(); }

  std::function<void()> on_all_reduce_host;
  bool overflows = false;                     ///< what reductions leave on this rank is infinite
  std::optional<plan::ParamId> overflows_in;  ///< only of this parameter

 private:
  void overflow(std::uint32_t param, void* data, std::int64_t elems, kernels::DType type,
                device::Stream& stream) const {
    if (!overflows || elems == 0 || (overflows_in && plan::raw(*overflows_in) != param)) return;
    stream.run([=](const kernels::Exec&) {
      if (type == kernels::DType::f32) {
        std::fill_n(static_cast<float*>(data), elems, std::numeric_limits<float>::infinity());
      } else {
        const std::uint16_t infinite = type == kernels::DType::bf16 ? 0x7F80 : 0x7C00;
        std::fill_n(static_cast<std::uint16_t*>(data), elems, infinite);
      }
    });
  }
  void count(plan::ScopeTraffic& traffic, std::int64_t units, kernels::DType type,
             const comm::CollectiveLabel& label) const {
    traffic[scope_].elems += units * label.packing;
    traffic[scope_].bytes += units * static_cast<std::int64_t>(kernels::size_of(type));
  }
  void see() {
    ++volume_.calls;
    out_.secondary_peak = std::max(out_.secondary_peak, memory_.used_bytes(MemoryCategory::param_secondary));
    out_.model_state_peak = std::max(out_.model_state_peak, model_states(memory_, stage_));
    out_.gathered_peak = std::max(out_.gathered_peak, memory_.used_bytes(MemoryCategory::param_gathered));
    if (stage_ < 2) return;
    out_.bucket_peak = std::max(out_.bucket_peak, memory_.used_bytes(MemoryCategory::reduce_bucket) +
                                                      memory_.used_bytes(MemoryCategory::grad_full));
  }

  std::unique_ptr<comm::Communicator> inner_;
  RankRun& out_;
  Volume& volume_;
  device::Arena& memory_;
  std::uint32_t stage_;
  std::size_t scope_;
};

/// The ranks that train this one's copy of the model, and its peers in the others.
struct Copy {
  Copy(comm::World& all, const plan::DataParallelGroups& groups, device::Device& device) : world(&all) {
    if (groups.empty()) return;
    const plan::DataParallelPlace place = plan::data_parallel_place(groups, all.size(), all.rank());
    const plan::Topology topology = plan::topology_of_group(place.members, all.node_size());
    group.emplace(all, place.members, topology.ranks_per_node, 0);
    world = &*group;
    if (place.peers.size() > 1) {
      peers = all.make_communicator("peers", {place.peers, instrumentation::CollectiveScope::group, 1});
    }
    if (device.backend() == kernels::Backend::cuda) {
      comm::attach_cuda(*world, device, 0, comm::DeviceTransport::staged, std::chrono::seconds(60));
    }
  }

  std::optional<comm::GroupWorld> group;
  comm::World* world;
  std::unique_ptr<comm::Communicator> peers;
};

}  // namespace

TrainingRun train(const RunSpec& spec) {
  TrainingRun run;
  run.ranks.resize(spec.world);
  config::ParseOptions parse;
  parse.world = spec.world;
  const config::TrainingConfig config = config::parse_config(spec.config.dump(), parse);
  plan::ModelPlan common = plan::build_model_plan(plan::mark_leaf_modules(spec.model, config.zero));
  plan::assign_param_groups(common, config.group_rules());
  run.weights.resize(common.params.size());

  const auto body = [&](comm::World& world, device::Device& device) {
    RankRun& out = run.ranks[world.rank()];
    const plan::ModelPlan model =
        spec.model_of_rank ? plan::build_model_plan(spec.model_of_rank(world.rank())) : common;
    if (spec.limit_bytes > 0) device.memory().set_limit(spec.limit_bytes);
    if (config.zero.ranks_per_node > 0) {
      world.set_ranks_per_node(static_cast<std::uint32_t>(config.zero.ranks_per_node));
    }
    const Copy of_model(world, config.shardscope.data_parallel_groups, device);
    comm::World& copy = *of_model.world;
    CountingCommunicator gather(copy.make_communicator("gather"), out, device.memory(), config.zero.stage);
    CountingCommunicator reduce(copy.make_communicator("reduce"), out, device.memory(), config.zero.stage);
    reduce.overflows = spec.overflows_on == world.rank();
    reduce.overflows_in = spec.overflows_in;
    CountingCommunicator control(copy.make_communicator("control"), out, device.memory(), config.zero.stage);
    instrumentation::GateKeeper gates;
    const comm::ZeroCommunicators groups(
        config.zero, {copy.size(), copy.node_size()}, copy.rank(),
        [&](const std::string& name, const comm::Group& group) {
          auto made = std::make_unique<CountingCommunicator>(copy.make_communicator(name, group), out,
                                                             device.memory(), config.zero.stage, group.scope);
          // MiCS reduces among a shard group, then among its replicas.
          made->overflows = config.zero.mics_shard_size > 0 && spec.overflows_on == world.rank();
          made->overflows_in = spec.overflows_in;
          return made;
        });
    const Context context{
        model, config, device, gather, reduce, control, gates, &groups, of_model.peers.get()};
    if (spec.before_update) control.on_all_reduce_host = [&] { spec.before_update(context); };
    gates.set_on_hold([&device] { device.synchronize(); });
    data::StreamOptions stream;
    stream.path = spec.data;
    stream.micro_batch = config.batch.micro_batch_size;
    stream.micro_batches = config.shardscope.micro_batches;
    stream.rank = copy.rank();
    stream.world = copy.size();
    const auto batches = data::open_stream(model.spec, stream);
    const model::Initializer initializer(model, model::parse_init_scheme(spec.init), 1);
    {
      Engine engine(context);
      engine.set_weights(
          [&](plan::ParamId param, plan::Range range, float* to) { initializer.fill(param, range, to); });
      if (spec.begin) spec.begin(context, engine, *batches);
      out.volume = {};
      if (spec.prepare) spec.prepare(context, world.rank());
      for (std::int64_t step = 0; step < spec.steps; ++step) {
        out.steps.push_back(
            engine.step([&](data::HostBatch& batch) { batches->next(batch); }, StopRequest::go_on));
        if (spec.after_step) spec.after_step(context, out.steps.back());
        if (spec.between_steps) spec.between_steps(engine, context, out.steps.back());
      }
      engine.synchronize();
      if (spec.end) spec.end(context, engine, *batches);
      const Volume trained = out.volume;
      out.state_bytes_after = model_states(device.memory(), config.zero.stage);
      out.secondary_after = device.memory().used_bytes(MemoryCategory::param_secondary);
      out.host_state_bytes = model_states(device.host(), config.zero.stage);
      out.pinned_state_bytes = model_states(device.pinned(), config.zero.stage);
      engine.consolidate([&](plan::ParamId param, std::span<const float> values) {
        auto& weights = world.rank() == 0 ? run.weights : out.weights;
        weights.resize(common.params.size());
        weights[plan::raw(param)].assign(values.begin(), values.end());
      });
      out.volume = trained;
      control.barrier_host();
    }
    out.used_after = device.memory().used_bytes() + device.host().used_bytes() + device.pinned().used_bytes();
  };
  const auto outcomes = shardscope::testing::run_ranks(spec.world, {}, body, spec.backend);
  for (std::uint32_t rank = 0; rank < spec.world; ++rank) run.ranks[rank].error = outcomes[rank].error;
  return run;
}

plan::ModelSpec wide_model() {
  return plan::parse_model_spec(R"({
    "name": "wide", "input": {"kind": "vectors", "width": 10}, "loss": {"kind": "mse", "width": 1},
    "root": {"kind": "sequential", "children": [
      {"kind": "linear", "name": "a", "in": 10, "out": 640},
      {"kind": "linear", "name": "b", "in": 640, "out": 900},
      {"kind": "relu"},
      {"kind": "linear", "name": "c", "in": 900, "out": 900},
      {"kind": "linear", "name": "d", "in": 900, "out": 640},
      {"kind": "linear", "name": "e", "in": 640, "out": 1}]}})");
}

plan::ModelSpec model_named(const std::string& name) {
  std::ifstream file(std::string(SHARDSCOPE_SAMPLE_MODELS "/") + name + ".json");
  if (!file) return plan::named_model(name);
  std::ostringstream text;
  text << file.rdbuf();
  return plan::parse_model_spec(text.str());
}

Json make_config(int stage, int accumulation_steps, const std::string& type) {
  Json zero{{"stage", stage}};
  if (stage == 3) {
    zero["stage3_prefetch_bucket_size"] = 20000;
    zero["stage3_max_live_parameters"] = 60000;
    zero["stage3_max_reuse_distance"] = 0;
    zero["stage3_param_persistence_threshold"] = 0;
  }
  Json config{{"train_micro_batch_size_per_gpu", 4},
              {"gradient_accumulation_steps", accumulation_steps},
              {"gradient_clipping", 1.0},
              {"optimizer",
               {{"type", "AdamW"},
                {"params", {{"lr", 1e-3}, {"betas", {0.9, 0.999}}, {"eps", 1e-8}, {"weight_decay", 0.01}}}}},
              {"zero_optimization", zero}};
  if (type != "fp32") config[type] = {{"enabled", true}};
  return config;
}

std::string first_difference(const TrainingRun& a, const TrainingRun& b) {
  for (const TrainingRun* run : {&a, &b}) {
    for (const RankRun& rank : run->ranks) {
      if (!rank.error.empty()) return "a rank failed: " + rank.error;
    }
  }
  for (std::size_t rank = 0; rank < a.ranks.size(); ++rank) {
    for (std::size_t step = 0; step < a.ranks[rank].steps.size(); ++step) {
      const auto& x = a.ranks[rank].steps[step].losses;
      const auto& y = b.ranks[rank].steps[step].losses;
      if (x.size() != y.size() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) != 0) {
        return "loss of rank " + std::to_string(rank) + " step " + std::to_string(step);
      }
    }
  }
  for (std::size_t param = 0; param < a.weights.size(); ++param) {
    const auto& x = a.weights[param];
    const auto& y = b.weights[param];
    if (x.empty() || x.size() != y.size()) return "size of parameter " + std::to_string(param);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::memcmp(&x[i], &y[i], sizeof(float)) != 0) {
        return "parameter " + std::to_string(param) + " element " + std::to_string(i) + ": " +
               std::to_string(x[i]) + " and " + std::to_string(y[i]);
      }
    }
  }
  return "";
}

}  // namespace shardscope::engine::testing
