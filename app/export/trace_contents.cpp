#include "app/export/trace_contents.h"

#include "app/store/names.h"
#include "instrumentation/event_fields.h"
#include "instrumentation/event_table.h"
#include "runtime/plan/prefetch_outcome.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using ev::EventKind;

void gpu_arguments(const ev::Fields<EventKind::gpu_begin>& fields, ArgumentSink& out) {
  out.number("cuda_stream", fields.cuda_stream);
  if (fields.owner_kind != ev::GpuOwner::none) {
    out.text("for", store::name_of(fields.owner_kind));
    out.number("owner", fields.owner);
  }
  if (fields.delay_ns != ev::kNoDelay) out.number("launch_delay_ns", fields.delay_ns);
  out.number(fields.work == ev::GpuWork::kernel ? "threads" : "bytes", fields.amount);
}

}  // namespace

void span_arguments(const WalkedSpan& walked, ArgumentSink& out) {
  const store::Span& span = *walked.span;
  switch (span.kind) {
    case EventKind::module_begin: {
      const auto fields = ev::as<EventKind::module_begin>(span);
      out.text("pass", store::name_of(fields.pass));
      out.number("module", fields.module);
      break;
    }
    case EventKind::fetch_wait_begin: {
      const auto fields = ev::as<EventKind::fetch_wait_begin>(span);
      if (fields.gather != ev::kNoId) out.number("gather", fields.gather);
      out.number("bytes", fields.bytes);
      break;
    }
    case EventKind::reduce_wait_begin: {
      const auto fields = ev::as<EventKind::reduce_wait_begin>(span);
      if (fields.bucket != ev::kNoId) out.number("bucket", fields.bucket);
      out.number("bytes", fields.bytes);
      break;
    }
    case EventKind::transfer_begin:
      out.number("bytes", ev::as<EventKind::transfer_begin>(span).bytes);
      break;
    case EventKind::gpu_begin:
      gpu_arguments(ev::as<EventKind::gpu_begin>(span), out);
      break;
    default:
      break;
  }
  if (walked.time.paused_ns > 0) {
    out.number("running_ns", walked.time.running_ns);
    out.number("paused_ns", walked.time.paused_ns);
  }
}

void TraceInstant::arguments(ArgumentSink& out) const {
  switch (event->kind) {
    case EventKind::prefetch_issued: {
      // Issued at one module for the parameters of later ones: the gather's argument "holds" lists them.
      const auto fields = ev::as<EventKind::prefetch_issued>(*event);
      out.number("gather", fields.gather);
      out.number("at_module", fields.module);
      out.number("elems", fields.elems);
      return;
    }
    case EventKind::collective_submitted:
      out.number("correlation", ev::as<EventKind::collective_submitted>(*event).sequence);
      return;
    case EventKind::prefetch_outcome: {
      const auto fields = ev::as<EventKind::prefetch_outcome>(*event);
      out.number("gather", fields.gather);
      out.number("slack_ns", fields.slack_ns);
      out.number("gather_ns", fields.gather_ns);
      return;
    }
    default:
      for (const ev::FieldInfo& field : ev::info_of(event->kind).fields) {
        if (const auto value = ev::integer_of(field, *event); value && field.type != "double")
          out.number(field.name, *value);
      }
  }
}

void for_each_trace_instant(const store::Store& store, std::uint32_t rank, const ExportPart& part,
                            const std::function<void(const TraceInstant&)>& visit) {
  for_each_instant(store, rank, part, [&](const ev::Event& event) {
    TraceInstant out{.name = {}, .at_ns = static_cast<std::int64_t>(event.ticks), .event = &event};
    switch (event.kind) {
      case EventKind::prefetch_issued:
        out.name = "prefetch " + std::to_string(ev::as<EventKind::prefetch_issued>(event).gather) + " issued";
        break;
      case EventKind::collective_submitted:
        out.name = std::string("submit ") + store::name_of(ev::as<EventKind::collective_submitted>(event).op);
        break;
      case EventKind::prefetch_outcome:
        out.name =
            std::string("prefetch ") + plan::to_string(ev::as<EventKind::prefetch_outcome>(event).outcome);
        break;
      default:
        if (!ev::has_trait(event.kind, ev::EventTrait::mark)) return;
        out.name = ev::name_of(event.kind);
    }
    visit(out);
  });
}

}  // namespace shardscope::exporter
