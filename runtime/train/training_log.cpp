#include "runtime/train/training_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "instrumentation/param_status.h"
#include "runtime/plan/deepspeed_words.h"
#include "runtime/plan/fetch_counters.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::train {
namespace {

namespace ev = instrumentation;
using ev::as;
using ev::EventKind;

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

double ms(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }
double gib(std::int64_t bytes) { return static_cast<double>(bytes) / kGiB; }
std::int64_t time_of(const ev::Event& event) { return static_cast<std::int64_t>(event.ticks); }

bool is_memory(EventKind kind) { return kind == EventKind::memory_alloc || kind == EventKind::memory_free; }

/// Whether the log uses events of this kind.
bool wanted(const LogParts& parts, EventKind kind) {
  switch (kind) {
    case EventKind::step_end:
    case EventKind::micro_step_begin:
    case EventKind::phase_begin:
    case EventKind::phase_end:
    case EventKind::detail_changed:
      return true;
    case EventKind::module_end:
    case EventKind::reduce_wait_begin:
    case EventKind::reduce_wait_end:
    case EventKind::optimizer_begin:
    case EventKind::optimizer_end:
    case EventKind::fetch_counter:
      return parts.times;
    case EventKind::param_status:
    case EventKind::fetch_decision:
    case EventKind::trace_invalidated:
      return parts.decisions;
    default:
      return parts.memory && is_memory(kind);
  }
}

/// In Python's spelling.
const char* python(bool value) { return value ? "True" : "False"; }

}  // namespace

TrainingLog::TrainingLog(LogParts parts, const ev::RunTables& tables, Write write)
    : parts_(parts), modules_(tables.modules), params_(tables.params), write_(std::move(write)) {}

void TrainingLog::add(std::span<const ev::Event> events, std::uint64_t dropped) {
  dropped_ += dropped;
  bool step_ended = false;
  for (const ev::Event& event : events) {
    if (!wanted(parts_, event.kind)) continue;
    waiting_.push_back(event);
    step_ended = step_ended || event.kind == EventKind::step_end;
  }
  if (!step_ended) return;
  // Events of a GPU arrive later than the host's, with their own timestamps.
  std::stable_sort(waiting_.begin(), waiting_.end(),
                   [](const ev::Event& a, const ev::Event& b) { return a.ticks < b.ticks; });
  const auto last = std::find_if(waiting_.rbegin(), waiting_.rend(),
                                 [](const ev::Event& event) { return event.kind == EventKind::step_end; });
  write_until(static_cast<std::size_t>(waiting_.rend() - last));
}

void TrainingLog::write_until(std::size_t end) {
  for (std::size_t i = 0; i < end; ++i) take(waiting_[i]);
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(end));
}

void TrainingLog::take(const ev::Event& event) {
  const std::int64_t at = time_of(event);
  switch (event.kind) {
    case EventKind::micro_step_begin:
      end_micro_step();
      break;
    case EventKind::phase_begin:
      take_phase(event, true);
      break;
    case EventKind::phase_end:
      take_phase(event, false);
      break;
    case EventKind::module_end:
      if (in_backward_) last_module_ended_ = at;
      break;
    case EventKind::reduce_wait_begin:
      wait_began_ = at;
      break;
    case EventKind::reduce_wait_end:
      if (in_epilogue_) micro_.reduction += at - wait_began_;
      break;
    case EventKind::optimizer_begin:
      if (optimizer_began_ != 0 && group_began_ == 0) group_began_ = at;
      break;
    case EventKind::optimizer_end:
      if (group_began_ != 0) groups_ns_ = at - group_began_;
      break;
    case EventKind::fetch_counter:
      take_counter(as<EventKind::fetch_counter>(event));
      break;
    case EventKind::memory_alloc:
    case EventKind::memory_free: {
      const auto memory = as<EventKind::memory_alloc>(event);  // the fields of both
      take_memory(static_cast<std::size_t>(memory.pool), memory.pool_bytes);
      break;
    }
    case EventKind::param_status:
      take_status(as<EventKind::param_status>(event));
      break;
    case EventKind::fetch_decision: {
      const auto decision = as<EventKind::fetch_decision>(event);
      if (decision.module >= modules_.size()) break;
      const ev::ModuleInfo& module = modules_[decision.module];
      const std::string place = decision.trace_step == ev::kNoId ? "-" : std::to_string(decision.trace_step);
      write_(fmt::format("{}: M{}({}) P[{}] {{'avail': '{:.1e}'}}", place, module.id,
                         module.path.empty() ? module.type : module.path, fmt::join(module.params, ", "),
                         static_cast<double>(decision.available_elems)));
      break;
    }
    case EventKind::trace_invalidated:
      write_("Invalidate trace cache: the order of modules changed");
      break;
    case EventKind::step_end:
      end_step(at, as<EventKind::step_end>(event).skipped);
      break;
    case EventKind::detail_changed:
      memory_known_ = as<EventKind::detail_changed>(event).detail >= ev::Detail::params;
      break;
    default:
      break;
  }
}

