// Stages 0, 1 and 2: all parameters in one flat buffer, always whole on every rank. After the optimizer each
// rank has new values in its own ranges only, which are all-gathered: one all-gather per parameter group, in
// place, or pieces bounded by allgather_bucket_size. Frozen parameters are in a separate buffer that is never
// communicated.
//
// [Note: owned ranges in pieces]
// In the first layout of stage 1 (S1) a rank owns a piece of every communication. The optimizer needs one
// range per sub-group, so pieces of several communications have a separate buffer (one set of parameters / n
// beyond stage 1's expression), from which each all-gather sends without a copy. If a parameter group is one
// communication its range is in place.
#include <algorithm>
#include <vector>

#include "kernels/ops.h"
#include "runtime/engine/parameters.h"
#include "runtime/execution/events.h"
#include "runtime/offload/transfer.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/stage12.h"

namespace shardscope::engine {
using execution::advance;
using execution::Context;
using execution::emit_on;
using execution::EventPool;

namespace {

class FlatParameters final : public Parameters, private optim::ParamSink {
 public:
  FlatParameters(const Context& context, EventPool& events, const plan::Ownership& ownership)
      : context_(context),
        events_(events),
        ownership_(ownership),
        buffer_(context.device.memory().allocate(context.bytes_of(ownership.flat().flat_elems), kGathered,
                                                 context.device.compute())) {
    if (scattered()) {
      shard_ = context_.device.memory().allocate(owned_bytes(), kShard, context_.device.compute());
      zero(shard_);
    } else {
      context_.device.memory().rebook(owned_bytes(), kGathered, kShard);
    }
    zero(buffer_);
    if (ownership.frozen_elems() == 0) return;
    frozen_ = context_.device.memory().allocate(context.bytes_of(ownership.frozen_elems()), kShard,
                                                context_.device.compute());
  }

  ~FlatParameters() override {
    if (!scattered()) context_.device.memory().rebook(owned_bytes(), kShard, kGathered);
  }

  void begin_iteration(plan::ModelMode, std::uint32_t, std::uint32_t) override {}
  void acquire(plan::ModuleId, ev::Pass) override {}
  void acquire_external(plan::ParamId, plan::ModuleId) override {}
  void release(plan::ModuleId, ev::Pass) override {}
  void end_backward() override {}
  void before_update() override {}

  void after_update(Update update) override {
    if (ownership_.stage() > 0 && weight_change(update) != plan::WeightChange::none) {
      device::Stream& gather = context_.device.gather();
      events_.order(context_.device.compute(), gather);
      emit_on<ev::EventKind::phase_begin>(gather, {.phase = ev::Phase::gather});
      for (std::size_t i = 0; i < ownership_.flat().intervals.size(); ++i) gather_interval(i, gather);
      emit_on<ev::EventKind::phase_end>(gather, {.phase = ev::Phase::gather});
      events_.order(gather, context_.device.compute());
    }
    if (!announced_) announce();
  }

  [[nodiscard]] kernels::ConstPtr get(plan::ParamId param) const override {
    if (!context_.model.params[plan::raw(param)].trainable) return frozen(param);
    return advance(kernels::ConstPtr{buffer_.data(), context_.type()},
                   ownership_.flat().param_offset[plan::raw(param)]);
  }
  [[nodiscard]] optim::ParamSink& sink() override { return *this; }
  [[nodiscard]] optim::StoredPart open_frozen(plan::ParamId param) override {
    return {frozen(param), &context_.device.compute()};
  }
  void close_frozen(plan::ParamId, optim::PartUse) override {}

 private:
  [[nodiscard]] bool in_place() const noexcept override { return true; }
  [[nodiscard]] kernels::DType type() const noexcept override { return context_.type(); }
  [[nodiscard]] kernels::Ptr at(plan::Range range) override { return owned(range); }
  void put(plan::Range range, const void* from, std::uint32_t group) override {
    offload::transfer(context_.device, ev::TransferKind::host_to_device, owned(range).data, from,
                      context_.bytes_of(range.size()), {ev::kNoId, group});
  }
  [[nodiscard]] kernels::Ptr frozen(plan::ParamId param) const {
    return advance(kernels::Ptr{frozen_.data(), context_.type()}, ownership_.frozen_offset(param));
  }
  /// Elements of the owned range, within one sub-group.
  [[nodiscard]] kernels::Ptr owned(plan::Range range) const noexcept {
    if (scattered()) return advance(kernels::Ptr{shard_.data(), context_.type()}, range.begin);
    const std::uint32_t rank = ownership_.stage() == 0 ? 0 : context_.rank();
    return advance(kernels::Ptr{buffer_.data(), context_.type()}, ownership_.flat().flat_begin(range, rank));
  }

