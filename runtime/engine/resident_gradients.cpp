#include "runtime/engine/resident_gradients.h"

#include <algorithm>
#include <map>

#include "kernels/ops.h"
#include "runtime/execution/events.h"
#include "runtime/plan/stage12.h"

namespace shardscope::engine {
using execution::advance;
using execution::bytes_of;
using execution::Context;
using execution::emit_host;
using execution::EventPool;

using plan::ParamId;

ResidentGradients::ResidentGradients(const Context& context, EventPool& events,
                                     const plan::Ownership& ownership)
    : Gradients(context, events, ownership),
      buffer_(context.device.memory().allocate(bytes_of(ownership.flat().flat_elems, context.sum_type()),
                                               {ev::MemoryCategory::grad_full, ev::kNoId},
                                               context.device.compute())),
      written_(context.model.params.size(), false),
      separate_(context.model.params.size()) {
  // Padding stays zero: only join_owned() writes over it, see zero_padding.
  context_.device.compute().run([data = buffer_.data(), bytes = buffer_.bytes()](const kernels::Exec& exec) {
    kernels::fill_zero(exec, data, bytes);
  });
}

model::GradTarget ResidentGradients::target(ParamId param) {
  // Backward writes to the sum directly: the first kernel of a window sets it, later ones add.
  if (context_.sum_type() == context_.type()) {
    const bool accumulate = written_[plan::raw(param)];
    // Set here, since the kernel that writes the target is queued next.
    written_[plan::raw(param)] = true;
    return {whole(param), accumulate};
  }
  device::Buffer& buffer = separate_[plan::raw(param)];
  // Within one backward: a weight that is used twice is written twice before it joins.
  const bool accumulate = static_cast<bool>(buffer);
  if (!accumulate) {
    buffer = context_.device.memory().allocate(context_.bytes_of(context_.elems_of(param)),
                                               {ev::MemoryCategory::grad_full, plan::raw(param)},
                                               context_.device.compute());
  }
  return {{buffer.data(), context_.type()}, accumulate};
}

optim::GradientParts ResidentGradients::owned() const {
  const std::int64_t elems = ownership_.owned_elems();
  // Offloaded: in stages 0 and 1 the whole owned range is on the host (O2's ratio applies to stage 3).
  if (host_) return {{}, 0, host_->data(), elems};
  const std::uint32_t rank = ownership_.stage() == 0 ? 0 : context_.rank();
  return {flat_at(ownership_.flat().sub_partition_begin(0, rank)), elems, {}, 0};
}

// With one rank the groups are contiguous, and on the host they always are.
bool ResidentGradients::apart() const noexcept {
  return ownership_.flat().intervals.size() > 1 && ownership_.flat().world > 1 && !host_;
}

/// The part of the first group stays; each other part is moved to the end of the previous one. It overwrites
/// earlier groups or elements before itself: with two or more ranks the end of the moved parts is never
/// beyond the begin of the next part.
void ResidentGradients::join_owned() {
  if (!apart() || !in_buckets()) return;
  const plan::FlatLayout& layout = ownership_.flat();
  const kernels::Ptr run = flat_at(layout.sub_partition_begin(0, context_.rank()));
  for (std::size_t i = 1; i < layout.intervals.size(); ++i) {
    const plan::Range owned = layout.intervals[i].owned;
    const kernels::Ptr to = advance(run, owned.begin);
    const kernels::Ptr from = flat_at(layout.sub_partition_begin(i, context_.rank()));
    // An element-wise copy on one stream, forwards in memory: pieces move down or stay.
    if (to.data == from.data) continue;
    context_.device.compute().run([to, from, elems = owned.size()](const kernels::Exec& exec) {
      kernels::cast(exec, to, from, elems);
    });
  }
}

void ResidentGradients::begin_window() {
  std::fill(written_.begin(), written_.end(), false);
  // Only then: otherwise padding is never overwritten.
  if (apart()) zero_padding();
}

/// join_owned() may have overwritten padding in the previous step.
void ResidentGradients::zero_padding() {
  const plan::FlatLayout& layout = ownership_.flat();
  for (std::size_t i = 0; i < layout.intervals.size(); ++i) {
    const plan::FlatInterval& interval = layout.intervals[i];
    // Padding of the interval over all ranks: at its end, after the last real element (S5).
    const std::int64_t padding = interval.owned.size() * layout.world - interval.real_elems;
    if (padding == 0) continue;
    const kernels::Ptr at = flat_at(layout.sub_partition_begin(i, 0) + interval.real_elems);
    context_.device.compute().run([data = at.data, bytes = bytes_of(padding, at.type)](
                                      const kernels::Exec& exec) { kernels::fill_zero(exec, data, bytes); });
  }
}

void ResidentGradients::joined(ParamId param) {
  device::Buffer& buffer = separate_[plan::raw(param)];
  // Backward wrote to the sum directly.
  if (!buffer) return;
  const bool first = !written_[plan::raw(param)];
  written_[plan::raw(param)] = true;
  context_.device.compute().run([sum = whole(param), term = kernels::ConstPtr{buffer.data(), context_.type()},
                                 elems = context_.elems_of(param), first](const kernels::Exec& exec) {
    // Set, not added: the sum still has the value of the previous window.
    if (first) {
      kernels::cast(exec, sum, term, elems);
    } else {
      kernels::accumulate(exec, sum, term, elems);
    }
  });
  // After the kernel that reads it is queued: memory is freed in the order of the compute stream.
  buffer.reset();
}

void ResidentGradients::settle_unused(const std::vector<ParamId>& params) {
  // A later micro-step may still produce a gradient.
  if (!window().boundary()) return;
  for (const ParamId param : params) {
    if (written_[plan::raw(param)]) {
      // Used only in an earlier micro-step of the window. If gradients wait for the end, it is added there
      // anyway.
      if (!waits_for_end()) add_to_bucket(param);
      continue;
    }
    // Not written in this window: the buffer still has the sum of the previous window.
    const kernels::Ptr gradient = whole(param);
    context_.device.compute().run(
        [gradient, bytes = bytes_of(context_.elems_of(param), gradient.type)](const kernels::Exec& exec) {
          kernels::fill_zero(exec, gradient.data, bytes);
        });
    if (!host_ || !in_buckets()) continue;
    // The host's copy is outdated as well; without buckets the whole range is sent anyway.
    for (const plan::OwnedSlice& slice : ownership_.slices(param, context_.rank())) {
      host_->clear(slice.owned_offset, slice.elems);
    }
  }
}

device::Stream& ResidentGradients::reduce(const plan::DueFlush& due, comm::CollectiveLabel label,
                                          Held& held) {
  const std::vector<ParamId>& params = due.flush.params;
  // D4 and S11 in this order: listed collectives, one grouped reduce to the owners, or an all-reduce of whole
  // gradients.
  if (!due.collectives.empty()) {
    reduce_one_by_one(due, label, held);
  } else if (plan::reduce_mode(context_.config.zero) == plan::ReduceMode::to_owners) {
    reduce_to_owners(params, label, held);
  } else {
    all_reduce(params, label, held);
  }
  return host_ ? offload(params, held) : context_.device.reduce();
}

device::Stream& ResidentGradients::offload(const std::vector<ParamId>& params, Held& held) {
  std::vector<offload::HostGradients::Piece> pieces;
  for (const ParamId param : params) {
    for (const plan::OwnedSlice& slice : ownership_.slices(param, context_.rank())) {
      // From the flat buffer, which has the reduced gradient.
      pieces.push_back({param, slice.owned_offset, advance(whole(param), slice.param_offset), slice.elems});
    }
  }
  return host_->take(pieces, held);
}

kernels::Ptr ResidentGradients::flat_at(std::int64_t offset) const {
  return advance(kernels::Ptr{buffer_.data(), context_.sum_type()}, offset);
}

kernels::Ptr ResidentGradients::whole(ParamId param) const {
  return flat_at(ownership_.flat().param_offset[plan::raw(param)]);
}

void ResidentGradients::reduce_one_by_one(const plan::DueFlush& due, comm::CollectiveLabel label,
                                          Held& held) {
  device::Stream& stream = context_.device.reduce();
  // The data to send, by parameter: several collectives may carry slices of one.
  std::map<ParamId, kernels::Ptr> sent;
  for (const ParamId param : due.flush.params) {
    sent.emplace(param, to_wire(whole(param), context_.elems_of(param), plan::raw(param), held));
  }
  for (const plan::ReduceCollective& collective : due.collectives) {
    const std::vector<plan::FlatSlice> slices = plan::slices_of(ownership_.flat(), due.flush, collective);
    std::vector<comm::ReducePart> reduced;
    std::vector<comm::AllReducePart> all_reduced;
    for (const plan::FlatSlice& slice : slices) {
      // In place: the data sent is a copy or the gradient itself, and either may be overwritten.
      void* at = advance(sent.at(slice.param), slice.param_offset).data;
      reduced.push_back({at, at, slice.elems, slice.rank, plan::raw(slice.param)});
      all_reduced.push_back({at, slice.elems, plan::raw(slice.param)});
    }
    const bool to_owner = collective.op == plan::ReduceCollective::Op::reduce;
    if (to_owner) {
      context_.reduce_comm.reduce(reduced, context_.wire_type(), mean_factor(), stream, label);
    } else {
      context_.reduce_comm.all_reduce(all_reduced, context_.wire_type(), mean_factor(), stream, label);
    }
    for (const plan::FlatSlice& slice : slices) {
      const kernels::Ptr to = advance(whole(slice.param), slice.param_offset);
      const kernels::Ptr from = advance(sent.at(slice.param), slice.param_offset);
      // Only if a copy was sent. Slices reduced to another owner are no longer needed here (S13).
      if (from.data == to.data || (to_owner && slice.rank != context_.rank())) continue;
      stream.run([to, from, elems = slice.elems](const kernels::Exec& exec) {
        kernels::cast(exec, to, from, elems);
      });
    }
  }
}

/// Adjacent gradients are merged: a bucket is usually one or two ranges of the flat buffer.
void ResidentGradients::all_reduce(const std::vector<ParamId>& params, comm::CollectiveLabel label,
                                   Held& held) {
  device::Stream& stream = context_.device.reduce();
  std::vector<comm::AllReducePart> parts;
  std::vector<std::pair<kernels::Ptr, kernels::ConstPtr>> casts;  // by part: the gradient, the data sent
  // Sorted by group and id, the order of the flat buffer (except with round_robin_gradients): comparing
  // neighbours finds the ranges.
  for (std::size_t i = 0; i < params.size();) {
    const kernels::Ptr begin = whole(params[i]);
    const std::uint32_t owner = plan::raw(params[i]);
    std::int64_t elems = context_.elems_of(params[i]);
    for (++i; i < params.size() && whole(params[i]).data == advance(begin, elems).data; ++i) {
      elems += context_.elems_of(params[i]);
    }
    const kernels::Ptr sent = to_wire(begin, elems, owner, held);
    parts.push_back({sent.data, elems, ev::kNoId});
    casts.emplace_back(begin, sent);
  }
  context_.reduce_comm.all_reduce(parts, context_.wire_type(), mean_factor(), stream, label);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [to, from] = casts[i];
    if (from.data == to.data) continue;
    stream.run([to = to, from = from, elems = parts[i].elems](const kernels::Exec& exec) {
      kernels::cast(exec, to, from, elems);
    });
  }
}

