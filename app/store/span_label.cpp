#include "app/store/span_label.h"

#include "app/store/module_name.h"
#include "app/store/names.h"
#include "app/store/vocabulary.h"
#include "instrumentation/event_fields.h"

namespace shardscope::store {
namespace {

using ev::EventKind;

/// The name that the rank gave, or `otherwise`.
std::string named(const Store& store, std::uint32_t rank, std::uint32_t name, const std::string& otherwise) {
  std::string text = store.name(rank, name);
  return text.empty() ? otherwise : text;
}

SpanHue hue_of_phase(ev::Phase phase) noexcept {
  switch (phase) {
    case ev::Phase::optimizer:
      return SpanHue::optimizer;
    case ev::Phase::reduce:
      return SpanHue::reduce;
    case ev::Phase::gather:
      return SpanHue::gather;
    case ev::Phase::checkpoint_save:
    case ev::Phase::checkpoint_load:
      return SpanHue::copy;
    default:
      return SpanHue::neutral;
  }
}

SpanHue hue_of_collective(ev::CollectiveOp op) noexcept {
  switch (op) {
    case ev::CollectiveOp::all_gather:
    case ev::CollectiveOp::broadcast:
      return SpanHue::gather;
    case ev::CollectiveOp::barrier:
      return SpanHue::neutral;
    default:
      return SpanHue::reduce;
  }
}

/// By its lane, else by its owner; where that is unknown, by the kind of work.
SpanHue hue_of_gpu(ev::StreamId lane, const ev::Fields<EventKind::gpu_begin>& fields) noexcept {
  if (lane == ev::StreamId::gpu_gather) return SpanHue::gather;
  if (lane == ev::StreamId::gpu_reduce) return SpanHue::reduce;
  switch (fields.owner_kind) {
    case ev::GpuOwner::optimizer:
      return SpanHue::optimizer;
    case ev::GpuOwner::transfer:
      return SpanHue::copy;
    case ev::GpuOwner::collective:
      return SpanHue::gather;
    default:
      return fields.work == ev::GpuWork::kernel || fields.work == ev::GpuWork::memset ? SpanHue::compute
                                                                                      : SpanHue::copy;
  }
}

}  // namespace

std::string awaited(const Store& store, const Span& span) {
  const Vocabulary& words = vocabulary_of(store.tables());
  switch (span.kind) {
    case EventKind::fetch_wait_begin: {
      // Parameters that stay gathered belong to no module.
      const std::uint32_t module = ev::as<EventKind::fetch_wait_begin>(span).module;
      if (module == ev::kNoId) return "persistent parameters";
      return std::string(words.awaited) + " of " + words.unit + module_name(store, module);
    }
    case EventKind::reduce_wait_begin: {
      const std::uint32_t bucket = ev::as<EventKind::reduce_wait_begin>(span).bucket;
      return bucket == ev::kNoId ? "a reduction" : std::string(words.bucket) + " " + std::to_string(bucket);
    }
    case EventKind::deferred_wait_begin:
      return "the deferred update";
    case EventKind::data_wait_begin:
      return "data";
    default:
      return {};
  }
}

std::string label_of(const Store& store, std::uint32_t rank, const Span& span) {
  switch (span.kind) {
    case EventKind::step_begin:
      return "step " + std::to_string(ev::as<EventKind::step_begin>(span).step);
    case EventKind::micro_step_begin:
      return "micro-step " + std::to_string(ev::as<EventKind::micro_step_begin>(span).micro_step);
    case EventKind::phase_begin:
      return ev::label_of(ev::as<EventKind::phase_begin>(span).phase);
    case EventKind::module_begin:
      return module_name(store, ev::as<EventKind::module_begin>(span).module);
    case EventKind::fetch_wait_begin:
    case EventKind::reduce_wait_begin:
    case EventKind::deferred_wait_begin:
    case EventKind::data_wait_begin:
      return "waits for " + awaited(store, span);
    case EventKind::collective_begin: {
      const auto fields = ev::as<EventKind::collective_begin>(span);
      return std::string(ev::label_of(fields.op)) + " " + std::to_string(fields.sequence);
    }
    case EventKind::transfer_begin:
      return ev::label_of(ev::as<EventKind::transfer_begin>(span).transfer);
    case EventKind::optimizer_begin: {
      const std::uint32_t part = ev::as<EventKind::optimizer_begin>(span).sub_group;
      return part == ev::kNoId ? "optimizer" : "optimizer sub-group " + std::to_string(part);
    }
    case EventKind::kernel_begin: {
      const std::uint32_t name = ev::as<EventKind::kernel_begin>(span).name;
      return named(store, rank, name, "kernel " + std::to_string(name));
    }
    case EventKind::gpu_begin: {
      const auto fields = ev::as<EventKind::gpu_begin>(span);
      return named(store, rank, fields.name, ev::label_of(fields.work));
    }
    case EventKind::gpu_sync_begin:
      return std::string("host waits for ") + ev::label_of(ev::as<EventKind::gpu_sync_begin>(span).sync);
    case EventKind::gpu_records_begin:
      return "GPU records";
    case EventKind::span_begin: {
      const std::uint32_t name = ev::as<EventKind::span_begin>(span).name;
      return named(store, rank, name, "span " + std::to_string(name));
    }
    case EventKind::paused_begin:
      return "paused";
    default:
      return ev::name_of(span.kind);
  }
}

std::string kind_label(const Store& store, EventKind kind) {
  switch (kind) {
    case EventKind::step_begin:
      return "steps";
    case EventKind::micro_step_begin:
      return "micro-steps";
    case EventKind::phase_begin:
      return "phases";
    case EventKind::module_begin:
      return "modules";
    case EventKind::fetch_wait_begin:
      return std::string("waits for ") + vocabulary_of(store.tables()).awaited;
    case EventKind::reduce_wait_begin:
      return "waits for reduction";
    case EventKind::deferred_wait_begin:
      return "waits for the deferred update";
    case EventKind::data_wait_begin:
      return "waits for data";
    case EventKind::collective_begin:
      return "collectives";
    case EventKind::transfer_begin:
      return "transfers";
    case EventKind::optimizer_begin:
      return "the optimizer";
    case EventKind::kernel_begin:
      return "kernels";
    case EventKind::gpu_begin:
      return "work of the GPU";
    case EventKind::gpu_sync_begin:
      return "the host's waits for the GPU";
    case EventKind::gpu_records_begin:
      return "GPU records";
    case EventKind::span_begin:
      return "the program's own spans";
    case EventKind::paused_begin:
      return "pauses";
    default:
      return ev::name_of(kind);
  }
}

SpanHue hue_of(ev::StreamId lane, EventKind kind, std::uint8_t code) noexcept {
  Span span;
  span.kind = kind;
  span.code = code;
  switch (kind) {
    case EventKind::module_begin:
    case EventKind::kernel_begin:
      return SpanHue::compute;
    case EventKind::gpu_begin:
      return hue_of_gpu(lane, ev::as<EventKind::gpu_begin>(span));
    case EventKind::phase_begin:
      return hue_of_phase(ev::as<EventKind::phase_begin>(span).phase);
    case EventKind::fetch_wait_begin:
    case EventKind::reduce_wait_begin:
    case EventKind::deferred_wait_begin:
    case EventKind::data_wait_begin:
    case EventKind::gpu_sync_begin:
      return SpanHue::wait;
    case EventKind::collective_begin:
      return hue_of_collective(ev::as<EventKind::collective_begin>(span).op);
    case EventKind::transfer_begin:
      return SpanHue::copy;
    case EventKind::optimizer_begin:
      return SpanHue::optimizer;
    default:
      return SpanHue::neutral;
  }
}

}  // namespace shardscope::store
