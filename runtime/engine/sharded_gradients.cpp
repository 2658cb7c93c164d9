// Stages 2 and 3: a whole gradient lives from the first kernel that writes it to the end of its reduction;
// what stays is this rank's owned range. Stage 2 reduces each slice to its owner, stage 3 scatters each
// parameter over all ranks.
#include <algorithm>
#include <utility>

#include "kernels/ops.h"
#include "runtime/engine/events.h"
#include "runtime/engine/gradients.h"
#include "runtime/plan/stage12.h"

namespace shardscope::engine {
namespace {

using plan::ParamId;

class ShardedGradients final : public Gradients {
 public:
  ShardedGradients(const Context& context, EventPool& events, const plan::Ownership& ownership)
      : Gradients(context, events, ownership),
        shard_(context.device.memory().allocate(context.bytes_of(ownership.owned_elems()),
                                                {ev::MemoryCategory::grad_shard, ev::kNoId},
                                                context.device.compute())),
        whole_(context.model.params.size()),
        reduced_(context.model.params.size(), false) {
    context_.device.compute().run([data = shard_.data(), bytes = shard_.bytes()](const kernels::Exec& exec) {
      kernels::fill_zero(exec, data, bytes);
    });
  }

  [[nodiscard]] model::GradTarget target(ParamId param) override {
    device::Buffer& buffer = whole_[plan::raw(param)];
    const bool accumulate = static_cast<bool>(buffer);
    if (!accumulate) {
      buffer = context_.device.memory().allocate(context_.bytes_of(context_.elems_of(param)),
                                                 {ev::MemoryCategory::grad_full, plan::raw(param)},
                                                 context_.device.compute());
    }
    return {{buffer.data(), context_.type()}, accumulate};
  }
  [[nodiscard]] kernels::ConstPtr owned() const override { return {shard_.data(), context_.type()}; }

 protected:
  [[nodiscard]] bool reduces_now() const noexcept override { return true; }

  void begin_window() override { std::fill(reduced_.begin(), reduced_.end(), false); }

  void joined(ParamId param) override {
    // From here on it is the content of a bucket, bounded by reduce_bucket_size.
    context_.device.memory().retag(whole_[plan::raw(param)],
                                   {ev::MemoryCategory::reduce_bucket, plan::raw(param)});
  }

  void settle_unused(const std::vector<ParamId>& params) override {
    if (!window().boundary()) return;
    for (const ParamId param : params) {
      if (reduced_[plan::raw(param)]) continue;
      for (const plan::OwnedSlice& slice : ownership_.slices(param, context_.rank())) {
        const kernels::Ptr gradient = owned_at(slice.owned_offset);
        context_.device.compute().run(
            [gradient, bytes = context_.bytes_of(slice.elems)](const kernels::Exec& exec) {
              kernels::fill_zero(exec, gradient.data, bytes);
            });
      }
    }
  }

  void reduce(const std::vector<ParamId>& params, comm::CollectiveLabel label,
              std::vector<device::Buffer>& held) override {
    for (const ParamId param : params) {
      prescale({whole_[plan::raw(param)].data(), context_.type()}, context_.elems_of(param));
    }
    std::vector<Sum> sums;
    const plan::ZeroConfig& zero = context_.config.zero;
    if (ownership_.stage() == 3 && zero.reduce_scatter) {
      reduce_scatter(params, label, sums, held);
    } else if (ownership_.stage() == 2 && plan::reduce_mode(zero) == plan::ReduceMode::to_owners) {
      reduce_to_owners(params, label, sums, held);
    } else {
      all_reduce(params, label, sums);
    }
    for (const Sum& sum : sums) {
      context_.device.reduce().run([sum](const kernels::Exec& exec) {
        if (sum.first) {
          kernels::cast(exec, sum.total, sum.term, sum.elems);
        } else {
          kernels::accumulate(exec, sum.total, sum.term, sum.elems);
        }
      });
    }
    for (const ParamId param : params) {
      held.push_back(std::move(whole_[plan::raw(param)]));
      reduced_[plan::raw(param)] = true;
    }
  }