void ResidentGradients::reduce_to_owners(const std::vector<ParamId>& params, comm::CollectiveLabel label,
                                         Held& held) {
  device::Stream& stream = context_.device.reduce();
  std::vector<comm::ReducePart> parts;
  // After the collective, on the same stream: until then it reads the copies.
  std::vector<std::function<void(const kernels::Exec&)>> casts;
  for (const ParamId param : params) {
    const kernels::Ptr gradient = whole(param);
    const kernels::Ptr sent = to_wire(gradient, context_.elems_of(param), plan::raw(param), held);
    for (const plan::FlatSlice& slice : ownership_.flat().slices_of(param)) {
      const kernels::Ptr at = advance(sent, slice.param_offset);
      parts.push_back({at.data, at.data, slice.elems, slice.rank, plan::raw(param)});
      if (sent.data == gradient.data || slice.rank != context_.rank()) continue;
      casts.push_back([to = advance(gradient, slice.param_offset), at, elems = slice.elems](
                          const kernels::Exec& exec) { kernels::cast(exec, to, at, elems); });
    }
  }
  context_.reduce_comm.reduce(parts, context_.wire_type(), mean_factor(), stream, label);
  for (const auto& cast : casts) stream.run(cast);
}

namespace {

/// The first layout of stage 1 (S1): one reduce-scatter per communication once the window is complete, whose
/// result is this rank's piece. The optimizer needs contiguous pieces, so they overwrite whole gradients that
/// were sent before: piece i is placed at its offset in the owned range, which is in a communication already
/// sent. Only the first piece must be moved there, and one larger than all before it together (a parameter
/// group after a small one).
class LegacyGradients final : public ResidentGradients {
 public:
  using ResidentGradients::ResidentGradients;

