// Stages 2 and 3, and 1 with DeepSpeed's gradient buffers: a whole gradient exists from the first kernel that
// writes it to the end of its reduction; only this rank's owned range is kept. Stage 2 reduces each slice to
// its owner, stage 3 reduce-scatters each parameter over all ranks.
//
// [Note: gradients that span ranks]
// A gradient is freed when it is reduced, so it costs stage 2 only its slice on each rank, however many ranks
// it spans: 2S + 14S/n even for a model of one parameter. DeepSpeed frees by the parameter: a rank that owns
// any part keeps all of it until the step, and a model of one parameter costs what stage 1 does (V6).
// compat.keep_spanning_gradients does the same, so that both can be compared.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "kernels/ops.h"
#include "runtime/engine/gradients.h"
#include "runtime/engine/quantized_reduce.h"
#include "runtime/execution/events.h"
#include "runtime/plan/gradient_buckets.h"
#include "runtime/plan/stage12.h"

namespace shardscope::engine {
using execution::advance;
using execution::bytes_of;
using execution::Context;
using execution::EventPool;

namespace {

using plan::ParamId;

class ShardedGradients final : public Gradients {
 public:
  ShardedGradients(const Context& context, EventPool& events, const plan::Ownership& ownership)
      : Gradients(context, events, ownership),
        frees_owned_(frees_owned(context.config.zero)),
        whole_(context.model.params.size()),
        places_(context.model.params.size()),
        kept_(context.model.params.size()),
        reduced_(context.model.params.size(), false),
        replica_(context.groups != nullptr ? context.groups->replica.get() : nullptr) {
    if (context.groups != nullptr && context.groups->reduce_inter) quantized_.emplace(context);
    if (sums_apart()) sums_.resize(context.model.params.size());
    // Otherwise allocated from the first gradient of a reducing backward until the optimizer has copied it.
    if (!frees_owned_) allocate_owned();
  }

  [[nodiscard]] model::GradTarget target(ParamId param) override {
    device::Buffer& buffer = whole_[plan::raw(param)];
    const bool accumulate = static_cast<bool>(buffer);  // in stage 1 from an earlier micro-step too
    if (!accumulate) buffer = allocate_whole(param, context_.type());
    return {{buffer.data(), context_.type()}, accumulate};
  }
  // HostGradients holds the owned range from device_elems_ on.
  [[nodiscard]] optim::GradientParts owned() const override {
    return {{shard_.data(), context_.sum_type()},
            device_elems_,
            host_ ? host_->data() : kernels::ConstPtr{},
            ownership_.owned_elems() - device_elems_};
  }
  void release_owned() override {
    if (!frees_owned_) return;
    for (device::Buffer& buffer : kept_) buffer.reset();
    shard_.reset();
  }
  void end_step(std::uint32_t step) override {
    if (quantized_) quantized_->end_step(step);
    // V6: DeepSpeed frees them here.
    for (device::Buffer& buffer : kept_) buffer.reset();
    release_owned();  // after a skipped step
  }

 protected:
  // The owned range is not cleared: the first piece of each parameter is set, not added.
  void begin_window() override { std::fill(reduced_.begin(), reduced_.end(), false); }

  void prepare_owned() override {
    if (frees_owned_ && !shard_) allocate_owned();
  }

  void joined(ParamId param) override {
    if (ownership_.stage() == 1) {
      if (sums_apart()) add_to_sum(param);
      return;
    }
    // It is about to be copied into the bucket's buffer, which is already tagged as such.
    if (buffered() && context_.elems_of(param) <= context_.config.zero.reduce_bucket_size) return;
    // From here on it is part of a bucket, bounded by reduce_bucket_size.
    context_.device.memory().retag(whole_[plan::raw(param)],
                                   {ev::MemoryCategory::reduce_bucket, plan::raw(param)});
  }

  void enter_buffer(ParamId param, kernels::Ptr place) override {
    const kernels::ConstPtr from = source_of(param);
    context_.device.compute().run([place, from, elems = context_.elems_of(param)](const kernels::Exec& exec) {
      kernels::cast(exec, place, from, elems);
    });
    places_[plan::raw(param)] = place;
    // After the copy is queued: this is the memory that DeepSpeed's buffer saves.
    held_in(param).reset();
  }