  // One buffer, so that all-gathers are in place, but two categories: the owned range is the shard.
  static constexpr device::MemoryTag kGathered{ev::MemoryCategory::param_gathered, ev::kNoId};
  static constexpr device::MemoryTag kShard{ev::MemoryCategory::param_shard, ev::kNoId};
  [[nodiscard]] std::size_t owned_bytes() const { return context_.bytes_of(ownership_.owned_elems()); }

  /// See [Note: owned ranges in pieces].
  [[nodiscard]] bool scattered() const noexcept { return ownership_.flat().groups_in_pieces(); }

  void zero(const device::Buffer& buffer) {
    context_.device.compute().run([data = buffer.data(), bytes = buffer.bytes()](const kernels::Exec& exec) {
      kernels::fill_zero(exec, data, bytes);
    });
  }

  /// In place in the flat buffer: one all-gather, or pieces. The first layout of stage 1 is already cut into
  /// communications.
  void gather_interval(std::size_t index, device::Stream& gather) {
    const plan::FlatLayout& layout = ownership_.flat();
    const plan::Range range = layout.intervals[index].owned;
    if (range.size() == 0 && layout.intervals.size() > 1) return;
    const plan::ZeroConfig& zero = context_.config.zero;
    const bool whole = scattered() || zero.compat.ignore_allgather_bucket_size;
    const std::vector<plan::Range> pieces =
        plan::all_gather_shards(range.size(), context_.world(), zero.allgather_bucket_size, whole);
    const kernels::Ptr flat =
        advance(kernels::Ptr{buffer_.data(), context_.type()}, layout.sub_partition_begin(index, 0));
    if (pieces.size() == 1) {
      const comm::GatherPart part{owned(range).data, flat.data, range.size(), ev::kNoId};
      return context_.gather_comm.all_gather({&part, 1}, context_.type(), gather, {});
    }
    gather_pieces(range, pieces, flat, gather);
  }

  /// Piece i of all ranks is not contiguous in the flat buffer, so it is received in a separate buffer of
  /// about allgather_bucket_size elements, the bound of that setting.
  void gather_pieces(plan::Range owned_range, const std::vector<plan::Range>& pieces, kernels::Ptr flat,
                     device::Stream& gather) {
    std::int64_t longest = 0;
    for (const plan::Range& piece : pieces) longest = std::max(longest, piece.size());
    const device::Buffer arrived =
        context_.device.memory().allocate(context_.bytes_of(longest * context_.world()),
                                          {ev::MemoryCategory::gather_buffer, ev::kNoId}, gather);
    const kernels::ConstPtr from{arrived.data(), context_.type()};
    for (const plan::Range& piece : pieces) {
      const comm::GatherPart part{advance(owned(owned_range), piece.begin).data, arrived.data(), piece.size(),
                                  ev::kNoId};
      context_.gather_comm.all_gather({&part, 1}, context_.type(), gather, {});
      for (std::uint32_t rank = 0; rank < context_.world(); ++rank) {
        if (rank == context_.rank()) continue;
        context_.device.copy_async(advance(flat, rank * owned_range.size() + piece.begin).data,
                                   advance(from, rank * piece.size()).data, context_.bytes_of(piece.size()),
                                   gather);
      }
    }
  }

  /// Called once: every parameter is available and stays so.
  void announce() {
    announced_ = true;
    for (const plan::ParamPlan& param : context_.model.params) {
      emit_on<ev::EventKind::param_status>(context_.device.compute(),
                                           {.status = plan::ParamStatus::available,
                                            .cause = ev::StatusCause::persistent,
                                            .param = plan::raw(param.id),
                                            .elems = param.elems,
                                            .available_elems = context_.model.elems});
    }
  }

  const Context& context_;
  EventPool& events_;
  const plan::Ownership& ownership_;
  device::Buffer buffer_;  ///< [flat_elems] storage type: every trained parameter, padded to ranks
  device::Buffer shard_;   ///< [owned_elems] storage type; only for a scattered owned range
  device::Buffer frozen_;  ///< [frozen_elems] storage type: parameters that are not trained, in order
  bool announced_ = false;
};

}  // namespace

std::unique_ptr<Parameters> make_flat_parameters(const Context& context, EventPool& events,
                                                 const plan::Ownership& ownership) {
  return std::make_unique<FlatParameters>(context, events, ownership);
}

}  // namespace shardscope::engine
