#include "app/export/sqlite_spans.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "app/analysis/communication.h"
#include "app/analysis/intervals.h"
#include "app/export/kineto_work.h"
#include "app/export/span_walk.h"
#include "app/store/gather_contents.h"
#include "app/store/span_time.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using store::Database;
using store::Statement;
using store::Store;

constexpr std::int64_t kPushPopRange = 59;  ///< eventType NvtxPushPopRange of an Nsight Systems export

/// copyKind as CUPTI numbers it.
std::int64_t copy_kind(ev::GpuWork work) {
  switch (work) {
    case ev::GpuWork::host_to_device:
      return 1;
    case ev::GpuWork::device_to_host:
      return 2;
    case ev::GpuWork::device_to_device:
      return 8;
    case ev::GpuWork::peer_to_peer:
      return 10;
    default:
      return 0;  // unknown
  }
}

class SpanRows {
 public:
  SpanRows(Database& database, const Store& store, const ExportPart& part) : store_(store), part_(part) {
    add_string_ = database.prepare("INSERT INTO StringIds VALUES(?1, ?2)");
    range_ =
        database.prepare("INSERT INTO NVTX_EVENTS VALUES(?1, ?2, ?3, NULL, NULL, NULL, ?4, ?5, ?5, NULL, 0)");
    kernel_ =
        database.prepare("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?7)");
    copy_ =
        database.prepare("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8)");
    collective_ = database.prepare(
        "INSERT INTO SHARDSCOPE_COLLECTIVES VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)");
  }

  void write() {
    std::uint32_t rank = ev::kNoId;
    for (const store::LaneId lane : store_.lanes()) {
      if (!part_.has_rank(lane.rank)) continue;
      if (lane.rank != rank) {
        params_ = params_of(store_, lane.rank, part_);
        computation(lane.rank);
      }
      rank = lane.rank;
      walk_part(store_, lane, part_, [&](const WalkedSpan& walked) { span(lane, walked); });
    }
  }

 private:
  std::int64_t string_id(const std::string& text) {
    const auto [entry, added] = strings_.try_emplace(text, static_cast<std::int64_t>(strings_.size()));
    if (added) add_string_.bind(1, entry->second).bind(2, text).run();
    return entry->second;
  }

  /// Global ids as in Nsight Systems: hardware and virtual machine 0, process from bit 24 up, thread below.
  static std::int64_t global_pid(std::uint32_t rank) { return (static_cast<std::int64_t>(rank) + 1) << 24; }

  /// Kernels of a rank without GPU records: all computation within a step, by the innermost span. A module's
  /// own computation, outside of its children, is included.
  void computation(std::uint32_t rank) {
    std::vector<analysis::Interval> known;
    const TimeRange range = part_.of(rank);
    store_.for_each_span(
        {rank, ev::StreamId::host}, 0, range.from_ns, range.to_ns, [&](const store::Span& step) {
          if (step.kind != ev::EventKind::step_begin) return;
          const analysis::StepWindow window{ev::as<ev::EventKind::step_begin>(step).step, step.begin_ns,
                                            store::time_of(store_, rank, step).until_ns};
          const StepWork of_step = work_of_step(store_, rank, window, InnerEdges::exact);
          if (!of_step.known) return;
          known.push_back({window.begin_ns, window.end_ns});
          for (const DeviceWork& work : of_step.work) {
            // GPU records have their own rows.
            if (work.kind != WorkClass::compute || (work.span && work.span->kind == ev::EventKind::gpu_begin))
              continue;
            const ev::EventKind shown = work.span ? work.span->kind : ev::EventKind::module_begin;
            if (!part_.has_kind(shown) || !range.overlaps(work.begin_ns, work.end_ns)) continue;
            kernel_row(rank, work.stream, work.begin_ns, work.end_ns,
                       work.span ? subject(*work.span) : ev::kNoId,
                       work.span ? span_label(store_, rank, *work.span) : work.name);
          }
        });
    in_steps_ = analysis::IntervalSet(std::move(known));
  }

  /// The correlation of a row: id of the module, sub-group or kernel name; of a collective the sequence
  /// number.
  static std::uint32_t subject(const store::Span& s) {
    if (s.kind == ev::EventKind::module_begin) return ev::as<ev::EventKind::module_begin>(s).module;
    if (s.kind == ev::EventKind::optimizer_begin) return ev::as<ev::EventKind::optimizer_begin>(s).sub_group;
    if (s.kind == ev::EventKind::gpu_begin) return ev::as<ev::EventKind::gpu_begin>(s).name;
    if (s.kind == ev::EventKind::kernel_begin) return ev::as<ev::EventKind::kernel_begin>(s).name;
    if (s.kind == ev::EventKind::collective_begin) return ev::as<ev::EventKind::collective_begin>(s).sequence;
    return ev::kNoId;
  }

  static bool is_computation(ev::EventKind kind) {
    return kind == ev::EventKind::module_begin || kind == ev::EventKind::optimizer_begin ||
           kind == ev::EventKind::kernel_begin;
  }

