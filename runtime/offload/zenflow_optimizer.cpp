#include "runtime/offload/zenflow_optimizer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/columns.h"
#include "kernels/ops.h"
#include "runtime/engine/context.h"
#include "runtime/engine/event_pool.h"
#include "runtime/engine/events.h"
#include "runtime/offload/transfer.h"

namespace shardscope::offload {
namespace {

namespace ev = shardscope::instrumentation;
using kernels::DType;
using optim::StateKind;

struct Chosen {
  plan::ColumnSlice slice;
  std::vector<std::int32_t> columns;  ///< ascending; for a matrix
  std::int64_t packed_offset = 0;     ///< of its elements on the device
  std::int64_t packed_elems = 0;
  [[nodiscard]] kernels::MatrixPart part() const noexcept {
    return {slice.elems, slice.columns, slice.first_column};
  }
  [[nodiscard]] bool matrix() const noexcept { return slice.columns > 0; }
};

class ZenFlowOptimizer final : public optim::OptimizerState {
 public:
  explicit ZenFlowOptimizer(ZenFlowInput input)
      : in_(std::move(input)),
        device_(in_.device),
        schedule_(in_.settings, in_.matrices),
        events_(device_),
        pool_(host_pool(device_, in_.pin_memory)) {
    for (const plan::ColumnSlice& slice : in_.slices) {
      chosen_.push_back({slice, {}, packed_capacity_, 0});
      packed_capacity_ += slice.capacity();
      scores_elems_ += slice.columns;
    }
    pieces_ = (in_.elems + in_.piece_elems - 1) / in_.piece_elems;
    const auto host = [&](ev::MemoryCategory category) {
      return pool_.allocate(floats(in_.elems), {category, ev::kNoId}, device_.worker());
    };
    for (auto [buffer, category] : {std::pair{&master_, ev::MemoryCategory::master_weight},
                                    {&momentum_, ev::MemoryCategory::momentum},
                                    {&variance_, ev::MemoryCategory::variance},
                                    {&sums_[0], ev::MemoryCategory::grad_shard}}) {
      *buffer = host(category);
    }
    if (in_.settings.overlap_step) sums_[1] = host(ev::MemoryCategory::grad_shard);
    for (const device::Buffer* buffer : {&master_, &momentum_, &variance_}) {
      device_.worker().run([data = buffer->data(), bytes = buffer->bytes()](const kernels::Exec& exec) {
        kernels::fill_zero(exec, data, bytes);
      });
    }
    for (Piece& piece : staging_) {
      piece.raw =
          pool_.allocate(piece_bytes(in_.gradient.type), {ev::MemoryCategory::temporary}, device_.worker());
      if (in_.gradient.type != DType::f32) {
        piece.wide =
            pool_.allocate(piece_bytes(DType::f32), {ev::MemoryCategory::temporary}, device_.worker());
      }
      if (in_.type != DType::f32) {
        piece.rounded =
            pool_.allocate(piece_bytes(in_.type), {ev::MemoryCategory::temporary}, device_.worker());
      }
      piece.taken = device_.make_event();
      piece.sent = device_.make_event();
    }
    const auto packed = [&](std::size_t bytes, ev::MemoryCategory category) {
      return device_.memory().allocate(bytes, {category, ev::kNoId}, device_.compute());
    };
    packed_master_ = packed(floats(packed_capacity_), ev::MemoryCategory::master_weight);
    packed_momentum_ = packed(floats(packed_capacity_), ev::MemoryCategory::momentum);
    packed_variance_ = packed(floats(packed_capacity_), ev::MemoryCategory::variance);
    packed_gradient_ = packed(bytes_of(packed_capacity_, in_.gradient.type), ev::MemoryCategory::temporary);
    packed_params_ = packed(bytes_of(packed_capacity_, in_.type), ev::MemoryCategory::temporary);
    scores_ = packed(floats(scores_elems_), ev::MemoryCategory::temporary);
    host_scores_ =
        device_.pinned().allocate(floats(scores_elems_), {ev::MemoryCategory::temporary}, device_.compute());
    moving_ =
        device_.pinned().allocate(floats(packed_capacity_), {ev::MemoryCategory::temporary}, device_.copy());
  }

  void begin_update() override {}
  /// Sub-groups have one update together, in finish_update().
  void update(std::uint32_t, std::uint32_t step, const kernels::AdamW& settings) override {
    step_ = step;
    settings_ = settings;
  }