  void settle_unused(const std::vector<ParamId>& params) override {
    if (!window().boundary()) return;
    for (const ParamId param : params) {
      if (ownership_.stage() == 1 && (held_in(param) || waits_for_end())) {
        settle_unused_of_stage1(param);
        continue;
      }
      // An earlier micro-step of the window had a gradient: the sum is valid.
      if (reduced_[plan::raw(param)]) continue;
      // Not reduced in this window: the values are those of the previous one.
      for (const plan::OwnedSlice& slice : ownership_.slices(param, context_.rank())) {
        if (offloaded(slice.owned_offset)) {
          host_->clear(slice.owned_offset, slice.elems);
          continue;
        }
        const kernels::Ptr gradient = owned_at(slice.owned_offset);
        context_.device.compute().run(
            [gradient, bytes = bytes_of(slice.elems, gradient.type)](const kernels::Exec& exec) {
              kernels::fill_zero(exec, gradient.data, bytes);
            });
      }
    }
  }

  void finish_window() override {
    // P16. Without reduce_scatter the sums are over all ranks already.
    if (replicas() == 1 || !context_.config.zero.reduce_scatter) return;
    issue(ev::kNoId, ownership_.owned_elems(), [this](Held&) -> device::Stream& {
      // The whole owned range, padding included: it is zero on every replica. A mean over replicas, as
      // reduce_scatter() took one over the shard group.
      const comm::AllReducePart sum{shard_.data(), ownership_.owned_elems()};
      replica_->all_reduce({&sum, 1}, context_.sum_type(), 1.0F / static_cast<float>(replicas()),
                           context_.device.reduce(), {});
      return context_.device.reduce();
    });
  }

  device::Stream& reduce(const plan::DueFlush& due, comm::CollectiveLabel label, Held& held) override {
    // Two steps: collectives write pieces into the owned range or into separate memory (`sums`), then
    // settle() adds the latter.
    const std::vector<ParamId>& params = due.flush.params;
    std::vector<Source> sources;
    sources.reserve(params.size());
    for (const ParamId param : params) {
      sources.push_back({param, to_wire(source_of(param), context_.elems_of(param), plan::raw(param), held)});
    }
    std::vector<Sum> sums;
    const plan::ZeroConfig& zero = context_.config.zero;
    if (!due.collectives.empty()) {
      reduce_one_by_one(due, sources, label, sums, held);
    } else if (ownership_.stage() == 3 && zero.reduce_scatter) {
      reduce_scatter(sources, label, sums, held);
    } else if (ownership_.stage() < 3 && plan::reduce_mode(zero) == plan::ReduceMode::to_owners) {
      reduce_to_owners(sources, label, sums, held);
    } else {
      all_reduce(sources, label, sums);
    }
    // Parts of a bucket to keep are copied first: the stream that settle() returns is ordered after the
    // copies.
    for (const ParamId param : params) {
      retire_whole(param, held);
      // After the outputs were chosen: output() checks whether this is the first piece.
      reduced_[plan::raw(param)] = true;
    }
    return settle(sums, held);
  }

 private:
  /// A gradient in the wire type.
  struct Source {
    ParamId param{};
    kernels::Ptr data;
  };
  /// A piece to add to the owned gradients of earlier micro-steps after the collective.
  struct Sum {
    ParamId param{};
    std::int64_t owned_offset = 0;
    kernels::ConstPtr term;
    std::int64_t elems = 0;
    bool first = false;  ///< set instead of added
  };

  /// Not stage 3, which has no other memory for them.
  [[nodiscard]] static bool frees_owned(const plan::ZeroConfig& zero) noexcept {
    return plan::copies_gradients_at_step(zero) && zero.stage < 3;
  }
  void allocate_owned() {
    shard_ = context_.device.memory().allocate(bytes_of(device_elems_, context_.sum_type()),
                                               {ev::MemoryCategory::grad_shard, ev::kNoId},
                                               context_.device.compute());
    // The whole owned range is offloaded.
    if (!shard_) return;
    context_.device.compute().run([data = shard_.data(), bytes = shard_.bytes()](const kernels::Exec& exec) {
      kernels::fill_zero(exec, data, bytes);
    });
  }
  [[nodiscard]] device::Buffer allocate_whole(ParamId param, kernels::DType type) {
    return context_.device.memory().allocate(bytes_of(context_.elems_of(param), type),
                                             {ev::MemoryCategory::grad_full, plan::raw(param)},
                                             context_.device.compute());
  }

