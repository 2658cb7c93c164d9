#include "runtime/offload/host_gradients.h"

#include "runtime/offload/transfer.h"

namespace shardscope::offload {

namespace ev = shardscope::instrumentation;

HostGradients::HostGradients(device::Device& device, execution::EventPool& events, kernels::DType type,
                             plan::Range range, device::Arena& pool)
    : device_(device),
      events_(events),
      pool_(pool),
      type_(type),
      range_(range),
      buffer_(pool.allocate(bytes_of(range.size()), {ev::MemoryCategory::grad_shard}, device.worker())) {
  device_.worker().run([data = buffer_.data(), bytes = buffer_.bytes()](const kernels::Exec& exec) {
    kernels::fill_zero(exec, data, bytes);
  });
  events_.order(device_.worker(), device_.copy());
}

std::size_t HostGradients::bytes_of(std::int64_t elems) const noexcept {
  return static_cast<std::size_t>(elems) * kernels::size_of(type_);
}

kernels::Ptr HostGradients::at(std::int64_t owned_offset) const noexcept {
  return {static_cast<std::byte*>(buffer_.data()) + bytes_of(owned_offset - range_.begin), type_};
}

kernels::ConstPtr HostGradients::data() const noexcept { return {buffer_.data(), type_}; }

/// Same type and Write::set: the piece is copied directly to the sum. Otherwise it is copied to a separate
/// buffer and the worker converts or adds. Either way the returned stream is ordered after it.
device::Stream& HostGradients::take(const std::vector<Piece>& pieces, std::vector<device::Buffer>& held) {
  // The pieces are complete at this point of the reduce stream.
  events_.order(device_.reduce(), device_.copy());
  bool on_worker = false;
  for (const Piece& piece : pieces) {
    const kernels::Ptr total = at(piece.owned_offset);
    const std::size_t bytes = static_cast<std::size_t>(piece.elems) * kernels::size_of(piece.from.type);
    const bool direct = piece.write == kernels::Write::set && piece.from.type == type_;
    kernels::Ptr to{total.data, piece.from.type};
    if (!direct) {
      // Freed once the compute stream has waited for the bucket, so that stream is its owner.
      held.push_back(pool_.allocate(bytes, {ev::MemoryCategory::reduce_bucket, plan::raw(piece.param)},
                                    device_.compute()));
      to.data = held.back().data();
    }
    // Sent in the reduced type and converted on the host: fewer bytes are transferred if that is 16 bits.
    transfer(device_, ev::TransferKind::device_to_host, to.data, piece.from.data, bytes,
             {plan::raw(piece.param)});
    if (direct) continue;
    on_worker = true;
    events_.order(device_.copy(), device_.worker());
    device_.worker().run([total, term = kernels::ConstPtr(to), elems = piece.elems,
                          write = piece.write](const kernels::Exec& exec) {
      // In the order of micro-steps, since the worker stream runs in order: the sum is bitwise that of the
      // device.
      if (write == kernels::Write::set) {
        kernels::cast(exec, total, term, elems);
      } else {
        // Sum in fp32, rounded to the type of the sums after each micro-step.
        kernels::accumulate(exec, total, term, elems);
      }
    });
  }
  // Nothing was queued on the worker: waiting for the copies is enough.
  if (!on_worker) return device_.copy();
  events_.order(device_.copy(), device_.worker());
  return device_.worker();
}

/// On the worker, after sums of earlier windows.
void HostGradients::clear(std::int64_t owned_offset, std::int64_t elems) {
  device_.worker().run([to = at(owned_offset).data, bytes = bytes_of(elems)](const kernels::Exec& exec) {
    kernels::fill_zero(exec, to, bytes);
  });
}

}  // namespace shardscope::offload