 private:
  /// Added to the owned gradients of earlier micro-steps after the collective.
  struct Sum {
    kernels::Ptr total;
    kernels::ConstPtr term;
    std::int64_t elems = 0;
    bool first = false;  ///< set instead of added
  };

  [[nodiscard]] kernels::Ptr owned_at(std::int64_t offset) const {
    return advance(kernels::Ptr{shard_.data(), context_.type()}, offset);
  }

  /// Where a reduced piece goes: straight into the owned range in the first micro-step that has it, into
  /// memory of its own, to be added, in later ones.
  [[nodiscard]] void* output(ParamId param, std::int64_t owned_offset, std::int64_t elems,
                             std::vector<Sum>& sums, std::vector<device::Buffer>& held) {
    const kernels::Ptr total = owned_at(owned_offset);
    if (!reduced_[plan::raw(param)]) return total.data;
    held.push_back(context_.device.memory().allocate(context_.bytes_of(elems),
                                                     {ev::MemoryCategory::reduce_bucket, plan::raw(param)},
                                                     context_.device.compute()));
    sums.push_back({total, {held.back().data(), context_.type()}, elems, false});
    return held.back().data();
  }

  void reduce_to_owners(const std::vector<ParamId>& params, comm::CollectiveLabel label,
                        std::vector<Sum>& sums, std::vector<device::Buffer>& held) {
    std::vector<comm::ReducePart> parts;
    for (const ParamId param : params) {
      const kernels::ConstPtr gradient{whole_[plan::raw(param)].data(), context_.type()};
      for (const plan::FlatSlice& slice : ownership_.flat().slices_of(param)) {
        void* out = slice.rank == context_.rank() ? output(param, slice.shard_offset, slice.elems, sums, held)
                                                  : nullptr;
        parts.push_back(
            {advance(gradient, slice.param_offset).data, out, slice.elems, slice.rank, plan::raw(param)});
      }
    }
    context_.reduce_comm.reduce(parts, context_.type(), mean_factor(), context_.device.reduce(), label);
  }

  /// `reduce_scatter: false`, or DeepSpeed's all-reduce over slices: every rank gets the whole bucket and
  /// keeps its own part.
  void all_reduce(const std::vector<ParamId>& params, comm::CollectiveLabel label, std::vector<Sum>& sums) {
    for (const ParamId param : params) {
      const kernels::Ptr gradient{whole_[plan::raw(param)].data(), context_.type()};
      context_.reduce_comm.all_reduce(gradient.data, context_.elems_of(param), context_.type(), mean_factor(),
                                      context_.device.reduce(), label);
      for (const plan::OwnedSlice& slice : ownership_.slices(param, context_.rank())) {
        if (slice.elems == 0) continue;
        sums.push_back({owned_at(slice.owned_offset), advance(gradient, slice.param_offset), slice.elems,
                        !reduced_[plan::raw(param)]});
      }
    }
  }

  void reduce_scatter(const std::vector<ParamId>& params, comm::CollectiveLabel label, std::vector<Sum>& sums,
                      std::vector<device::Buffer>& held) {
    std::vector<comm::ReduceScatterPart> parts;
    for (const ParamId param : params) {
      const plan::ParamPartition& partition = ownership_.shards().partitions[plan::raw(param)];
      void* out = output(param, ownership_.shards().shard_offset[plan::raw(param)], partition.shard_elems,
                         sums, held);
      parts.push_back(
          {whole_[plan::raw(param)].data(), partition.elems, out, partition.shard_elems, plan::raw(param)});
    }
    context_.reduce_comm.reduce_scatter(parts, context_.type(), mean_factor(), context_.device.reduce(),
                                        label);
  }

  device::Buffer shard_;
  std::vector<device::Buffer> whole_;  ///< by ParamId; of the compute stream
  std::vector<bool> reduced_;          ///< by ParamId: the owned range holds a part of this window's sum
};

}  // namespace

std::unique_ptr<Gradients> make_sharded_gradients(const Context& context, EventPool& events,
                                                  const plan::Ownership& ownership) {
  return std::make_unique<ShardedGradients>(context, events, ownership);
}

}  // namespace shardscope::engine