  /// Stage 1 sums micro-steps before it reduces, in grad_accum_dtype.
  [[nodiscard]] bool sums_apart() const noexcept {
    return ownership_.stage() == 1 && context_.sum_type() != context_.type();
  }
  void add_to_sum(ParamId param) {
    device::Buffer& sum = sums_[plan::raw(param)];
    device::Buffer& whole = whole_[plan::raw(param)];
    const bool first = !sum;
    if (first) sum = allocate_whole(param, context_.sum_type());
    context_.device.compute().run([to = source_of(param),
                                   term = kernels::ConstPtr{whole.data(), context_.type()},
                                   elems = context_.elems_of(param), first](const kernels::Exec& exec) {
      if (first) {
        kernels::cast(exec, to, term, elems);
      } else {
        kernels::accumulate(exec, to, term, elems);
      }
    });
    // The next micro-step writes a new one.
    whole.reset();
  }
  /// The memory of a gradient that is not in a bucket's buffer.
  [[nodiscard]] device::Buffer& held_in(ParamId param) {
    return sums_apart() ? sums_[plan::raw(param)] : whole_[plan::raw(param)];
  }
  /// The data of a gradient that a bucket reduces.
  [[nodiscard]] kernels::Ptr source_of(ParamId param) {
    if (const kernels::Ptr place = places_[plan::raw(param)]; place.data != nullptr) return place;
    return {held_in(param).data(), sums_apart() ? context_.sum_type() : context_.type()};
  }
  /// A gradient of earlier micro-steps only, or none, which joins its bucket as zero if all join at the end.
  void settle_unused_of_stage1(ParamId param) {
    device::Buffer& held = held_in(param);
    if (held) {
      if (!waits_for_end()) add_to_bucket(param);
      return;
    }
    held = allocate_whole(param, sums_apart() ? context_.sum_type() : context_.type());
    context_.device.compute().run([data = held.data(), bytes = held.bytes()](const kernels::Exec& exec) {
      kernels::fill_zero(exec, data, bytes);
    });
  }

  [[nodiscard]] bool offloaded(std::int64_t owned_offset) const noexcept {
    return host_ && host_->holds(owned_offset);
  }

  /// Adds the pieces on the reduce stream, or sends them to the host. Returns the stream of the last work.
  device::Stream& settle(const std::vector<Sum>& sums, Held& held) {
    std::vector<offload::HostGradients::Piece> leaving;
    for (const Sum& sum : sums) {
      if (offloaded(sum.owned_offset)) {
        leaving.push_back({sum.param, sum.owned_offset, sum.term, sum.elems,
                           sum.first ? kernels::Write::set : kernels::Write::add});
        continue;
      }
      context_.device.reduce().run([sum, total = owned_at(sum.owned_offset)](const kernels::Exec& exec) {
        if (sum.first) {
          // The first piece overwrites the value of the previous window, whatever the wire type.
          kernels::cast(exec, total, sum.term, sum.elems);
        } else {
          kernels::accumulate(exec, total, sum.term, sum.elems);
        }
      });
    }
    return leaving.empty() ? context_.device.reduce() : host_->take(leaving, held);
  }

  [[nodiscard]] kernels::Ptr owned_at(std::int64_t offset) const {
    return advance(kernels::Ptr{shard_.data(), context_.sum_type()}, offset);
  }

  /// The whole gradient has been reduced. See [Note: gradients that span ranks].
  void retire_whole(ParamId param, Held& held) {
    // In a buffer there is nothing to free: the bucket's memory is reused.
    const kernels::Ptr place = std::exchange(places_[plan::raw(param)], {});
    if (place.data != nullptr) {
      keep_rest(param, place);
      return;
    }
    device::Buffer& whole = held_in(param);
    device::Buffer& kept = kept_[plan::raw(param)];
    if (keeps_spanning() && !kept) {
      std::int64_t own = 0;
      for (const plan::OwnedSlice& slice : ownership_.slices(param, context_.rank())) own += slice.elems;
      // Only if this rank owns a part of it, neither all nor nothing.
      if (own > 0 && own < context_.elems_of(param)) {
        context_.device.memory().retag(whole, {ev::MemoryCategory::grad_full, plan::raw(param)});
        kept = std::move(whole);
        return;
      }
    }
    // Freed when the compute stream has waited for this bucket.
    held.push_back(std::move(whole));
  }