  [[nodiscard]] optim::GradientParts owned() const override {
    if (host_) return {{}, 0, host_->data(), ownership_.owned_elems()};
    return {piece(0), ownership_.owned_elems(), {}, 0};
  }

 protected:
  // The base class leaves the window's end to reduce_window().
  [[nodiscard]] bool in_buckets() const noexcept override { return false; }

  void reduce_window() override {
    const plan::FlatLayout& layout = ownership_.flat();
    for (std::size_t interval = 0; interval < layout.intervals.size(); ++interval) {
      // Numbers increase over the whole run, as those of buckets do.
      const std::uint32_t id = next_++;
      const std::int64_t begin = layout.sub_partition_begin(interval, 0);
      // Elements of all ranks, with the padding of the last ones.
      const std::int64_t elems = layout.intervals[interval].owned.size() * layout.world;
      context_.gates.pass(ev::GateKind::bucket, id);
      announce(id, {begin, begin + elems});
      issue(id, elems, [&](Held& held) -> device::Stream& {
        return reduce_interval(interval, {begin, begin + elems}, {id}, held);
      });
    }
  }

 private:
  /// Emits the content of a communication as bucket events.
  void announce(std::uint32_t id, plan::Range flat) {
    const plan::FlatLayout& layout = ownership_.flat();
    emit_host<ev::EventKind::bucket_open>({.bucket = id});
    std::int64_t total = 0;
    std::uint32_t params = 0;
    for (const ParamId param : layout.order) {
      const std::int64_t begin = layout.param_offset[plan::raw(param)];
      const std::int64_t elems = plan::intersect(flat, {begin, begin + layout.elems_of(param)}).size();
      // A parameter may be in several communications: each emits its number of elements.
      if (elems == 0) continue;
      total += elems;
      ++params;
      emit_host<ev::EventKind::bucket_add>(
          {.bucket = id, .param = plan::raw(param), .elems = elems, .bucket_elems = total});
    }
    emit_host<ev::EventKind::bucket_flush>(
        {.reason = plan::FlushReason::boundary, .bucket = id, .params = params, .elems = total});
  }