  void finish_update() override {
    const plan::ZenFlowSchedule::Step now = schedule_.begin_step();
    const bool deferred = in_.settings.overlap_step && !now.warm_up;
    if (now.select) select();
    if (schedule_.observes() && !now.warm_up) observe(now.select);
    add_to_sum(now.steps_in_sum == 1);
    if (now.update) {
      if (deferred) publish_deferred();
      begin_deferred(now.steps_in_sum);
      if (deferred) {
        filling_ ^= 1;
      } else {
        queue_deferred(pieces_);
        publish_deferred();
      }
    }
    if (deferred)
      queue_deferred(plan::pieces_due(pieces_, now.update ? 1 : now.steps_in_sum + 1, last_interval_));
    if (chosen_yet_) step_chosen();
    // The next backward writes over the gradients.
    events_.order(device_.copy(), device_.compute());
  }

  void publish_params() override {
    settle();
    return_chosen();
    publish_range();
  }

  void read(StateKind kind, plan::Range range, float* to) override {
    settle();
    return_chosen();
    std::memcpy(to, host(kind) + range.begin, floats(range.size()));
  }
  void write(StateKind kind, plan::Range range, const float* from) override {
    settle();
    return_chosen();
    std::memcpy(host(kind) + range.begin, from, floats(range.size()));
    if (chosen_yet_) fetch_chosen();
  }

 private:
  /// Buffers of a piece; `taken`: the worker has read what came from the device, `sent`: the copy stream what
  /// goes there.
  struct Piece {
    device::Buffer raw, wide, rounded;
    std::unique_ptr<device::Event> taken, sent;
  };

  [[nodiscard]] static std::size_t floats(std::int64_t n) noexcept {
    return static_cast<std::size_t>(n) * sizeof(float);
  }
  [[nodiscard]] static std::size_t bytes_of(std::int64_t n, DType type) noexcept {
    return static_cast<std::size_t>(n) * kernels::size_of(type);
  }
  [[nodiscard]] std::size_t piece_bytes(DType type) const noexcept {
    return bytes_of(std::min(in_.elems, in_.piece_elems), type);
  }
  [[nodiscard]] float* host(StateKind kind) const noexcept {
    const device::Buffer& buffer = kind == StateKind::master     ? master_
                                   : kind == StateKind::momentum ? momentum_
                                                                 : variance_;
    return static_cast<float*>(buffer.data());
  }
  [[nodiscard]] static float* data(const device::Buffer& buffer) noexcept {
    return static_cast<float*>(buffer.data());
  }
  [[nodiscard]] plan::Range piece_range(std::int64_t piece) const noexcept {
    return {piece * in_.piece_elems, std::min(in_.elems, (piece + 1) * in_.piece_elems)};
  }

  // ---- which columns ----

  /// Scores of every matrix's columns in this step, in host memory. The device has nothing else to do: the
  /// norm has just been waited for.
  void score() {
    std::int64_t offset = 0;
    for (const Chosen& item : chosen_) {
      if (!item.matrix()) continue;
      device_.compute().run(
          [sums = data(scores_) + offset, part = item.part(),
           gradient = engine::advance(in_.gradient, item.slice.owned_offset)](const kernels::Exec& exec) {
            kernels::column_abs_sums(exec, sums, gradient, part);
          });
      offset += item.slice.columns;
    }
    device_.copy_async(host_scores_.data(), scores_.data(), floats(scores_elems_), device_.compute());
    device_.compute().synchronize();
  }

  void select() {
    settle();
    // First back, so that what is published holds them too.
    return_chosen();
    publish_deferred();
    score();
    const float* scores = data(host_scores_);
    std::int64_t packed = 0;
    for (Chosen& item : chosen_) {
      item.packed_offset = packed;
      item.packed_elems = item.slice.elems;
      if (item.matrix()) {
        choose(item, scores);
        scores += item.slice.columns;
      }
      packed += item.packed_elems;
    }
    packed_elems_ = packed;
    chosen_yet_ = true;
    fetch_chosen();
  }