  /// Applies to stage 1 too, which gets here only with DeepSpeed's gradient buffers.
  [[nodiscard]] bool keeps_spanning() const noexcept {
    return ownership_.stage() < 3 && context_.config.zero.compat.keep_spanning_gradients;
  }
  /// DeepSpeed copies a gradient that spans ranks whole out of the bucket; here the owned part is in the
  /// owned range.
  void keep_rest(ParamId param, kernels::Ptr place) {
    device::Buffer& kept = kept_[plan::raw(param)];
    if (!keeps_spanning() || kept) return;
    std::vector<plan::Range> rest;  // around the owned slices, which ascend
    std::int64_t end = 0, elems = 0;
    const auto keep = [&](std::int64_t until) {
      if (until > end) rest.push_back({end, until});
      elems += until - end;
    };
    bool owns = false;
    for (const plan::OwnedSlice& slice : ownership_.slices(param, context_.rank())) {
      if (slice.elems == 0) continue;
      owns = true;
      keep(slice.param_offset);
      end = slice.param_offset + slice.elems;
    }
    // From the end of the last owned slice on.
    keep(context_.elems_of(param));
    if (!owns || elems == 0) return;
    kept = context_.device.memory().allocate(bytes_of(elems, place.type),
                                             {ev::MemoryCategory::grad_full, plan::raw(param)},
                                             context_.device.compute());
    kernels::Ptr to{kept.data(), place.type};
    for (const plan::Range& part : rest) {
      context_.device.copy_async(to.data, advance(place, part.begin).data, bytes_of(part.size(), place.type),
                                 context_.device.reduce());
      to = advance(to, part.size());
    }
  }

  /// Destination of a reduced piece: the owned range in the first micro-step that has it, otherwise separate
  /// memory, to be added, cast or sent to the host.
  [[nodiscard]] void* output(ParamId param, std::int64_t owned_offset, std::int64_t elems,
                             std::vector<Sum>& sums, Held& held) {
    const bool first = !reduced_[plan::raw(param)];
    if (first && !offloaded(owned_offset) && context_.wire_type() == context_.sum_type()) {
      return owned_at(owned_offset).data;
    }
    held.push_back(context_.device.memory().allocate(bytes_of(elems, context_.wire_type()),
                                                     {ev::MemoryCategory::reduce_bucket, plan::raw(param)},
                                                     context_.device.compute()));
    // `first` refers to the window: with offloading or another type even the first piece takes this path.
    sums.push_back({param, owned_offset, {held.back().data(), context_.wire_type()}, elems, first});
    return held.back().data();
  }

  void reduce_one_by_one(const plan::DueFlush& due, const std::vector<Source>& sources,
                         comm::CollectiveLabel label, std::vector<Sum>& sums, Held& held) {
    std::map<ParamId, kernels::Ptr> gradients;
    for (const auto& [param, gradient] : sources) gradients.emplace(param, gradient);
    for (const plan::ReduceCollective& collective : due.collectives) {
      const bool to_owner = collective.op == plan::ReduceCollective::Op::reduce;
      std::vector<comm::ReducePart> reduced;
      std::vector<comm::AllReducePart> all_reduced;
      for (const plan::FlatSlice& slice : plan::slices_of(ownership_.flat(), due.flush, collective)) {
        const kernels::Ptr at = advance(gradients.at(slice.param), slice.param_offset);
        const bool own = slice.rank == context_.rank();
        if (to_owner) {
          // Only the owner passes an output: on other ranks the collective has no result.
          void* out = own ? output(slice.param, slice.shard_offset, slice.elems, sums, held) : nullptr;
          reduced.push_back({at.data, out, slice.elems, slice.rank, plan::raw(slice.param)});
        } else {
          // In place, over the data sent.
          all_reduced.push_back({at.data, slice.elems, plan::raw(slice.param)});
          if (own) {
            sums.push_back(
                {slice.param, slice.shard_offset, at, slice.elems, !reduced_[plan::raw(slice.param)]});
          }
        }
      }
      if (to_owner) {
        context_.reduce_comm.reduce(reduced, context_.wire_type(), mean_factor(), context_.device.reduce(),
                                    label);
      } else {
        context_.reduce_comm.all_reduce(all_reduced, context_.wire_type(), mean_factor(),
                                        context_.device.reduce(), label);
      }
    }
  }

