// Training whose detail level is switched off and on between short blocks of steps, in random order, within
// one process: what being observed adds to a step, freed from the differences between two runs. For
// observed.py.
//   observed_steps [options of zero_train] --seconds 12 --out FILE
// Every rank switches its own level at the same step boundaries. Of each block the first step does not count:
// what the block before has left to publish is published then. Rank 0 writes a JSON object: per pair of
// blocks the mean step time off and on, the CPU time of its other threads, and what the threads that publish
// took of a core meanwhile.
#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "instrumentation/clock.h"
#include "instrumentation/emission_cost.h"
#include "instrumentation/emitter.h"
#include "instrumentation/gate.h"
#include "runtime/comm/world.h"
#include "runtime/comm/zero_communicators.h"
#include "runtime/data/stream.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/run_tables.h"
#include "runtime/model/init.h"
#include "runtime/train/device_choice.h"
#include "runtime/train/options.h"
#include "runtime/train/setup.h"

namespace {

using namespace shardscope;
using instrumentation::monotonic_now_ns;

struct Plan {
  double seconds = 12;
  int block = 3;  ///< steps; the first does not count
  std::string out;
};

/// What this process has taken of its cores, without the threads that publish: they work on a block while the
/// next ones run.
std::int64_t training_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec -
         instrumentation::publishing_cpu_ns().value_or(0);
}

/// One rank's engine and publisher.
class Observed {
 public:
  Observed(const train::Options& options, comm::World& world)
      : world_(world),
        config_(train::load_training_config(options, world.size())),
        model_(train::load_model(options, config_)) {
    data::StreamOptions stream;
    stream.path = options.data;
    stream.micro_batch = config_.batch.micro_batch_size;
    stream.context = options.context;
    stream.rank = world.rank();
    stream.world = world.size();
    stream.seed = options.seed;
    data_ = data::open_stream(model_.spec, stream);
    device_ =
        train::open_device(options.device, world, world, std::chrono::seconds(options.collective_timeout_s));
    gather_ = world.make_communicator("gather");
    reduce_ = world.make_communicator("reduce");
    control_ = world.make_communicator("control");
    groups_ = std::make_unique<comm::ZeroCommunicators>(
        config_.zero, plan::Topology{world.size(), world.node_size()}, world.rank(),
        [&world](const std::string& name, const comm::Group& group) {
          return world.make_communicator(name, group);
        });

    instrumentation::PublisherOptions publish;
    publish.endpoint = options.publish;
    publish.ring_events = static_cast<std::size_t>(config_.shardscope.ring_events);
    publish.queue_bytes = static_cast<std::size_t>(config_.shardscope.queue_bytes);
    engine::RunIdentity identity;
    identity.run_id = train::agree_on_run_id(options, *control_);
    identity.device = device_->describe() + ", " + gather_->describe();
    identity.rank = world.rank();
    identity.world = world.size();
    identity.local_world = world.node_size();
    publisher_ = std::make_unique<instrumentation::Publisher>(
        publish, engine::make_run_tables(model_, config_, identity));
    engine_ = std::make_unique<engine::Engine>(
        execution::Context{model_, config_, *device_, *gather_, *reduce_, *control_,
                           instrumentation::GateKeeper::instance(), groups_.get()});
    const model::Initializer initializer(model_, model::parse_init_scheme(options.init_scheme), options.seed);
    engine_->set_weights(
        [&](plan::ParamId param, plan::Range range, float* out) { initializer.fill(param, range, out); });
  }