void TrainingLog::take_phase(const ev::Event& event, bool begins) {
  const std::int64_t at = time_of(event);
  switch (as<EventKind::phase_begin>(event).phase) {
    case ev::Phase::forward:
      if (begins) in_epilogue_ = false;
      write_memory(begins ? "Engine before forward" : "Engine after forward");
      if (begins) {
        forward_began_ = at;
      } else if (forward_began_ != 0) {
        micro_.forward = at - forward_began_;
      }
      break;
    case ev::Phase::backward:
      write_memory(begins ? "Engine before backward" : "Engine after backward");
      in_backward_ = begins;
      if (begins) {
        backward_began_ = at;
        last_module_ended_ = 0;
      } else if (backward_began_ != 0) {
        micro_.backward = at - backward_began_;
        micro_.divided = last_module_ended_ != 0;
        micro_.inner = micro_.divided ? last_module_ended_ - backward_began_ : 0;
        micro_.reduction = micro_.divided ? micro_.backward - micro_.inner : 0;
        in_epilogue_ = true;
      }
      break;
    case ev::Phase::optimizer:
      if (begins) {
        in_epilogue_ = false;
        write_memory("Engine before step");
        optimizer_began_ = at;
        group_began_ = groups_ns_ = 0;
      } else {
        optimizer_ended_ = at;
      }
      break;
    default:
      break;
  }
}

void TrainingLog::take_memory(std::size_t pool, std::int64_t bytes) {
  if (pool >= pools_.size()) return;
  pools_[pool].now = bytes;
  pools_[pool].peak = std::max(pools_[pool].peak, bytes);
}

void TrainingLog::take_counter(const ev::Fields<EventKind::fetch_counter>& counter) {
  Counter& sum = counters_[static_cast<std::uint8_t>(counter.counter)];
  sum.count += counter.count;
  sum.elems += counter.elems;
}

void TrainingLog::take_status(const ev::Fields<EventKind::param_status>& change) {
  const char* what = nullptr;
  plan::ParamStatus before{};
  switch (change.status.status()) {
    case plan::ParamStatus::in_flight:
      what = change.cause == ev::StatusCause::prefetch ? "-prefetch" : "-fetch";
      before = plan::ParamStatus::not_available;
      break;
    case plan::ParamStatus::available:
      what = "-wait";
      before = plan::ParamStatus::in_flight;
      break;
    case plan::ParamStatus::not_available:
      what = "-release";
      before = plan::ParamStatus::available;
      break;
  }
  if (what != nullptr)
    write_(fmt::format("{}: {}", what, summary(change.param, plan::deepspeed_word(before))));
}

