#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "kernels/ops.h"
#include "runtime/execution/context.h"
#include "runtime/execution/event_pool.h"
#include "runtime/execution/events.h"
#include "runtime/offload/optimizer.h"

namespace shardscope::offload {
namespace {

namespace ev = shardscope::instrumentation;
using base::StateKind;

/// Elements per piece of the update; a piece is copied to the device while the next is computed. Small enough
/// to stay in a cache, large enough for a transfer at full speed.
constexpr std::int64_t kPieceElems = std::int64_t{1} << 20;

class HostOptimizer final : public optim::OptimizerState {
 public:
  HostOptimizer(device::Device& device, optim::ParamSink& params, kernels::DType type,
                kernels::ConstPtr gradient, std::unique_ptr<StateStorage> states, device::Arena& staging)
      : device_(device),
        params_(params),
        type_(type),
        gradient_(gradient),
        states_(std::move(states)),
        first_(states_->tiles().front().range.begin),
        events_(device) {
    std::int64_t longest = 0;
    for (const plan::UpdateTile& tile : states_->tiles()) longest = std::max(longest, tile.range.size());
    piece_elems_ = std::min(longest, kPieceElems);
    // In fp32 no staging: the parameters are copied from the master weights themselves.
    if (type_ == kernels::DType::f32) return;
    for (Staging& slot : staging_) {
      // Of the worker stream, which is the first to write to it.
      slot.buffer = staging.allocate(static_cast<std::size_t>(piece_elems_) * kernels::size_of(type_),
                                     {ev::MemoryCategory::temporary}, device_.worker());
      slot.sent = device_.make_event();
    }
  }

  // The host's update reads gradients that the compute stream may still write.
  void begin_update() override {
    end_visit();
    events_.order(device_.compute(), device_.worker());
  }
  // Queues only. The worker updates the pieces in order and takes the timestamps of begin and end.
  void update(std::uint32_t group, std::uint32_t step, const kernels::AdamW& settings) override {
    device::Stream& worker = device_.worker();
    std::int64_t elems = 0;
    for (const plan::UpdateTile& tile : states_->tiles())
      elems += tile.group == group ? tile.range.size() : 0;
    const ev::Fields<ev::EventKind::optimizer_begin> fields{.sub_group = group, .step = step, .elems = elems};
    execution::emit_on<ev::EventKind::optimizer_begin>(worker, fields);
    for_tiles_of(
        group, TileUse::changed,
        [&](const TileStates& states, plan::Range piece, std::int64_t at, kernels::Ptr rounded) {
          worker.run([states, at, rounded, gradient = execution::advance(gradient_, piece.begin - first_),
                      n = piece.size(), settings](const kernels::Exec& exec) {
            // In place, fp32; the gradient in its own type. `rounded` takes the new parameters in storage
            // type; null in fp32.
            kernels::adamw_step(exec, states.master + at, states.momentum + at, states.variance + at, rounded,
                                gradient, n, settings);
          });
        });
    execution::emit_end_on<ev::EventKind::optimizer_begin>(worker, fields);
  }

  void finish_update() override {
    states_->finish();
    events_.order(device_.worker(), device_.compute());
    // Compute-stream work queued from here on sees the new parameters.
    events_.order(device_.copy(), device_.compute());
  }

  // Like an update without AdamW: the parameters are written from the master weights.
  void publish_params() override {
    begin_update();
    std::uint32_t group = states_->tiles().front().group;
    for (; group <= states_->tiles().back().group; ++group) {
      for_tiles_of(group, TileUse::read,
                   [&](const TileStates& states, plan::Range piece, std::int64_t at, kernels::Ptr rounded) {
                     // fp32: put() reads the master weights directly, without rounding.
                     if (rounded.data == nullptr) return;
                     device_.worker().run(
                         [from = states.master + at, rounded, n = piece.size()](const kernels::Exec& exec) {
                           kernels::cast(exec, rounded, {from, kernels::DType::f32}, n);
                         });
                   });
    }
    finish_update();
  }

  [[nodiscard]] std::string describe_swap() const override { return states_->describe_swap(); }

  void read(StateKind kind, plan::Range range, float* to) override {
    visit(kind, range, TileUse::read,
          [&](float* state, std::int64_t at, std::size_t bytes) { std::memcpy(to + at, state, bytes); });
  }
  void write(StateKind kind, plan::Range range, const float* from) override {
    visit(kind, range, TileUse::changed,
          [&](float* state, std::int64_t at, std::size_t bytes) { std::memcpy(state, from + at, bytes); });
  }

