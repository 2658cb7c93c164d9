#include "instrumentation/event.h"

namespace shardscope::instrumentation {

namespace {

struct KindRow {
  const char* name;
  Detail detail;
  EventKind end;  ///< of a begin kind; the kind itself otherwise
  bool end_kind;
};

constexpr KindRow row_of(EventKind kind) noexcept {
  using K = EventKind;
  constexpr Detail s = Detail::steps, ph = Detail::phases, m = Detail::modules, p = Detail::params,
                   k = Detail::kernels;
  switch (kind) {
    case K::step_begin:
      return {"step_begin", s, K::step_end, false};
    case K::step_end:
      return {"step_end", s, K::step_end, true};
    case K::micro_step_begin:
      return {"micro_step_begin", ph, K::micro_step_end, false};
    case K::micro_step_end:
      return {"micro_step_end", ph, K::micro_step_end, true};
    case K::phase_begin:
      return {"phase_begin", ph, K::phase_end, false};
    case K::phase_end:
      return {"phase_end", ph, K::phase_end, true};
    case K::module_begin:
      return {"module_begin", m, K::module_end, false};
    case K::module_end:
      return {"module_end", m, K::module_end, true};
    case K::param_status:
      return {"param_status", p, K::param_status, false};
    case K::fetch_wait_begin:
      return {"fetch_wait_begin", m, K::fetch_wait_end, false};
    case K::fetch_wait_end:
      return {"fetch_wait_end", m, K::fetch_wait_end, true};
    case K::collective_submitted:
      return {"collective_submitted", m, K::collective_submitted, false};
    case K::collective_begin:
      return {"collective_begin", m, K::collective_end, false};
    case K::collective_end:
      return {"collective_end", m, K::collective_end, true};
    case K::collective_part:
      return {"collective_part", p, K::collective_part, false};
    case K::collective_entered:
      return {"collective_entered", m, K::collective_entered, false};
    case K::bucket_open:
      return {"bucket_open", p, K::bucket_open, false};
    case K::bucket_add:
      return {"bucket_add", p, K::bucket_add, false};
    case K::bucket_flush:
      return {"bucket_flush", m, K::bucket_flush, false};
    case K::trace_mode:
      return {"trace_mode", ph, K::trace_mode, false};
    case K::trace_invalidated:
      return {"trace_invalidated", ph, K::trace_invalidated, false};
    case K::fetch_decision:
      return {"fetch_decision", p, K::fetch_decision, false};
    case K::prefetch_issued:
      return {"prefetch_issued", p, K::prefetch_issued, false};
    case K::release_kept:
      return {"release_kept", p, K::release_kept, false};
    case K::memory_alloc:
      return {"memory_alloc", p, K::memory_alloc, false};
    case K::memory_free:
      return {"memory_free", p, K::memory_free, false};
    case K::transfer_begin:
      return {"transfer_begin", p, K::transfer_end, false};
    case K::transfer_end:
      return {"transfer_end", p, K::transfer_end, true};
    case K::optimizer_begin:
      return {"optimizer_begin", m, K::optimizer_end, false};
    case K::optimizer_end:
      return {"optimizer_end", m, K::optimizer_end, true};
    case K::reduce_wait_begin:
      return {"reduce_wait_begin", m, K::reduce_wait_end, false};
    case K::reduce_wait_end:
      return {"reduce_wait_end", m, K::reduce_wait_end, true};
    case K::overflow:
      return {"overflow", s, K::overflow, false};
    case K::loss:
      return {"loss", s, K::loss, false};
    case K::grad_norm:
      return {"grad_norm", s, K::grad_norm, false};
    case K::loss_scale:
      return {"loss_scale", s, K::loss_scale, false};
    case K::learning_rate:
      return {"learning_rate", s, K::learning_rate, false};
    case K::tokens:
      return {"tokens", s, K::tokens, false};
    case K::kernel_begin:
      return {"kernel_begin", k, K::kernel_end, false};
    case K::kernel_end:
      return {"kernel_end", k, K::kernel_end, true};
    case K::gate:
      return {"gate", m, K::gate, false};
    case K::paused_begin:
      return {"paused_begin", s, K::paused_end, false};
    case K::paused_end:
      return {"paused_end", s, K::paused_end, true};
    case K::message:
      return {"message", s, K::message, false};
    case K::columns_selected:
      return {"columns_selected", p, K::columns_selected, false};
    case K::deferred_update:
      return {"deferred_update", m, K::deferred_update, false};
    case K::deferred_wait_begin:
      return {"deferred_wait_begin", m, K::deferred_wait_end, false};
    case K::deferred_wait_end:
      return {"deferred_wait_end", m, K::deferred_wait_end, true};
    case K::nccl_collective:
      return {"nccl_collective", p, K::nccl_collective, false};
    case K::nccl_kernel:
      return {"nccl_kernel", k, K::nccl_kernel, false};
    case K::nccl_proxy:
      return {"nccl_proxy", k, K::nccl_proxy, false};
    case K::outside_memory:
      return {"outside_memory", ph, K::outside_memory, false};
    case K::prefetch_outcome:
      return {"prefetch_outcome", p, K::prefetch_outcome, false};
    case K::in_flight_limit:
      return {"in_flight_limit", p, K::in_flight_limit, false};
    case K::gpu_begin:
      return {"gpu_begin", k, K::gpu_end, false};
    case K::gpu_end:
      return {"gpu_end", k, K::gpu_end, true};
    case K::gpu_sync_begin:
      return {"gpu_sync_begin", k, K::gpu_sync_end, false};
    case K::gpu_sync_end:
      return {"gpu_sync_end", k, K::gpu_sync_end, true};
    case K::gpu_records_begin:
      return {"gpu_records_begin", k, K::gpu_records_end, false};
    case K::gpu_records_end:
      return {"gpu_records_end", k, K::gpu_records_end, true};
    case K::gpu_memory:
      return {"gpu_memory", k, K::gpu_memory, false};
    case K::gpu_clock:
      return {"gpu_clock", k, K::gpu_clock, false};
    case K::fetch_counter:
      return {"fetch_counter", ph, K::fetch_counter, false};
    case K::data_wait_begin:
      return {"data_wait_begin", ph, K::data_wait_end, false};
    case K::data_wait_end:
      return {"data_wait_end", ph, K::data_wait_end, true};
    case K::clip_factor:
      return {"clip_factor", s, K::clip_factor, false};
    case K::update_votes:
      return {"update_votes", ph, K::update_votes, false};
    case K::feedback_reset:
      return {"feedback_reset", ph, K::feedback_reset, false};
    case K::detail_changed:
      return {"detail_changed", s, K::detail_changed, false};
  }
  return {"unknown", k, kind, false};
}

}  // namespace

Detail detail_of(EventKind kind) noexcept { return row_of(kind).detail; }
const char* name_of(EventKind kind) noexcept { return row_of(kind).name; }
EventKind end_of(EventKind begin) noexcept { return row_of(begin).end; }
bool is_begin(EventKind kind) noexcept { return row_of(kind).end != kind; }
bool is_end(EventKind kind) noexcept { return row_of(kind).end_kind; }

}  // namespace shardscope::instrumentation
