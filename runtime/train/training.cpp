#include "runtime/train/training.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "instrumentation/emission_cost.h"
#include "instrumentation/emitter.h"
#include "instrumentation/error_text.h"
#include "instrumentation/event_observer.h"
#include "instrumentation/gate.h"
#include "instrumentation/gpu_monitor.h"
#include "instrumentation/nvtx_ranges.h"
#include "instrumentation/requests.h"
#include "runtime/base/build_facts.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/comm/zero_communicators.h"
#include "runtime/config/config.h"
#include "runtime/data/prefetched_stream.h"
#include "runtime/data/stream.h"
#include "runtime/device/device.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/run_log.h"
#include "runtime/engine/run_tables.h"
#include "runtime/plan/fault.h"
#include "runtime/plan/model_plan.h"
#include "runtime/profile/gpu_recorder.h"
#include "runtime/train/checkpointing.h"
#include "runtime/train/device_choice.h"
#include "runtime/train/initial_weights.h"
#include "runtime/train/native_stacks.h"
#include "runtime/train/rank_agreement.h"
#include "runtime/train/run_ranks.h"
#include "runtime/train/setup.h"
#include "runtime/train/terminal.h"
#include "runtime/train/training_log.h"

namespace shardscope::train {
namespace {

using engine::StopRequest;

void save_weights(const Options& options, const plan::ModelPlan& model, std::uint32_t rank,
                  engine::Engine& engine) {
  std::optional<checkpoint::WeightWriter> writer;
  if (rank == 0) writer.emplace(options.save, model, kernels::DType::f32);
  engine.consolidate(
      [&](plan::ParamId param, std::span<const float> values) { writer->write(param, values); });
  if (writer) writer->finish();
}

void print_progress(const Options& options, const config::TrainingConfig& config,
                    const engine::StepResult& result) {
  const std::int64_t every = std::max<std::int64_t>(1, config.steps_per_print);
  if (options.quiet || config.log.level > config::LogLevel::info ||
      (result.step % every != 0 && result.step + 1 != options.steps))
    return;
  double loss = 0;
  for (const float value : result.losses) loss += value;
  std::printf("step %lld  loss %.4f  grad norm %.4f  lr %.3g%s\n", static_cast<long long>(result.step),
              loss / static_cast<double>(result.losses.size()), result.grad_norm, result.learning_rate,
              result.skipped ? "  skipped: gradients not finite" : "");
  std::fflush(stdout);
}

/// One rank's run, with everything it owns; members are in reverse order of destruction.
class Training {
 public:
  Training(const Options& options, comm::World& world, engine::StopSignals& signals)
      : options_(options),
        world_(world),
        signals_(signals),
        config_(load_training_config(options, world.size())),
        model_(load_model(options, config_)) {
    world.set_link(config_.shardscope.link);
    world.set_sanity_checks(config_.zero.enable_sanity_checks);
    if (config_.zero.ranks_per_node > 0) {
      world.set_ranks_per_node(static_cast<std::uint32_t>(config_.zero.ranks_per_node));
    }
    if (!options.fault.empty()) {
      const plan::Fault fault = plan::parse_fault(options.fault);
      plan::check_fault(fault, {model_, world.size(), options.steps, config_.batch.accumulation_steps,
                                !options.checkpoint.empty(), !options.resume.empty(),
                                config_.shardscope.data_parallel_groups.empty()});
      fault_text_ = plan::describe(fault);
      if (fault.rank == world.rank()) fault_ = fault;
    }
    ranks_.emplace(world, config_.shardscope.data_parallel_groups);
    comm::World& copy = ranks_->copy();
    data::StreamOptions stream;
    const bool tokens = model_.spec.input == plan::InputKind::tokens;
    stream.path = options.data.empty() && tokens ? options.default_text : options.data;
    stream.micro_batch = config_.batch.micro_batch_size;
    stream.micro_batches = config_.shardscope.micro_batches;
    stream.context = options.context;
    stream.rank = copy.rank();
    stream.world = copy.size();
    keep_weights();
    open_checkpoint();
    stream.seed = seed_;
    open_data(stream);
    if (config_.zero.zenflow && config_.zero.zenflow->steps_per_epoch == 0) {
      config_.zero.zenflow->steps_per_epoch = static_cast<std::int64_t>(
          static_cast<double>(data_->samples()) /
          stream.micro_batches.samples_of_micro_step(stream.micro_batch, copy.size()));
    }
    if (!options.init.empty()) init_.emplace(options.init, model_);
    // Before any other collective: ranks that disagree about those would only wait for one another.
    control_ = copy.make_communicator("control");
    everybody_ = ranks_->make_everybody();
    peers_ = ranks_->make_peers();
    check_same_settings(
        compared_settings({base::version(), options_, config_, model_, *data_, eval_data_.get(),
                           resume_ ? &*resume_ : nullptr, init_ ? &*init_ : nullptr}),
        of_all());
    if (const std::int64_t depth = config_.shardscope.data_prefetch; depth > 0) {
      data_ = data::read_ahead(std::move(data_), static_cast<std::size_t>(depth));
    }
    device_ = open_device(options.device, world, copy, std::chrono::seconds(options.collective_timeout_s));
    gather_ = copy.make_communicator("gather");
    reduce_ = copy.make_communicator("reduce");
    groups_ = std::make_unique<comm::ZeroCommunicators>(
        config_.zero, plan::Topology{copy.size(), copy.node_size()}, copy.rank(),
        [&copy](const std::string& name, const comm::Group& group) {
          return copy.make_communicator(name, group);
        });
  }

