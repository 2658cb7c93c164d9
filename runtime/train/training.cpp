#include "runtime/train/training.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "instrumentation/emitter.h"
#include "instrumentation/gate.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/config/config.h"
#include "runtime/data/stream.h"
#include "runtime/device/device.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/run_log.h"
#include "runtime/engine/run_tables.h"
#include "runtime/engine/zero_communicators.h"
#include "runtime/model/init.h"
#include "runtime/plan/model_plan.h"
#include "runtime/train/setup.h"

namespace shardscope::train {
namespace {

using engine::StopRequest;

void set_weights(const Options& options, const plan::ModelPlan& model, engine::Engine& engine) {
  if (!options.init.empty()) {
    const checkpoint::WeightReader reader(options.init, model);
    engine.set_weights(
        [&](plan::ParamId param, plan::Range range, float* out) { reader.read(param, range, out); });
    return;
  }
  const model::Initializer initializer(model, model::parse_init_scheme(options.init_scheme), options.seed);
  engine.set_weights(
      [&](plan::ParamId param, plan::Range range, float* out) { initializer.fill(param, range, out); });
}

void save_weights(const Options& options, const plan::ModelPlan& model, const comm::World& world,
                  engine::Engine& engine) {
  std::optional<checkpoint::WeightWriter> writer;
  if (world.rank() == 0) writer.emplace(options.save, model, kernels::DType::f32);
  engine.consolidate(
      [&](plan::ParamId param, std::span<const float> values) { writer->write(param, values); });
  if (writer) writer->finish();
}

void print_progress(const Options& options, const config::TrainingConfig& config,
                    const engine::StepResult& result) {
  const std::int64_t every = std::max<std::int64_t>(1, config.steps_per_print);
  if (options.quiet || (result.step % every != 0 && result.step + 1 != options.steps)) return;
  double loss = 0;
  for (const float value : result.losses) loss += value;
  std::printf("step %lld  loss %.4f  grad norm %.4f  lr %.3g%s\n", static_cast<long long>(result.step),
              loss / static_cast<double>(result.losses.size()), result.grad_norm, result.learning_rate,
              result.skipped ? "  skipped: gradients not finite" : "");
  std::fflush(stdout);
}

/// One rank's run, with everything it owns, in the order in which it must go away.
class Training {
 public:
  Training(const Options& options, comm::World& world, engine::StopSignals& signals)
      : options_(options),
        world_(world),
        signals_(signals),
        config_(load_training_config(options, world.size())),
        model_(load_model(options, config_)) {
    if (options.device != "cpu") {
      throw std::invalid_argument("--device " + options.device +
                                  ": this build has no such device; use --device cpu");
    }
    world.set_link(config_.shardscope.link);
    if (config_.zero.ranks_per_node > 0) {
      world.set_ranks_per_node(static_cast<std::uint32_t>(config_.zero.ranks_per_node));
    }
    data::StreamOptions stream;
    stream.path = options.data;
    stream.micro_batch = config_.batch.micro_batch_size;
    stream.context = options.context;
    stream.rank = world.rank();
    stream.world = world.size();
    stream.seed = options.seed;
    data_ = data::open_stream(model_.spec, stream);
    device_ = device::make_cpu_device(world.region());
    gather_ = world.make_communicator("gather");
    reduce_ = world.make_communicator("reduce");
    control_ = world.make_communicator("control");
    groups_ = std::make_unique<engine::ZeroCommunicators>(
        config_.zero, plan::Topology{world.size(), world.node_size()}, world.rank(),
        [&world](const std::string& name, const comm::Group& group) {
          return world.make_communicator(name, group);
        });
    check_same_data(*data_, *control_);
  }

  ~Training() {
    // Gates hold work of this device: they must not call it once it is gone.
    instrumentation::GateKeeper::instance().set_on_hold({});
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// Starts publishing; the result must be ended with finish().
  [[nodiscard]] std::unique_ptr<instrumentation::Publisher> make_publisher() {
    instrumentation::PublisherOptions publish;
    publish.endpoint = options_.publish;
    publish.detail = parse_detail(options_.detail, config_.shardscope.detail);
    publish.ring_events = static_cast<std::size_t>(config_.shardscope.ring_events);
    publish.queue_bytes = static_cast<std::size_t>(config_.shardscope.queue_bytes);
    publish.linger_s = config_.shardscope.linger_s;
    engine::RunIdentity identity;
    identity.run_id = agree_on_run_id(options_, *control_);
    identity.device = device_->describe() + ", " + gather_->describe();
    identity.versions = "shardscope " SHARDSCOPE_VERSION;
    identity.rank = world_.rank();
    identity.world = world_.size();
    identity.local_world = world_.node_size();
    return std::make_unique<instrumentation::Publisher>(publish,
                                                        engine::make_run_tables(model_, config_, identity));
  }

  void run(instrumentation::Publisher& publisher) {
    auto& gates = instrumentation::GateKeeper::instance();
    gates.set_on_hold([this] { device_->synchronize(); });
    gates.set_module_params([this](std::uint32_t module, std::uint32_t param) {
      const std::vector<plan::ParamId>& params = model_.modules[module].params;
      return std::find(params.begin(), params.end(), plan::ParamId{param}) != params.end();
    });
    if (world_.rank() == 0) {
      for (const std::string& warning : config_.warnings) {
        publisher.message(instrumentation::Severity::warning, warning);
        std::fprintf(stderr, "shardscope: warning: %s\n", warning.c_str());
      }
      publisher.message(instrumentation::Severity::info, data_->describe());
    }

    const engine::Context context{model_,   config_,   *device_, *gather_,
                                  *reduce_, *control_, gates,    groups_.get()};
    engine::Engine engine(context);
    engine.name_kernels([&publisher](const std::string& name) { return publisher.name_id(name); });
    set_weights(options_, model_, engine);
    engine::RunLog log;
    for (std::int64_t step = 0; step < options_.steps; ++step) {
      const StopRequest wish = signals_.received() != 0 ? StopRequest::stop : StopRequest::go_on;
      const engine::StepResult result =
          engine.step([this](data::HostBatch& batch) { data_->next(batch); }, wish);
      if (!options_.losses.empty()) log.add(result);
      if (world_.rank() == 0) print_progress(options_, config_, result);
      if (result.stop == StopRequest::stop) {
        publisher.message(instrumentation::Severity::warning,
                          "stopped by a signal after step " + std::to_string(step));
        break;
      }
    }
    engine.synchronize();
    if (!options_.losses.empty()) log.write(options_.losses, *control_);
    if (!options_.save.empty()) save_weights(options_, model_, world_, engine);
    control_->barrier_host();  // nobody leaves while another still reads its memory
  }

 private:
  const Options& options_;
  comm::World& world_;
  engine::StopSignals& signals_;
  config::TrainingConfig config_;
  plan::ModelPlan model_;
  std::unique_ptr<data::BatchStream> data_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<comm::Communicator> gather_, reduce_, control_;
  std::unique_ptr<engine::ZeroCommunicators> groups_;
};

}  // namespace

void train(const Options& options, comm::World& world, engine::StopSignals& signals) {
  std::unique_ptr<instrumentation::Publisher> publisher;
  try {
    Training training(options, world, signals);
    publisher = training.make_publisher();
    training.run(*publisher);
    publisher->finish(0, "");
  } catch (const std::exception& error) {
    world.fail(error.what());
    if (publisher) publisher->finish(1, world.first_failure());
    throw;
  }
}

}  // namespace shardscope::train
