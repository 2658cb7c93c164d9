// zero_train: the program that every rank of a training run is, started by mpirun or alone. The only place
// where a failure becomes an exit code.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <sstream>
#include <string>

#include "instrumentation/emitter.h"
#include "instrumentation/gate.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/comm/world.h"
#include "runtime/config/config.h"
#include "runtime/data/stream.h"
#include "runtime/device/device.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/run_log.h"
#include "runtime/engine/run_tables.h"
#include "runtime/engine/stop_signals.h"
#include "runtime/model/init.h"
#include "runtime/plan/activation_checkpointing.h"
#include "runtime/plan/leaf_modules.h"
#include "runtime/plan/model_plan.h"

namespace shardscope {
namespace {

using engine::StopRequest;

struct Options {
  std::string config;
  std::string model = "gpt-mini";
  std::string data;
  std::int64_t steps = 50;
  std::uint64_t seed = 1234;
  std::int64_t context = 0;
  std::string init_scheme = "gpt2";
  std::string init;
  std::string save;
  std::string publish;
  std::string run_id;
  std::string detail;
  std::string device = "cpu";
  std::string losses;
  std::int64_t collective_timeout_s = 300;
  bool quiet = false;
};

void declare(CLI::App& app, Options& o) {
  app.add_option("--config", o.config, "DeepSpeed JSON file; default: stage 0, fp32, AdamW");
  app.add_option("--model", o.model, "built-in model or JSON file of a module tree")->capture_default_str();
  app.add_option("--data", o.data,
                 "text file or folder, .bin file of 16-bit tokens, x.npy,y.npy, or golden:mlp, golden:gpt");
  app.add_option("--steps", o.steps, "optimizer steps")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--seed", o.seed, "of initial weights and data order")->capture_default_str();
  app.add_option("--context", o.context, "tokens per sample; 0: the model's longest")->capture_default_str();
  app.add_option("--init", o.init, "initial weights, safetensors");
  app.add_option("--init-scheme", o.init_scheme, "initial weights without a file: gpt2, hash, sin")
      ->capture_default_str();
  app.add_option("--save", o.save, "writes the final weights, safetensors, fp32");
  app.add_option("--device", o.device, "cpu")->capture_default_str();
  app.add_option("--publish", o.publish, "collector that gets the events, e.g. tcp://127.0.0.1:5711");
  app.add_option("--run-id", o.run_id, "name of the run in the events; default: made up");
  app.add_option("--detail", o.detail,
                 "steps, phases, modules, params or kernels; default: the configuration's");
  app.add_option("--losses", o.losses, "writes losses, norms and scales of every rank and step, JSON");
  app.add_option("--collective-timeout", o.collective_timeout_s,
                 "seconds that a rank waits for the others in one collective")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("--quiet", o.quiet, "no progress lines");
}

/// Under a launcher every rank would complain about the same arguments; one does.
bool first_of_launch() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* value = std::getenv(name)) return std::string(value) == "0";
  }
  return true;
}

plan::ModelPlan load_model(const Options& options, const config::TrainingConfig& config) {
  plan::ModelSpec spec;
  if (options.model.ends_with(".json")) {
    std::ifstream file(options.model);
    if (!file) {
      throw std::invalid_argument("--model " + options.model +
                                  ": cannot be opened; give a JSON file or the name of a built-in model");
    }
    std::ostringstream text;
    text << file.rdbuf();
    try {
      spec = plan::parse_model_spec(text.str());
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(options.model + ": " + error.what());
    }
  } else {
    spec = plan::named_model(options.model);
  }
  if (config.shardscope.activation_checkpointing && plan::checkpoint_blocks(spec) == 0) {
    throw std::invalid_argument(
        "shardscope.activation_checkpointing: model " + spec.name +
        " has no list of blocks; mark modules with \"checkpoint\": true in its JSON file");
  }
  return plan::build_model_plan(plan::mark_leaf_modules(std::move(spec), config.zero));
}

config::TrainingConfig load_training_config(const Options& options, std::uint32_t world) {
  config::ParseOptions parse;
  parse.world = world;
  parse.total_steps = options.steps;
  if (options.config.empty()) return config::default_config(parse);
  return config::load_config(options.config, parse);
}

instrumentation::Detail parse_detail(const std::string& name, instrumentation::Detail fallback) {
  static constexpr std::array kNames{"steps", "phases", "modules", "params", "kernels"};
  if (name.empty()) return fallback;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<instrumentation::Detail>(i);
  }
  throw std::invalid_argument("--detail " + name +
                              ": unknown; use steps, phases, modules, params or kernels");
}

/// The same on every rank.
std::string agree_on_run_id(const Options& options, comm::Communicator& comm) {
  if (!options.run_id.empty()) return options.run_id;
  std::array<std::byte, 16> id{};
  if (comm.rank() == 0) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    std::random_device random;
    char text[17];
    std::snprintf(text, sizeof text, "%08x%08x", static_cast<unsigned>(now / std::chrono::seconds(1)),
                  static_cast<unsigned>(random()));
    std::memcpy(id.data(), text, id.size());
  }
  comm.broadcast_host(id, 0);
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

/// What every rank must have alike; a difference would show only as a wrong result.
void check_same_data(const data::BatchStream& stream, comm::Communicator& comm) {
  const std::uint64_t mine = stream.fingerprint();
  std::array<std::uint64_t, 2> extremes{mine, ~mine};
  comm.max_host(extremes);
  if (extremes[0] != mine || ~extremes[1] != mine) {
    throw data::DataError("rank " + std::to_string(comm.rank()) + " reads other data than the others (" +
                          stream.describe() + "); give every rank the same files");
  }
}

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
    identity.local_world = world_.ranks_per_node();
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

    const engine::Context context{model_, config_, *device_, *gather_, *reduce_, *control_, gates};
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
};

/// Runs one rank; a failure is told to the other ranks and to the collector before it goes on.
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

}  // namespace
}  // namespace shardscope

int main(int argc, char** argv) {
  using namespace shardscope;
  Options options;
  CLI::App app("One rank of a ZeRO training run; start several with mpirun.", "zero_train");
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return first_of_launch() ? app.exit(error) : 0;
    if (first_of_launch()) {
      std::fprintf(stderr, "shardscope: %s; see zero_train --help\n", error.what());
    }
    return 2;
  }

  std::unique_ptr<comm::World> world;
  try {
    engine::StopSignals signals([] { instrumentation::GateKeeper::instance().release_for_shutdown(); });
    comm::WorldOptions world_options;
    world_options.timeout = std::chrono::seconds(options.collective_timeout_s);
    world = comm::make_world(&argc, &argv, world_options);
    train(options, *world, signals);
    return 0;
  } catch (const std::exception& error) {
    // One rank speaks: the first that failed. What it told the others is the cause; the exception may be a
    // wait that ended because of it.
    const std::string first = world ? world->first_failure() : std::string();
    const std::string mine = world ? "rank " + std::to_string(world->rank()) + " failed: " : std::string();
    if (first.empty() || first.rfind(mine, 0) == 0) {
      const std::string cause = first.empty() ? first : first.substr(mine.size());
      const std::string what = error.what();  // not cut to the length of a shared note
      std::fprintf(stderr, "shardscope: %s\n", (what.rfind(cause, 0) == 0 ? what : cause).c_str());
    }
    return 1;
  }
}