  void choose(Chosen& item, const float* scores) {
    const std::int64_t columns = item.slice.columns;
    if (item.slice.elems >= columns) {
      item.columns =
          plan::select_columns({scores, static_cast<std::size_t>(columns)}, in_.settings.topk_ratio);
    } else {
      // Less than a row: only the columns it touches may be chosen.
      std::vector<std::int32_t> touched;
      for (std::int64_t i = 0; i < item.slice.elems; ++i) {
        touched.push_back(static_cast<std::int32_t>((item.slice.first_column + i) % columns));
      }
      std::sort(touched.begin(), touched.end());
      std::vector<float> of_touched;
      for (const std::int32_t column : touched) of_touched.push_back(scores[column]);
      item.columns.clear();
      for (const std::int32_t i : plan::select_columns(of_touched, in_.settings.topk_ratio)) {
        item.columns.push_back(touched[static_cast<std::size_t>(i)]);
      }
    }
    const auto count = static_cast<std::int64_t>(item.columns.size());
    item.packed_elems = kernels::elems_in_columns(item.part(), item.columns.data(), count);
    engine::emit_host(ev::EventKind::columns_selected, {.a = plan::raw(item.slice.param),
                                                        .b = step_,
                                                        .c = static_cast<std::uint32_t>(count),
                                                        .v0 = item.packed_elems,
                                                        .v1 = item.slice.elems});
  }

  /// The masses that vote. `scored`: the scores of this step are there already.
  void observe(bool scored) {
    if (!scored) score();
    std::vector<double> sums(2 * in_.matrices, 0.0);
    const float* scores = data(host_scores_);
    for (const Chosen& item : chosen_) {
      if (!item.matrix()) continue;
      const std::uint32_t matrix = in_.matrix_of[plan::raw(item.slice.param)];
      for (std::int64_t column = 0; column < item.slice.columns; ++column) {
        sums[2 * matrix + 1] += static_cast<double>(scores[column]);
      }
      for (const std::int32_t column : item.columns) sums[2 * matrix] += static_cast<double>(scores[column]);
      scores += item.slice.columns;
    }
    in_.sum_over_ranks(sums);
    std::vector<plan::GradientMass> masses;
    for (std::size_t i = 0; i < in_.matrices; ++i) {
      const auto factor = static_cast<double>(settings_.grad_scale);
      masses.push_back({sums[2 * i] * factor, sums[2 * i + 1] * factor});
    }
    schedule_.observe(masses);
  }

  // ---- chosen elements on the device ----

  template <typename Visit>
  void for_states(const Visit& visit) {
    visit(data(packed_master_), data(master_));
    visit(data(packed_momentum_), data(momentum_));
    visit(data(packed_variance_), data(variance_));
  }

  /// Their states from the device back to their places in host memory. Waits.
  void return_chosen() {
    if (!chosen_yet_) return;
    events_.order(device_.compute(), device_.copy());
    for_states([&](float* packed, float* whole) {
      transfer(device_, ev::TransferKind::device_to_host, moving_.data(), packed, floats(packed_elems_), {});
      events_.order(device_.copy(), device_.worker());
      device_.worker().run([this, whole](const kernels::Exec& exec) {
        for (const Chosen& item : chosen_) {
          float* to = whole + item.slice.owned_offset;
          const float* from = data(moving_) + item.packed_offset;
          if (item.matrix()) {
            kernels::put_columns(exec, {to, DType::f32}, {from, DType::f32}, item.part(), item.columns.data(),
                                 static_cast<std::int64_t>(item.columns.size()));
          } else {
            std::memcpy(to, from, floats(item.packed_elems));
          }
        }
      });
      device_.worker().synchronize();
    });
  }

  /// The reverse. Waits.
  void fetch_chosen() {
    for_states([&](float* packed, float* whole) {
      device_.worker().run([this, whole](const kernels::Exec& exec) {
        for (const Chosen& item : chosen_) {
          const float* from = whole + item.slice.owned_offset;
          float* to = data(moving_) + item.packed_offset;
          if (item.matrix()) {
            kernels::take_columns(exec, {to, DType::f32}, {from, DType::f32}, item.part(),
                                  item.columns.data(), static_cast<std::int64_t>(item.columns.size()));
          } else {
            std::memcpy(to, from, floats(item.packed_elems));
          }
        }
      });
      events_.order(device_.worker(), device_.copy());
      transfer(device_, ev::TransferKind::host_to_device, packed, moving_.data(), floats(packed_elems_), {});
      device_.copy().synchronize();
    });
    events_.order(device_.copy(), device_.compute());
  }