  /// Destination of this rank's gradients of an interval: all contiguous.
  [[nodiscard]] kernels::Ptr piece(std::size_t interval) const {
    const plan::FlatLayout& layout = ownership_.flat();
    // One communication: the result can stay in place.
    if (layout.intervals.size() == 1) return flat_at(layout.sub_partition_begin(0, context_.rank()));
    return flat_at(layout.intervals[interval].owned.begin);
  }

  device::Stream& reduce_interval(std::size_t interval, plan::Range flat, comm::CollectiveLabel label,
                                  Held& held) {
    device::Stream& stream = context_.device.reduce();
    const plan::Range owned = ownership_.flat().intervals[interval].owned;
    const std::int64_t elems = owned.size();
    const kernels::Ptr own = piece(interval);
    // The whole interval at once: it is contiguous in the flat buffer.
    const kernels::Ptr sent = to_wire(flat_at(flat.begin), flat.size(), ev::kNoId, held);
    kernels::Ptr arrived = own;
    const bool still_there =
        interval > 0 && owned.end > flat.begin;  // the gradients at its destination are not sent yet
    // Separate memory: it is sent to the host, has another type, or its destination is not free yet.
    if (host_ || sent.type != own.type || still_there) {
      held.push_back(context_.device.memory().allocate(bytes_of(elems, sent.type),
                                                       {ev::MemoryCategory::reduce_bucket, ev::kNoId},
                                                       context_.device.compute()));
      arrived = {held.back().data(), sent.type};
    } else if (interval == 0) {
      arrived = flat_at(ownership_.flat().sub_partition_begin(0, context_.rank()));
    }
    const comm::ReduceScatterPart part{sent.data, flat.size(), arrived.data, elems, ev::kNoId};
    context_.reduce_comm.reduce_scatter({&part, 1}, sent.type, mean_factor(), stream, label);
    if (host_) return host_->take({{plan::kNone<ParamId>, owned.begin, arrived, elems}}, held);
    if (arrived.data != own.data) {
      stream.run(
          [own, arrived, elems](const kernels::Exec& exec) { kernels::cast(exec, own, arrived, elems); });
    }
    return stream;
  }

  std::uint32_t next_ = 0;  ///< number of the next communication
};

}  // namespace

std::unique_ptr<Gradients> make_resident_gradients(const Context& context, EventPool& events,
                                                   const plan::Ownership& ownership) {
  if (plan::uses_legacy_layout(context.config.zero)) {
    return std::make_unique<LegacyGradients>(context, events, ownership);
  }
  return std::make_unique<ResidentGradients>(context, events, ownership);
}

}  // namespace shardscope::engine