  nlohmann::json measure(const train::Options& options, const Plan& plan) {
    const int on = static_cast<int>(config_.shardscope.detail);
    for (int i = 0; i < 10; ++i) step();
    std::mt19937 random(static_cast<unsigned>(options.seed));  // the same on every rank
    nlohmann::json pairs = nlohmann::json::array();
    nlohmann::json cpu_pairs = nlohmann::json::array();
    std::array<double, 2> longest{};
    const std::int64_t cpu_before = instrumentation::publishing_cpu_ns().value_or(-1);
    const std::int64_t begin = monotonic_now_ns();
    do {
      const bool on_first = (random() & 1U) != 0;
      std::array<double, 2> mean{};
      std::array<double, 2> cpu_mean{};
      for (const bool observed : {on_first, !on_first}) {
        instrumentation::g_detail.store(observed ? on : -1, std::memory_order_relaxed);
        step();
        const std::int64_t cpu_start = training_cpu_ns();
        const std::int64_t start = monotonic_now_ns();
        std::int64_t last = start;
        for (int i = 1; i < plan.block; ++i) {
          step();
          const std::int64_t now = monotonic_now_ns();
          longest[observed] = std::max(longest[observed], static_cast<double>(now - last));
          last = now;
        }
        mean[observed] = static_cast<double>(last - start) / (plan.block - 1);
        cpu_mean[observed] = static_cast<double>(training_cpu_ns() - cpu_start) / (plan.block - 1);
      }
      pairs.push_back({mean[0], mean[1]});
      cpu_pairs.push_back({cpu_mean[0], cpu_mean[1]});
    } while (go_on(static_cast<double>(monotonic_now_ns() - begin) * 1e-9 < plan.seconds));
    const std::int64_t elapsed = monotonic_now_ns() - begin;
    const std::int64_t cpu = instrumentation::publishing_cpu_ns().value_or(-1) - cpu_before;
    instrumentation::g_detail.store(on, std::memory_order_relaxed);
    // Means over ranks, and the sum of what was dropped.
    std::array<double, 2> sums{static_cast<double>(cpu), static_cast<double>(publisher_->dropped())};
    control_->all_reduce_host(sums);
    publisher_->finish(0, "");
    control_->barrier_host();
    return {{"pairs_ns", pairs},
            {"cpu_pairs_ns", cpu_pairs},
            {"longest_ns", longest},
            {"elapsed_ns", elapsed},
            {"publishing_cpu_ns", cpu_before < 0 ? -1 : sums[0] / world_.size()},
            {"dropped", sums[1]},
            {"event_ns", instrumentation::calibrated_event_ns()}};
  }

 private:
  void step() {
    (void)engine_->step([this](data::HostBatch& batch) { data_->next(batch); }, engine::StopRequest::go_on);
  }
  /// Rank 0's answer, on every rank.
  bool go_on(bool mine) {
    std::array<std::byte, 1> answer{static_cast<std::byte>(mine)};
    control_->broadcast_host(answer, 0);
    return answer[0] != std::byte{0};
  }

  comm::World& world_;
  config::TrainingConfig config_;
  plan::ModelPlan model_;
  std::unique_ptr<data::BatchStream> data_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<comm::Communicator> gather_, reduce_, control_;
  std::unique_ptr<comm::ZeroCommunicators> groups_;
  std::unique_ptr<instrumentation::Publisher> publisher_;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace

int main(int argc, char** argv) {
  train::Options options;
  Plan plan;
  CLI::App app("Steps with emission off and on in turns; see observed.py.", "observed_steps");
  train::declare(app, options);
  app.add_option("--seconds", plan.seconds, "how long to measure")->check(CLI::PositiveNumber);
  app.add_option("--block", plan.block, "steps with one level; the first does not count")
      ->check(CLI::Range(2, 1000));
  app.add_option("--out", plan.out, "JSON file that rank 0 writes")->required();
  CLI11_PARSE(app, argc, argv);
  try {
    const std::unique_ptr<comm::World> world = comm::make_world(&argc, &argv, {});
    const nlohmann::json result = Observed(options, *world).measure(options, plan);
    if (world->rank() == 0) std::ofstream(plan.out) << result;
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "observed_steps: %s\n", error.what());
    return 1;
  }
}