  /// AdamW over the packed elements, then their new values into the parameters.
  void step_chosen() {
    device::Stream& compute = device_.compute();
    const engine::Fields fields{.a = 0, .b = step_, .v0 = packed_elems_};
    engine::emit_on(compute, ev::EventKind::optimizer_begin, fields);
    compute.run([this, settings = settings_](const kernels::Exec& exec) {
      const DType type = in_.gradient.type;
      for (const Chosen& item : chosen_) {
        const kernels::ConstPtr from = engine::advance(in_.gradient, item.slice.owned_offset);
        const kernels::Ptr to =
            engine::advance(kernels::Ptr{packed_gradient_.data(), type}, item.packed_offset);
        if (item.matrix()) {
          kernels::take_columns(exec, to, from, item.part(), item.columns.data(),
                                static_cast<std::int64_t>(item.columns.size()));
        } else {
          kernels::cast(exec, to, from, item.packed_elems);
        }
      }
      // In fp32 the master weights are the parameters.
      kernels::adamw_step(exec, data(packed_master_), data(packed_momentum_), data(packed_variance_),
                          {in_.type == DType::f32 ? nullptr : packed_params_.data(), in_.type},
                          {packed_gradient_.data(), type}, packed_elems_, settings);
    });
    put_chosen();
    engine::emit_on(compute, ev::EventKind::optimizer_end, fields);
  }

  /// Queues the chosen elements' values over whatever the parameters hold.
  void put_chosen() {
    device_.compute().run([this](const kernels::Exec& exec) {
      const kernels::ConstPtr packed{in_.type == DType::f32 ? packed_master_.data() : packed_params_.data(),
                                     in_.type};
      const kernels::Ptr params = in_.params.in_place();
      for (const Chosen& item : chosen_) {
        const kernels::ConstPtr from = engine::advance(packed, item.packed_offset);
        const kernels::Ptr to = engine::advance(params, item.slice.owned_offset);
        if (item.matrix()) {
          kernels::put_columns(exec, to, from, item.part(), item.columns.data(),
                               static_cast<std::int64_t>(item.columns.size()));
        } else {
          kernels::cast(exec, to, from, item.packed_elems);
        }
      }
    });
  }

  // ---- all others in host memory ----

  /// Queues this step's gradients, unscaled and clipped by their own norm, into the sum that fills.
  void add_to_sum(bool first) {
    events_.order(device_.compute(), device_.copy());
    float* sum = data(sums_[filling_]);
    for (std::int64_t i = 0; i < pieces_; ++i) {
      const plan::Range range = piece_range(i);
      Piece& piece = next_piece();
      device_.copy().wait(*piece.taken);
      transfer(device_, ev::TransferKind::device_to_host, piece.raw.data(),
               engine::advance(in_.gradient, range.begin).data, bytes_of(range.size(), in_.gradient.type),
               {});
      events_.order(device_.copy(), device_.worker());
      device_.worker().run(
          [raw = kernels::Ptr{piece.raw.data(), in_.gradient.type},
           wide = kernels::Ptr{piece.wide ? piece.wide.data() : piece.raw.data(), DType::f32},
           to = kernels::Ptr{sum + range.begin, DType::f32}, n = range.size(), first,
           factor = settings_.grad_scale](const kernels::Exec& exec) {
            if (first) {
              kernels::cast(exec, to, raw, n);
              kernels::scale(exec, to, factor, n);
              return;
            }
            if (wide.data != raw.data) kernels::cast(exec, wide, raw, n);
            kernels::scale(exec, wide, factor, n);
            kernels::accumulate(exec, to, wide, n);
          });
      device_.worker().record(*piece.taken);
    }
  }

  /// The sum of `steps` gradients is complete: its update may be queued.
  void begin_deferred(std::int64_t steps) {
    deferred_ = settings_;
    deferred_.grad_scale = 1.0F / static_cast<float>(steps);
    deferred_sum_ = data(sums_[filling_]);
    deferred_done_ = 0;
    unpublished_ = true;
    last_interval_ = steps;
    engine::emit_host(ev::EventKind::deferred_update, {.b = step_,
                                                       .c = static_cast<std::uint32_t>(steps),
                                                       .code = engine::code_of(ev::DeferredState::begun),
                                                       .v0 = in_.elems});
  }

