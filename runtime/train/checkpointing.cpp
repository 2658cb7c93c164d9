#include "runtime/train/checkpointing.h"

#include <algorithm>
#include <array>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "runtime/base/finite.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/rank_file.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/execution/events.h"
#include "runtime/plan/checkpoint_layout.h"
#include "runtime/plan/zenflow.h"
#include "runtime/train/weight_sums.h"

namespace shardscope::train {
namespace {

namespace ev = shardscope::instrumentation;

/// Records `work` as a span on the compute lane, which is idle between two steps.
template <typename Work>
void in_phase(device::Device& device, ev::Phase phase, std::int64_t step, const Work& work) {
  const ev::Fields<ev::EventKind::phase_begin> fields{.phase = phase,
                                                      .step = static_cast<std::uint32_t>(step)};
  execution::emit_on<ev::EventKind::phase_begin>(device.compute(), fields);
  work();
  execution::emit_end_on<ev::EventKind::phase_begin>(device.compute(), fields);
}

/// Whether every rank owns the same elements as when `manifest` was written.
bool same_layout(const checkpoint::Manifest& manifest, const plan::Ownership& ownership) {
  const auto layout = plan::checkpoint_layout(ownership, manifest.params.size());
  const auto same = [](const checkpoint::FileSlice& was, const plan::SavedSlice& is) {
    return was.param == plan::raw(is.param) && was.offset == is.param_offset && was.elems == is.elems;
  };
  return std::equal(manifest.files.begin(), manifest.files.end(), layout.begin(), layout.end(),
                    [&](const checkpoint::RankFile& file, const std::vector<plan::SavedSlice>& slices) {
                      return std::equal(file.slices.begin(), file.slices.end(), slices.begin(), slices.end(),
                                        same);
                    });
}

/// ZenFlow's columns for this rank, if the run needs those of the checkpoint. Throws CheckpointError if it
/// could not be resumed exactly.
std::vector<std::int32_t> columns_to_continue(const execution::Context& context, const engine::Engine& engine,
                                              const checkpoint::CheckpointReader& reader) {
  const checkpoint::Manifest& manifest = reader.manifest();
  if (!manifest.progress.zenflow) return {};
  std::optional<plan::ZenFlowSettings> settings;
  if (context.config.zero.zenflow) settings = plan::resolve_zenflow(*context.config.zero.zenflow);
  const std::string problem =
      plan::why_not_continue(settings, *manifest.progress.zenflow, same_layout(manifest, engine.ownership()));
  if (!problem.empty()) throw checkpoint::CheckpointError("checkpoint: " + reader.folder() + ": " + problem);
  if (!settings || !plan::needs_columns(*settings, *manifest.progress.zenflow)) return {};
  return reader.columns(context.rank());
}

/// Throws for non-finite weights and moments: the run had diverged when it was saved and must be resumed from
/// an earlier checkpoint. Waiting gradient sums (ZenFlow) may be infinite: a step with them is skipped.
void require_finite(const plan::ModelPlan& model, const checkpoint::CheckpointReader& reader,
                    base::StateKind kind, plan::ParamId param, plan::Range range, const float* values) {
  const auto& kinds = base::kStateKinds;
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) return;
  const auto bad = base::first_not_finite({values, static_cast<std::size_t>(range.size())});
  if (!bad) return;
  throw checkpoint::CheckpointError(
      "checkpoint: " + reader.folder() + ": element " +
      std::to_string(range.begin + static_cast<std::int64_t>(*bad)) + " of " + checkpoint::tensor_name(kind) +
      " of " + model.params[plan::raw(param)].name + " is " + base::not_finite_text(values[*bad]) +
      ": the run had diverged when it was saved; continue from an earlier checkpoint");
}

/// One save; every rank creates one and calls the same members in the same order.
class Save {
 public:
  Save(const execution::Context& context, engine::Engine& engine, const SaveOptions& options)
      : context_(context),
        engine_(engine),
        folder_(options.folder),
        keep_(options.keep),
        progress_(engine.progress()),
        layout_(plan::checkpoint_layout(engine.ownership(), context.model.params.size())) {}

  std::string run(const checkpoint::DataPosition& data) {
    together([&] {
      if (first()) folder_.begin(progress_.step);
    });
    checkpoint::RankFile mine;
    together([&] { mine = write_file(); });
    std::vector<checkpoint::RankFile> files = collect(mine);
    together([&] {
      if (first()) folder_.commit(describe(std::move(files), data));
    });
    together([&] {
      if (first()) folder_.prune(progress_.step, keep_);
    });
    return folder_.whole(progress_.step).string();
  }

 private:
  [[nodiscard]] bool first() const { return context_.rank() == 0; }

  /// Runs `work` on every rank. If it fails on one, none continues: the partial folder is removed, the failed
  /// rank throws its error, and the waits of the others end by it.
  template <typename Work>
  void together(const Work& work) {
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    std::array<std::uint64_t, 1> failed{error ? 1U : 0U};
    context_.control_comm.max_host(failed);
    if (failed[0] == 0) return;
    if (first()) folder_.discard(progress_.step);
    if (error) std::rethrow_exception(error);
    context_.control_comm.barrier_host();
  }