  /// Whether computation() has written the work that begins at `at_ns`.
  [[nodiscard]] bool in_known_step(std::int64_t at_ns) const {
    const auto& all = in_steps_.intervals();
    const auto after = std::ranges::upper_bound(all, at_ns, {}, &analysis::Interval::begin);
    return after != all.begin() && at_ns < std::prev(after)->end;
  }

  void kernel_row(std::uint32_t rank, ev::StreamId stream, std::int64_t begin_ns, std::int64_t end_ns,
                  std::uint32_t correlation, const std::string& name) {
    kernel_.bind(1, begin_ns).bind(2, end_ns).bind(3, std::int64_t{rank});
    kernel_.bind(4, static_cast<std::int64_t>(stream) + 1);
    bind_id(kernel_, 5, correlation);
    kernel_.bind(6, global_pid(rank)).bind(7, string_id(name)).run();
  }

  void span(store::LaneId lane, const WalkedSpan& walked) {
    const store::Span& s = *walked.span;
    const std::string label = span_label(store_, lane.rank, s);
    const auto stream = static_cast<std::int64_t>(lane.stream) + 1;
    if (s.kind == ev::EventKind::collective_begin) {
      const auto fields = ev::as<ev::EventKind::collective_begin>(s);
      collective_.bind(1, std::int64_t{lane.rank})
          .bind(2, std::int64_t{fields.sequence})
          .bind(3, label)
          .bind(4, s.begin_ns);
      bind_end(collective_, 5, walked);
      const auto moved = params_.find(fields.sequence);
      collective_.bind(9,
                       moved == params_.end() ? std::string() : store::contents_text(store_, moved->second));
      bind_where(collective_, 6, s.mark_ns, s.mark_ns != 0);
      collective_.bind(7, fields.elems).bind(8, fields.bytes);
      const ev::GroupInfo* const group = analysis::group_of(store_, lane.rank, s);
      const bool of_all = fields.code.group() == ev::kNoId;  // numbered in the group of all ranks
      if (group != nullptr) {
        collective_.bind(10, group->name).bind(11, fmt::format("{}", fmt::join(group->ranks, ",")));
      } else {
        collective_.bind(10, store::StepRow::NAN_).bind(11, store::StepRow::NAN_);
      }
      bind_where(collective_, 12, of_all ? fields.sequence : ev::number_in_group(fields.sequence),
                 of_all || group != nullptr);
      collective_.run();
    }
    if (s.kind == ev::EventKind::transfer_begin && walked.is_work) {
      const auto fields = ev::as<ev::EventKind::transfer_begin>(s);
      copy_.bind(1, s.begin_ns).bind(2, walked.end_ns).bind(3, std::int64_t{lane.rank}).bind(4, stream);
      bind_id(copy_, 5, fields.param);
      copy_.bind(6, global_pid(lane.rank)).bind(7, fields.bytes);
      const ev::TransferKind kind = fields.transfer;
      const bool up = kind == ev::TransferKind::host_to_device || kind == ev::TransferKind::input_to_device;
      copy_.bind(8, std::int64_t{up ? 1 : 2}).run();  // 1: host to device, 2: device to host
      return;
    }
    const auto gpu = ev::as<ev::EventKind::gpu_begin>(s);
    if (s.kind == ev::EventKind::gpu_begin && gpu.work != ev::GpuWork::kernel &&
        gpu.work != ev::GpuWork::memset) {
      copy_.bind(1, s.begin_ns).bind(2, walked.end_ns).bind(3, std::int64_t{lane.rank}).bind(4, stream);
      copy_.bind(5, std::int64_t{gpu.name}).bind(6, global_pid(lane.rank)).bind(7, gpu.amount);
      copy_.bind(8, copy_kind(gpu.work)).run();
      return;
    }
    const bool is_kernel = s.kind == ev::EventKind::collective_begin || s.kind == ev::EventKind::gpu_begin;
    if (walked.is_work && !(is_computation(s.kind) && in_known_step(s.begin_ns)))
      kernel_row(lane.rank, lane.stream, s.begin_ns, walked.end_ns, subject(s),
                 s.kind == ev::EventKind::collective_begin ? "nccl:" + label : label);
    if (walked.is_work && is_kernel) return;
    bind_end(range_, 2, walked);
    range_.bind(1, s.begin_ns).bind(3, kPushPopRange).bind(4, label);
    range_.bind(5, global_pid(lane.rank) + stream).run();
  }

  /// NULL for an open span; kernels and copies need a number: the last time at which they are known to run.
  static void bind_end(Statement& insert, int column, const WalkedSpan& walked) {
    bind_where(insert, column, walked.end_ns, walked.time.ended);
  }

  const Store& store_;
  const ExportPart& part_;
  std::unordered_map<std::string, std::int64_t> strings_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> params_;  ///< by collective, of one rank
  analysis::IntervalSet in_steps_;  ///< steps of the current rank whose kernels computation() has written
  Statement add_string_, range_, kernel_, copy_, collective_;
};

}  // namespace

void write_span_rows(Database& database, const Store& store, const ExportPart& part) {
  SpanRows(database, store, part).write();
}

}  // namespace shardscope::exporter