 private:
  struct Staging {
    device::Buffer buffer;                ///< [piece_elems_] of type_, pinned; none where type_ is fp32
    std::unique_ptr<device::Event> sent;  ///< recorded on the copy stream: the buffer may be written again
  };

  /// Calls make(states, piece, its first element within the tile, destination of its 16-bit values) for every
  /// piece, in order, which queues work on the worker stream, and sends the results to the parameters.
  template <typename Make>
  void for_tiles_of(std::uint32_t group, TileUse use, const Make& make) {
    const std::vector<plan::UpdateTile>& tiles = states_->tiles();
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      if (tiles[i].group != group) continue;
      const plan::Range range = tiles[i].range;
      // May queue the read of this tile and of the next one; the worker stream waits, not this thread.
      const TileStates states = states_->open(i);
      for (std::int64_t begin = range.begin; begin < range.end; begin += piece_elems_) {
        const plan::Range piece{begin, std::min(range.end, begin + piece_elems_)};
        // Within the tile: its states begin at the tile's first element.
        const std::int64_t at = begin - range.begin;
        Staging& slot = staging_[next_slot_];
        next_slot_ = (next_slot_ + 1) % staging_.size();
        // Two buffers alternate: the worker rounds piece k + 1 while the copy stream sends piece k, and waits
        // only if the copy of piece k - 1 has not finished.
        if (slot.sent) device_.worker().wait(*slot.sent);
        make(states, piece, at, {slot.buffer.data(), type_});
        events_.order(device_.worker(), device_.copy());
        // Queues on the copy stream, which was just ordered after the update of the piece.
        params_.put(piece, slot.buffer ? slot.buffer.data() : states.master + at, group);
        if (slot.sent) device_.copy().record(*slot.sent);
      }
      // Everything that uses the tile has been queued.
      states_->close(i, use);
    }
  }

  /// Host access between steps: calls access(state, first element of it within `range`, bytes) tile by tile.
  /// The last tile stays open, because callers that read piece by piece access the same tile again.
  template <typename Access>
  void visit(StateKind kind, plan::Range range, TileUse use, const Access& access) {
    const std::vector<plan::UpdateTile>& tiles = states_->tiles();
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const plan::Range part = plan::intersect(range, tiles[i].range);
      if (part.size() == 0) continue;
      if (!visited_ || visited_->tile != i) {
        end_visit();
        visited_ = Visit{i, states_->open(i)};
        // The host accesses the states itself, so the read of the tile must have finished.
        device_.worker().synchronize();
      }
      // Stays `changed` when a later access of the visit only reads.
      if (use == TileUse::changed) visited_->use = use;
      const TileStates& states = visited_->states;
      float* base = kind == StateKind::master     ? states.master
                    : kind == StateKind::momentum ? states.momentum
                                                  : states.variance;
      access(base + (part.begin - tiles[i].range.begin), part.begin - range.begin,
             static_cast<std::size_t>(part.size()) * sizeof(float));
    }
  }

  void end_visit() {
    if (!visited_) return;
    // Closed as `changed` after a write(), so its values are written to the swap file.
    states_->close(visited_->tile, visited_->use);
    states_->finish();
    visited_.reset();
  }

  device::Device& device_;
  optim::ParamSink& params_;
  const kernels::DType type_;
  const kernels::ConstPtr gradient_;
  const std::unique_ptr<StateStorage> states_;
  const std::int64_t first_;  ///< of the owned range: where the gradients begin
  execution::EventPool events_;
  std::int64_t piece_elems_ = 0;
  std::array<Staging, 2> staging_;  ///< unused in fp32
  std::size_t next_slot_ = 0;
  struct Visit {
    std::size_t tile = 0;
    TileStates states;
    TileUse use = TileUse::read;
  };
  std::optional<Visit> visited_;
};

}  // namespace

std::unique_ptr<optim::OptimizerState> make_host_optimizer(device::Device& device, optim::ParamSink& params,
                                                           kernels::DType type, kernels::ConstPtr gradient,
                                                           std::unique_ptr<StateStorage> states,
                                                           device::Arena& staging) {
  return std::make_unique<HostOptimizer>(device, params, type, gradient, std::move(states), staging);
}

}  // namespace shardscope::offload