  [[nodiscard]] checkpoint::RankFile write_file() {
    const std::vector<plan::SavedSlice>& slices = layout_[context_.rank()];
    std::int64_t elems = 0;
    std::int64_t frozen_elems = 0;
    for (const plan::SavedSlice& slice : slices) {
      (context_.model.params[plan::raw(slice.param)].trainable ? elems : frozen_elems) += slice.elems;
    }
    checkpoint::RankFileWriter writer(folder_.partial(progress_.step), context_.rank(), elems,
                                      engine_.state_kinds(), engine_.chosen_columns(), frozen_elems);
    engine_.read_states(slices, [&](base::StateKind kind, std::int64_t at, std::span<const float> values) {
      writer.write(kind, at, values);
    });
    return writer.finish();
  }

  /// Sizes and checksums of all ranks' files, on every rank.
  [[nodiscard]] std::vector<checkpoint::RankFile> collect(const checkpoint::RankFile& mine) {
    const std::uint32_t world = context_.world();
    std::vector<std::uint64_t> sizes(std::size_t{2} * world);
    sizes[std::size_t{2} * context_.rank()] = mine.bytes;
    sizes[std::size_t{2} * context_.rank() + 1] = mine.blocks.size();
    context_.control_comm.max_host(sizes);
    std::vector<checkpoint::RankFile> files(world);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      checkpoint::RankFile& file = files[rank];
      file.name = checkpoint::rank_file_name(rank);
      file.bytes = sizes[std::size_t{2} * rank];
      file.blocks.resize(sizes[std::size_t{2} * rank + 1]);
      if (rank == context_.rank()) file.blocks = mine.blocks;
      context_.control_comm.max_host(file.blocks);
      for (const plan::SavedSlice& slice : layout_[rank]) {
        file.slices.push_back({plan::raw(slice.param), slice.param_offset, slice.elems});
      }
    }
    return files;
  }

  [[nodiscard]] checkpoint::Manifest describe(std::vector<checkpoint::RankFile> files,
                                              const checkpoint::DataPosition& data) const {
    checkpoint::Manifest manifest;
    manifest.progress = progress_;
    manifest.data = data;
    manifest.world = context_.world();
    manifest.stage = engine_.ownership().stage();
    manifest.type = config::name_of(context_.type());
    checkpoint::describe_model(context_.model, manifest);
    manifest.config_json = config::effective_json(context_.config);
    manifest.files = std::move(files);
    return manifest;
  }

  const execution::Context& context_;
  engine::Engine& engine_;
  const checkpoint::CheckpointFolder folder_;
  const std::int64_t keep_;
  const checkpoint::Progress progress_;
  const std::vector<std::vector<plan::SavedSlice>> layout_;  ///< by rank
};

}  // namespace

std::string save_checkpoint(const execution::Context& context, engine::Engine& engine,
                            const data::BatchStream& stream, const SaveOptions& options) {
  const data::StreamState state = stream.state();
  std::string folder;
  in_phase(context.device, ev::Phase::checkpoint_save, engine.progress().step, [&] {
    folder = Save(context, engine, options)
                 .run({state.epoch, state.position, stream.samples(), options.seed, stream.fingerprint()});
  });
  return folder;
}

void load_checkpoint(const execution::Context& context, engine::Engine& engine, data::BatchStream& stream,
                     const checkpoint::CheckpointReader& reader) {
  const checkpoint::Manifest& manifest = reader.manifest();
  reader.require_model(context.model);
  if (manifest.data.fingerprint != stream.fingerprint() || manifest.data.samples != stream.samples()) {
    throw data::DataError("checkpoint: " + reader.folder() + " was written with other data than " +
                          stream.describe() + "; continue with the data and --context the run began with");
  }
  stream.restore({manifest.data.epoch, manifest.data.position, manifest.progress.micro_step});
  WeightSums sums(engine.ownership());
  in_phase(context.device, ev::Phase::checkpoint_load, manifest.progress.step, [&] {
    engine.resume(manifest.progress, columns_to_continue(context, engine, reader),
                  [&](base::StateKind kind, plan::ParamId param, plan::Range range, float* out) {
                    reader.read(kind, param, range, out);
                    require_finite(context.model, reader, kind, param, range, out);
                    sums.add(param, out, range.size());
                  });
    sums.check(context.control_comm);
  });
}

std::string changed_settings(const std::string& saved_json, const std::string& json) {
  const nlohmann::json before = nlohmann::json::parse(saved_json).flatten();
  const nlohmann::json after = nlohmann::json::parse(json, nullptr, true, true).flatten();
  std::string text;
  const auto warn = [&](const std::string& key, const std::string& was, const std::string& is) {
    std::string name = key.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    text += (text.empty() ? "" : ", ") + name + " " + was + " -> " + is;
  };
  for (const auto& item : before.items()) {
    const auto found = after.find(item.key());
    if (found == after.end()) {
      warn(item.key(), item.value().dump(), "none");
    } else if (*found != item.value()) {
      warn(item.key(), item.value().dump(), found->dump());
    }
  }
  for (const auto& item : after.items()) {
    if (!before.contains(item.key())) warn(item.key(), "none", item.value().dump());
  }
  return text;
}

}  // namespace shardscope::train