  ~Training() {
    // Gates call back into this device: they must not do so after its destruction.
    instrumentation::GateKeeper::instance().set_on_hold({});
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// Starts publishing; the result must be ended with finish().
  [[nodiscard]] std::unique_ptr<instrumentation::Publisher> make_publisher() {
    instrumentation::PublisherOptions publish;
    publish.endpoint = options_.publish;
    publish.detail = config_.shardscope.detail;
    publish.ring_events = static_cast<std::size_t>(config_.shardscope.ring_events);
    publish.queue_bytes = static_cast<std::size_t>(config_.shardscope.queue_bytes);
    publish.key_file = options_.key.empty() ? config_.shardscope.key : options_.key;
    publish.linger_s = config_.shardscope.linger_s;
    engine::RunIdentity identity;
    identity.run_id = agree_on_run_id(options_, of_all());
    identity.device = device_->describe() + ", " + gather_->describe();
    identity.versions = std::string("shardscope ") + base::version();
    identity.rank = world_.rank();
    identity.world = world_.size();
    identity.local_world = world_.node_size();
    std::vector<std::string> paths;
    for (const plan::ModulePlan& module : model_.modules) paths.push_back(module.path);
    instrumentation::nvtx::name_modules(std::move(paths));
    const instrumentation::RunTables tables = engine::make_run_tables(model_, config_, identity);
    if (world_.rank() == 0) start_log(tables);
    // If the signal is in use, the response says so.
    static_cast<void>(prepare_native_stacks());
    instrumentation::Requests::set_answer(
        [](instrumentation::Request) { return native_stacks(); });  // there is one request
    return std::make_unique<instrumentation::Publisher>(publish, tables);
  }

  void run(instrumentation::Publisher& publisher) {
    // The device allocated memory before the publisher existed.
    for (device::Arena* arena : {&device_->memory(), &device_->pinned(), &device_->host()})
      arena->emit_used();
    auto& gates = instrumentation::GateKeeper::instance();
    gates.set_on_hold([this] { device_->synchronize(); });
    gates.set_module_params([this](std::uint32_t module, std::uint32_t param) {
      const std::vector<plan::ParamId>& params = model_.modules[module].params;
      return std::find(params.begin(), params.end(), plan::ParamId{param}) != params.end();
    });
    if (world_.rank() == 0) {
      for (const std::string& warning : config_.warnings) {
        publisher.message(instrumentation::Severity::warning, warning);
        if (config_.log.level <= config::LogLevel::warning) report("warning: " + warning);
      }
      if (config_.log.dump_state) print_line("configuration: " + config::effective_json(config_));
      if (!fault_text_.empty()) warn_of_fault(publisher);
      publisher.message(instrumentation::Severity::info, data_->describe());
      if (eval_data_ != nullptr) {
        publisher.message(instrumentation::Severity::info, "evaluation: " + describe_evaluation());
      }
    }

    const execution::Context context{model_,    config_, *device_,      *gather_,    *reduce_,
                                     *control_, gates,   groups_.get(), peers_.get()};
    engine::Engine engine(context);
    engine.name_kernels([&publisher](const std::string& name) { return publisher.name_id(name); });
    const auto gpu = profile::record_gpu(
        *device_, [&publisher](const std::string& name) { return publisher.name_id(name); });
    sample_gpu(publisher);
    if (gpu) gpu->flush();  // if it is recording from the first step on
    for (const std::string& text : engine.describe_swap()) {
      publisher.message(instrumentation::Severity::info, text);
      if (world_.rank() == 0 && !options_.quiet) print_line(text);
    }
    if (resume_) {
      resume(context, engine, publisher);
    } else {
      if (const std::string how = describe_initial_weights(config_); !how.empty() && world_.rank() == 0) {
        publish_note(publisher, how);
      }
      set_initial_weights({options_, config_, model_, init_ ? &*init_ : nullptr, *device_, *control_},
                          engine);
      init_.reset();
    }
    if (fault_) engine.rehearse(*fault_);
    engine::RunLog log;
    for (std::int64_t step = engine.progress().step; step < options_.steps; ++step) {
      if (fault_ && fault_->step == step) {
        if (fault_->kind == plan::FaultKind::return_early) return;
        if (fault_->kind == plan::FaultKind::fewer_steps) break;
        do_otherwise(context, engine, publisher);
      }
      const StopRequest request = signals_.received() != 0 ? StopRequest::stop : StopRequest::go_on;
      const engine::StepResult result =
          engine.step([this](data::HostBatch& batch) { data_->next(batch); }, request);
      if (!options_.losses.empty()) log.add(result);
      if (world_.rank() == 0) print_progress(options_, config_, result);
      if (result.stop == StopRequest::stop) {
        publisher.message(instrumentation::Severity::warning,
                          "stopped by a signal after step " + std::to_string(step));
        break;
      }
      const std::int64_t made = step + 1;
      if (eval_data_ != nullptr && made % config_.shardscope.eval_interval == 0) evaluate(engine, log);
      if (options_.checkpoint_every > 0 && made % options_.checkpoint_every == 0 && made < options_.steps) {
        save(context, engine, publisher);
      }
    }
    engine.synchronize();
    if (const auto residual = device_->stamp_residual_ns()) {
      publisher.message(instrumentation::Severity::info, instrumentation::stream_times_text(*residual));
    }
    if (!options_.checkpoint.empty()) save(context, engine, publisher);
    if (ranks_->writes()) {
      if (!options_.losses.empty()) log.write(options_.losses, *control_);
      if (!options_.save.empty()) save_weights(options_, model_, world_.rank(), engine);
    }
    control_->barrier_host();  // no rank leaves while another still reads its memory
  }

 private:
  /// The communicator of all ranks of the run.
  [[nodiscard]] comm::Communicator& of_all() const { return everybody_ ? *everybody_ : *control_; }

  /// Opens the training data and, with evaluation, the evaluation data: a separate source, or the end of the
  /// training data.
  void open_data(data::StreamOptions stream) {
    const config::ShardscopeConfig& ours = config_.shardscope;
    if (ours.eval_interval == 0) {
      if (!options_.eval_data.empty()) {
        throw std::invalid_argument(
            "--eval-data " + options_.eval_data +
            ": nothing evaluates on it; set shardscope.eval_interval to a number of steps");
      }
      data_ = data::open_stream(model_.spec, stream);
      return;
    }
    const bool holds_out = options_.eval_data.empty();
    stream.held_out = ours.eval_fraction;
    stream.part = holds_out ? data::Part::training : data::Part::all;
    data_ = data::open_stream(model_.spec, stream);
    if (holds_out) {
      stream.part = data::Part::held_out;
    } else {
      stream.path = options_.eval_data;
    }
    eval_data_ = data::open_stream(model_.spec, stream);
    eval_batches_ = ours.eval_batches;
    const std::int64_t samples = eval_data_->samples();
    if (samples == 0) return;  // endless
    const std::int64_t at_once = stream.micro_batches.largest({stream.micro_batch, 0}).samples *
                                 static_cast<std::int64_t>(stream.world);
    eval_batches_ = std::min(eval_batches_, samples / at_once);  // no sample twice
    if (eval_batches_ == 0) {
      throw data::DataError("evaluation data: " + eval_data_->describe() +
                            ": one micro-batch of every rank takes " + std::to_string(at_once) +
                            " samples; give more with --eval-data or raise shardscope.eval_fraction");
    }
  }

  [[nodiscard]] std::string describe_evaluation() const {
    return eval_data_->describe() + "; " + std::to_string(eval_batches_) +
           (eval_batches_ == 1 ? " batch" : " batches") + " of each rank, the same every time, after every " +
           (config_.shardscope.eval_interval == 1
                ? "step"
                : std::to_string(config_.shardscope.eval_interval) + " steps");
  }

  /// On the same samples every time, so that the curve shows only the effect of training.
  void evaluate(engine::Engine& engine, engine::RunLog& log) {
    eval_data_->restore({0, 0});
    const engine::Evaluation evaluation =
        engine.evaluate([this](data::HostBatch& batch) { eval_data_->next(batch); }, eval_batches_);
    if (!options_.losses.empty()) log.add(evaluation);
    if (world_.rank() != 0 || options_.quiet) return;
    std::printf("step %lld  held-out loss %.4f\n", static_cast<long long>(evaluation.step), evaluation.loss);
    std::fflush(stdout);
  }

  /// Output of rank 0 besides its progress. It is computed from events, so it lacks those that are not
  /// emitted.
  void start_log(const instrumentation::RunTables& tables) {
    const config::LogConfig& log = config_.log;
    LogParts parts{log.wall_clock_breakdown, log.memory_breakdown, log.level == config::LogLevel::debug};
    const auto needs = [this](bool& part, const char* key, instrumentation::Detail detail) {
      if (!part) return;
      const bool emits = !options_.publish.empty();
      if (emits && config_.shardscope.detail >= detail) return;
      part = false;
      config_.warnings.push_back(
          std::string(key) + ": not printed, " +
          (emits ? std::string("shardscope.detail is ") + name_of(config_.shardscope.detail) +
                       "; set it to " + name_of(detail) + " or more"
                 : "it is made of the events of a run with a collector (--publish), which this run is not"));
    };
    needs(parts.times, "wall_clock_breakdown", instrumentation::Detail::phases);
    needs(parts.memory, "memory_breakdown", instrumentation::Detail::params);
    needs(parts.decisions, "log_level debug", instrumentation::Detail::params);
    if (!parts.any()) return;
    auto lines = std::make_shared<TrainingLog>(
        parts, tables, [](const std::string& line) { print_line("[Rank 0] " + line); });
    instrumentation::set_event_observer([lines](std::span<const instrumentation::Event> events,
                                                std::uint64_t dropped) { lines->add(events, dropped); });
  }

  /// Energy and clocks of the rank's GPU, where the driver reports them.
  void sample_gpu(instrumentation::Publisher& publisher) const {
    const std::string id = device_->pci_bus_id();
    if (id.empty()) return;
    try {
      publisher.sample_gpu(std::make_unique<instrumentation::GpuMonitor>(id));
    } catch (const std::runtime_error& error) {
      publisher.message(instrumentation::Severity::info,
                        std::string("energy and clocks of the GPU are not recorded: ") + error.what());
    }
  }

  /// In the recording and on the terminal: such a run must not look like a healthy one.
  void warn_of_fault(instrumentation::Publisher& publisher) const {
    const std::string text = std::string(plan::kRehearses) + fault_text_ + " on purpose";
    publisher.message(instrumentation::Severity::warning, text);
    report("warning: " + text);
  }

  /// Injects faults before a step that do not leave the loop.
  void do_otherwise(const execution::Context& context, engine::Engine& engine,
                    instrumentation::Publisher& publisher) {
    if (fault_->kind == plan::FaultKind::save_alone) save(context, engine, publisher);
    if (fault_->kind == plan::FaultKind::stop) std::raise(SIGSTOP);
    if (fault_->kind == plan::FaultKind::die) std::raise(SIGKILL);
  }

  /// Checks before the first step: files of an earlier run are not replaced without --overwrite, and the
  /// folder must exist.
  void keep_weights() const {
    namespace fs = std::filesystem;
    if (world_.rank() != 0 || options_.save.empty()) return;
    const fs::path folder = fs::absolute(options_.save).parent_path();
    if (!fs::is_directory(folder) || fs::is_directory(options_.save)) {
      throw std::invalid_argument("--save " + options_.save + ": " +
                                  (fs::is_directory(folder) ? "is a folder; name a file in it"
                                                            : "there is no such folder; make it first"));
    }
    if (!options_.overwrite && fs::exists(options_.save)) {
      throw std::invalid_argument("--save " + options_.save +
                                  ": exists; choose another name or give --overwrite");
    }
  }

  /// Opens the checkpoint to resume from, and checks that the folder to save to is free for this run.
  void open_checkpoint() {
    const auto canonical = [](const std::string& path) { return std::filesystem::weakly_canonical(path); };
    if (!options_.resume.empty()) {
      resume_.emplace(options_.resume);
      seed_ = resume_->manifest().data.seed;
      if (const std::int64_t made = resume_->manifest().progress.step; made >= options_.steps) {
        throw std::invalid_argument("--steps " + std::to_string(options_.steps) + ": the checkpoint " +
                                    resume_->folder() + " has made " + std::to_string(made) +
                                    " already; give more");
      }
    }
    if (options_.checkpoint.empty()) return;
    const bool continues =
        resume_ && canonical(resume_->folder()).parent_path() == canonical(options_.checkpoint);
    if (!continues && checkpoint::CheckpointFolder(options_.checkpoint).holds_checkpoint()) {
      throw std::invalid_argument("--checkpoint " + options_.checkpoint +
                                  ": holds the checkpoints of another run; continue it with --resume " +
                                  options_.checkpoint + ", or give another folder");
    }
  }

  void resume(const execution::Context& context, engine::Engine& engine,
              instrumentation::Publisher& publisher) {
    load_checkpoint(context, engine, *data_, *resume_);
    if (world_.rank() != 0) return;
    const checkpoint::Manifest& manifest = resume_->manifest();
    const std::string changed = changed_settings(manifest.config_json, config::effective_json(config_));
    publish_note(publisher, "continues " + resume_->folder() + " of " + std::to_string(manifest.world) +
                                " ranks, stage " + std::to_string(manifest.stage) +
                                (changed.empty() ? "" : "; changed settings: " + changed));
  }

  void save(const execution::Context& context, engine::Engine& engine,
            instrumentation::Publisher& publisher) {
    if (!ranks_->writes()) return;
    const std::string folder =
        save_checkpoint(context, engine, *data_, {options_.checkpoint, options_.keep, seed_});
    if (world_.rank() == 0) publish_note(publisher, "checkpoint " + folder);
  }

  void publish_note(instrumentation::Publisher& publisher, const std::string& text) const {
    publisher.message(instrumentation::Severity::info, text);
    if (options_.quiet) return;
    print_line(text);
  }

  const Options& options_;
  comm::World& world_;
  engine::StopSignals& signals_;
  config::TrainingConfig config_;
  plan::ModelPlan model_;
  std::string fault_text_;              ///< description of --fault, on every rank; empty: none
  std::optional<plan::Fault> fault_;    ///< of this rank
  std::uint64_t seed_ = options_.seed;  ///< of the data's order
  std::optional<checkpoint::CheckpointReader> resume_;
  std::optional<checkpoint::WeightReader> init_;
  std::unique_ptr<data::BatchStream> data_;
  std::unique_ptr<data::BatchStream> eval_data_;  ///< null without evaluation
  std::int64_t eval_batches_ = 0;                 ///< of each rank in one evaluation
  std::unique_ptr<device::Device> device_;
  std::optional<RunRanks> ranks_;
  std::unique_ptr<comm::Communicator> gather_, reduce_, control_;  ///< of this copy of the model
  std::unique_ptr<comm::Communicator> everybody_, peers_;          ///< null: there is one copy
  std::unique_ptr<comm::ZeroCommunicators> groups_;
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
    world.fail(instrumentation::error_text(error));
    if (publisher) publisher->finish(1, world.first_failure());
    throw;
  }
}

}  // namespace shardscope::train