  /// Queues the deferred update up to, not including, piece number `end`.
  void queue_deferred(std::int64_t end) {
    if (!unpublished_ || deferred_done_ >= end) return;
    device::Stream& worker = device_.worker();
    const plan::Range range{piece_range(deferred_done_).begin, piece_range(end - 1).end};
    const engine::Fields fields{.a = 0, .b = step_, .v0 = range.size()};
    engine::emit_on(worker, ev::EventKind::optimizer_begin, fields);
    worker.run([this, range, sum = deferred_sum_, settings = deferred_](const kernels::Exec& exec) {
      kernels::adamw_step(exec, data(master_) + range.begin, data(momentum_) + range.begin,
                          data(variance_) + range.begin, {nullptr, DType::f32},
                          {sum + range.begin, DType::f32}, range.size(), settings);
    });
    engine::emit_on(worker, ev::EventKind::optimizer_end, fields);
    deferred_done_ = end;
  }

  /// What is left of the deferred update, then its parameters to the device; the compute stream waits.
  void publish_deferred() {
    if (!unpublished_) return;
    queue_deferred(pieces_);
    const engine::Fields fields{.b = step_, .v0 = in_.elems};
    engine::emit_on(device_.compute(), ev::EventKind::deferred_wait_begin, fields);
    publish_range();
    engine::emit_on(device_.compute(), ev::EventKind::deferred_wait_end, fields);
    unpublished_ = false;
    engine::emit_host(ev::EventKind::deferred_update,
                      {.b = step_, .code = engine::code_of(ev::DeferredState::published), .v0 = in_.elems});
  }

  void publish_range() {
    events_.order(device_.compute(), device_.copy());
    for (std::int64_t i = 0; i < pieces_; ++i) {
      const plan::Range range = piece_range(i);
      Piece& piece = next_piece();
      const void* from = data(master_) + range.begin;
      if (in_.type != DType::f32) {
        device_.worker().wait(*piece.sent);
        device_.worker().run(
            [to = kernels::Ptr{piece.rounded.data(), in_.type}, from = kernels::ConstPtr{from, DType::f32},
             n = range.size()](const kernels::Exec& exec) { kernels::cast(exec, to, from, n); });
        from = piece.rounded.data();
      }
      events_.order(device_.worker(), device_.copy());
      in_.params.put(range, from, ev::kNoId);
      device_.copy().record(*piece.sent);
    }
    events_.order(device_.copy(), device_.compute());
    // In fp32 the copies read the master weights themselves.
    events_.order(device_.copy(), device_.worker());
  }

  /// Host memory is what it will be: the update in flight is done.
  void settle() {
    if (unpublished_) queue_deferred(pieces_);
    device_.worker().synchronize();
    device_.copy().synchronize();
  }

  Piece& next_piece() {
    next_ = (next_ + 1) % staging_.size();
    return staging_[next_];
  }

  ZenFlowInput in_;
  device::Device& device_;
  plan::ZenFlowSchedule schedule_;
  engine::EventPool events_;
  device::Arena& pool_;

  std::vector<Chosen> chosen_;  ///< by slice; read by queued work, changed only when none is queued
  bool chosen_yet_ = false;
  std::int64_t packed_capacity_ = 0, packed_elems_ = 0, scores_elems_ = 0;
  device::Buffer packed_master_, packed_momentum_, packed_variance_, packed_gradient_, packed_params_;
  device::Buffer scores_, host_scores_;
  device::Buffer moving_;  ///< packed states on their way

  device::Buffer master_, momentum_, variance_;
  std::array<device::Buffer, 2> sums_;
  std::size_t filling_ = 0;  ///< which sum this interval adds to
  std::int64_t pieces_ = 0;
  std::array<Piece, 2> staging_;
  std::size_t next_ = 0;

  kernels::AdamW settings_;  ///< of this step
  std::uint32_t step_ = 0;
  kernels::AdamW deferred_;  ///< of the update in flight
  float* deferred_sum_ = nullptr;
  std::int64_t deferred_done_ = 0;  ///< pieces queued
  bool unpublished_ = false;
  std::int64_t last_interval_ = 1;
};

}  // namespace

std::unique_ptr<optim::OptimizerState> make_zenflow_optimizer(ZenFlowInput input) {
  return std::make_unique<ZenFlowOptimizer>(std::move(input));
}

}  // namespace shardscope::offload