  void reduce_to_owners(const std::vector<Source>& sources, comm::CollectiveLabel label,
                        std::vector<Sum>& sums, Held& held) {
    std::vector<comm::ReducePart> parts;
    for (const auto& [param, gradient] : sources) {
      for (const plan::FlatSlice& slice : ownership_.flat().slices_of(param)) {
        void* out = slice.rank == context_.rank() ? output(param, slice.shard_offset, slice.elems, sums, held)
                                                  : nullptr;
        // Slices of all ranks, on every rank: all take part in a reduce.
        parts.push_back(
            {advance(gradient, slice.param_offset).data, out, slice.elems, slice.rank, plan::raw(param)});
      }
    }
    context_.reduce_comm.reduce(parts, context_.wire_type(), mean_factor(), context_.device.reduce(), label);
  }

  /// `reduce_scatter: false`, or DeepSpeed's all-reduce over slices: every rank gets the whole bucket and
  /// keeps its own part.
  void all_reduce(const std::vector<Source>& sources, comm::CollectiveLabel label, std::vector<Sum>& sums) {
    std::vector<comm::AllReducePart> parts;
    for (const auto& [param, gradient] : sources) {
      parts.push_back({gradient.data, context_.elems_of(param), plan::raw(param)});
      for (const plan::OwnedSlice& slice : ownership_.slices(param, context_.rank())) {
        if (slice.elems == 0) continue;
        // The sum is in the data sent, kept alive by `held` or the gradient itself until settle() has read
        // it.
        sums.push_back({param, slice.owned_offset, advance(gradient, slice.param_offset), slice.elems,
                        !reduced_[plan::raw(param)]});
      }
    }
    context_.reduce_comm.all_reduce(parts, context_.wire_type(), mean_factor(), context_.device.reduce(),
                                    label);
  }

  /// MiCS: over the shard group; finish_window() reduces over the replicas. ZeRO++: some as int4.
  void reduce_scatter(const std::vector<Source>& sources, comm::CollectiveLabel label, std::vector<Sum>& sums,
                      Held& held) {
    std::vector<comm::ReduceScatterPart> parts;
    std::vector<QuantizedReduce::Part> rounded;
    for (const auto& [param, gradient] : sources) {
      const plan::ParamPartition& partition = ownership_.shards().partitions[plan::raw(param)];
      void* out = output(param, ownership_.shards().shard_offset[plan::raw(param)], partition.shard_elems,
                         sums, held);
      if (quantized_ && quantized_->takes(param)) {
        rounded.push_back({param, gradient, {out, context_.wire_type()}});
      } else {
        // Only real elements: the collective reads no padding and writes zeros for it.
        parts.push_back({gradient.data, partition.elems, out, partition.shard_elems, plan::raw(param)});
      }
    }
    comm::Communicator& comm = replica_ == nullptr ? context_.reduce_comm : *context_.groups->shard_reduce;
    // mean_factor() is 1 / world; for a shard group of world / replicas ranks it is multiplied by the
    // replicas.
    comm.reduce_scatter(parts, context_.wire_type(), mean_factor() * static_cast<float>(replicas()),
                        context_.device.reduce(), label);
    // Over all ranks, in two hops.
    if (!rounded.empty()) quantized_->reduce(rounded, mean_factor(), label);
  }

  [[nodiscard]] std::uint32_t replicas() const noexcept {
    return replica_ == nullptr ? 1 : replica_->world();
  }

  const bool frees_owned_;
  device::Buffer shard_;               ///< [device_elems] sum type: owned and not offloaded
  std::vector<device::Buffer> whole_;  ///< by ParamId, [elems] storage type each; of the compute stream
  std::vector<device::Buffer> sums_;   ///< by ParamId, [elems] sum type: stage 1 if that differs
  std::vector<kernels::Ptr> places_;   ///< by ParamId: address in a bucket's buffer, else null
  std::vector<device::Buffer> kept_;   ///< by ParamId, [elems], or [elems not owned] of a gradient in a
                                       ///< bucket: reduced, kept until the step
  std::vector<bool> reduced_;          ///< by ParamId: the owned range holds a part of this window's sum
  comm::Communicator* replica_;        ///< MiCS: the ranks with this shard; null without
  std::optional<QuantizedReduce> quantized_;
};

}  // namespace

std::unique_ptr<Gradients> make_sharded_gradients(const Context& context, EventPool& events,
                                                  const plan::Ownership& ownership) {
  return std::make_unique<ShardedGradients>(context, events, ownership);
}

}  // namespace shardscope::engine
