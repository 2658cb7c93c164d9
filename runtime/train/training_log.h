// Output of rank 0 with wall_clock_breakdown, memory_breakdown and log_level debug: DeepSpeed's lines,
// computed from the events of the run. DeepSpeed synchronizes the device at every timer; this does not, and
// therefore prints a step after its end.
//
// Sources: deepspeed/utils/timer.py, runtime/engine.py, runtime/utils.py (see_memory_usage),
// runtime/zero/partitioned_param_coordinator.py, runtime/zero/partitioned_param_profiler.py.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "instrumentation/event.h"
#include "instrumentation/event_fields.h"
#include "instrumentation/run_tables.h"

namespace shardscope::train {

struct LogParts {
  bool times = false;      ///< wall_clock_breakdown
  bool memory = false;     ///< memory_breakdown
  bool decisions = false;  ///< log_level debug
  [[nodiscard]] bool any() const noexcept { return times || memory || decisions; }
};

class TrainingLog {
 public:
  using Write = std::function<void(const std::string& line)>;
  /// `tables` names modules and parameters.
  TrainingLog(LogParts parts, const instrumentation::RunTables& tables, Write write);

  /// An instrumentation::EventObserver: writes completed steps.
  void add(std::span<const instrumentation::Event> events, std::uint64_t dropped);

 private:
  /// Nanoseconds of one micro-step or of a step's.
  struct Times {
    std::int64_t forward = 0, backward = 0;
    std::int64_t inner = 0;      ///< part of backward up to the end of the last module's backward
    std::int64_t reduction = 0;  ///< rest of backward, and waits for buckets up to the optimizer
    std::int64_t step = 0;       ///< from the optimizer's begin
    bool divided = true;         ///< inner and reduction are known: modules were recorded
  };
  struct Pool {
    std::int64_t now = 0, peak = 0;  ///< bytes; the peak since the line before
  };

  void write_until(std::size_t end);
  void take(const instrumentation::Event& event);
  void take_phase(const instrumentation::Event& event, bool begins);
  void take_memory(std::size_t pool, std::int64_t bytes);
  void take_counter(const instrumentation::Fields<instrumentation::EventKind::fetch_counter>& counter);
  void take_status(const instrumentation::Fields<instrumentation::EventKind::param_status>& change);
  void end_micro_step();
  void end_step(std::int64_t at_ns, bool skipped);
  [[nodiscard]] static std::string times_text(const Times& times, const char* suffix);
  void write_memory(const char* where);
  void write_counters();
  [[nodiscard]] std::string summary(std::uint32_t param, const char* status) const;

  LogParts parts_;
  std::vector<instrumentation::ModuleInfo> modules_;
  std::vector<instrumentation::ParamInfo> params_;
  Write write_;

  std::vector<instrumentation::Event> waiting_;  ///< events of unfinished steps
  std::uint64_t dropped_ = 0;                    ///< since the last step's lines

  std::int64_t forward_began_ = 0, backward_began_ = 0, last_module_ended_ = 0, optimizer_began_ = 0;
  std::int64_t optimizer_ended_ = 0, group_began_ = 0, wait_began_ = 0, groups_ns_ = 0;
  bool in_backward_ = false;
  bool in_epilogue_ = false;  ///< after a backward, before the optimizer or the next forward
  Times micro_, step_;
  bool memory_known_ = true;  ///< memory events are enabled
  std::array<Pool, instrumentation::kMemoryPoolCount> pools_{};
  struct Counter {
    std::int64_t count = 0, elems = 0;
  };
  std::map<std::uint8_t, Counter> counters_;  ///< plan::FetchCounter, of the step
};

}  // namespace shardscope::train