std::string TrainingLog::summary(std::uint32_t param, const char* status) const {
  if (param >= params_.size()) return fmt::format("{{'id': {}}}", param);
  const ev::ParamInfo& info = params_[param];
  return fmt::format(
      "{{'id': {}, 'name': '{}', 'status': '{}', 'ds_numel': {}, 'ds_shape': ({}{}), 'requires_grad': {}, "
      "'persist': {}}}",
      info.id, info.name, status, info.elems, fmt::join(info.shape, ", "), info.shape.size() == 1 ? "," : "",
      python(!info.frozen), python(info.persistent));
}

std::string TrainingLog::times_text(const Times& times, const char* suffix) {
  std::string line = fmt::format("time (ms) | fwd{0}: {1:.2f} | bwd{0}: {2:.2f}", suffix, ms(times.forward),
                                 ms(times.backward));
  if (times.divided) {
    line += fmt::format(" | bwd_inner{0}: {1:.2f} | bwd_allreduce{0}: {2:.2f}", suffix, ms(times.inner),
                        ms(times.reduction));
  }
  return line + fmt::format(" | step{}: {:.2f}", suffix, ms(times.step));
}

void TrainingLog::end_micro_step() {
  if (micro_.forward == 0 && micro_.backward == 0) return;
  if (parts_.times) write_(times_text(micro_, "_microstep"));
  step_.forward += micro_.forward;
  step_.backward += micro_.backward;
  step_.inner += micro_.inner;
  step_.reduction += micro_.reduction;
  step_.step += micro_.step;
  step_.divided = step_.divided && micro_.divided;
  micro_ = {};
}

void TrainingLog::end_step(std::int64_t at_ns, bool skipped) {
  if (optimizer_began_ != 0) micro_.step = at_ns - optimizer_began_;
  // Without sub-group updates (detail below modules) the parts of a step are unknown.
  if (parts_.times && optimizer_ended_ > optimizer_began_ && (group_began_ != 0 || skipped)) {
    // The rest is preparation: norm, overflow, and with offload the transfer of gradients.
    const std::int64_t prepared =
        group_began_ == 0 ? optimizer_ended_ - optimizer_began_ : group_began_ - optimizer_began_;
    write_(fmt::format(
        "time (ms) | optimizer_gradients: {:.2f} | optimizer_step: {:.2f} | optimizer_allgather: {:.2f}",
        ms(prepared), ms(groups_ns_), ms(at_ns - optimizer_ended_)));
  }
  end_micro_step();
  if (parts_.times) {
    write_(times_text(step_, ""));
    write_counters();
  }
  write_memory("Engine after step");
  if (dropped_ != 0) {
    write_(fmt::format("{} events were dropped: the lines above may lack some or be too short", dropped_));
    dropped_ = 0;
  }
  step_ = {};
  optimizer_began_ = optimizer_ended_ = group_began_ = groups_ns_ = 0;
  in_epilogue_ = false;
}

void TrainingLog::write_counters() {
  for (const auto& [counter, sum] : counters_) {
    write_(fmt::format("{}: count = {}, numel = {}", plan::name_of(static_cast<plan::FetchCounter>(counter)),
                       sum.count, sum.elems));
  }
  counters_.clear();
}

void TrainingLog::write_memory(const char* where) {
  if (!parts_.memory) return;
  if (!memory_known_) {
    write_(fmt::format("{}: memory is not recorded, the detail is below params", where));
    return;
  }
  Pool& device = pools_[static_cast<std::size_t>(ev::MemoryPool::device)];
  std::string line =
      fmt::format("{}: MA {:.4f} GiB, Max_MA {:.4f} GiB", where, gib(device.now), gib(device.peak));
  for (const ev::MemoryPool pool : {ev::MemoryPool::host, ev::MemoryPool::pinned, ev::MemoryPool::nvme}) {
    const Pool& other = pools_[static_cast<std::size_t>(pool)];
    if (other.peak > 0) line += fmt::format(", {} {:.4f} GiB", ev::label_of(pool), gib(other.now));
  }
  write_(line);
  for (Pool& pool : pools_) pool.peak = pool.now;
}

}  // namespace shardscope::train
