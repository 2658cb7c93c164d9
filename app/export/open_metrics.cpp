#include "app/export/open_metrics.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string_view>

namespace shardscope::exporter {
namespace {

/// Escapes a label value: backslash, quote and line feed (OpenMetrics 1.0, "Text Format").
std::string label(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

class Page {
 public:
  /// Writes TYPE, UNIT and HELP of a family, before its samples. `unit`: the last word of the name, or empty.
  void family(std::string_view name, std::string_view type, std::string_view unit, std::string_view help) {
    text_ += fmt::format("# TYPE {} {}\n", name, type);
    if (!unit.empty()) text_ += fmt::format("# UNIT {} {}\n", name, unit);
    text_ += fmt::format("# HELP {} {}\n", name, help);
  }
  template <typename Value>
  void sample(std::string_view name, std::string_view labels, Value value) {
    text_ += fmt::format("{}{}{}{} {}\n", name, labels.empty() ? "" : "{", labels, labels.empty() ? "" : "}",
                         value);
  }
  void gauge(std::string_view name, std::string_view unit, std::string_view help,
             const std::optional<double>& value) {
    if (!value) return;
    family(name, "gauge", unit, help);
    sample(name, "", *value);
  }
  void counter(std::string_view name, std::string_view help, std::uint64_t value) {
    family(name, "counter", "", help);
    sample(fmt::format("{}_total", name), "", value);
  }
  [[nodiscard]] std::string take() && { return std::move(text_) + "# EOF\n"; }

 private:
  std::string text_;
};

std::optional<double> ratio(const std::optional<double>& percent) {
  return percent ? std::optional(*percent / 100) : std::nullopt;
}
std::optional<double> seconds(const std::optional<double>& ms) {
  return ms ? std::optional(*ms / 1000) : std::nullopt;
}

}  // namespace

void OpenMetrics::count(const analysis::WatchInterval& interval) {
  steps_ += interval.steps;
  for (const analysis::Trigger& trigger : interval.triggers)
    ++triggers_.at(static_cast<std::size_t>(trigger.kind));
}

void OpenMetrics::show(const analysis::WatchInterval& interval) {
  const auto replace = [](auto& shown, const auto& latest) {
    if (latest) shown = latest;
  };
  if (interval.step != instrumentation::kNoId) shown_.step = interval.step;
  replace(shown_.step_ms_median, interval.step_ms_median);
  replace(shown_.step_ms_max, interval.step_ms_max);
  replace(shown_.tokens_per_s, interval.tokens_per_s);
  replace(shown_.loss, interval.loss);
  replace(shown_.grad_norm, interval.grad_norm);
  replace(shown_.loss_scale, interval.loss_scale);
  replace(shown_.exposed_comm_pct, interval.exposed_comm_pct);
  replace(shown_.idle_pct, interval.idle_pct);
  replace(shown_.overlap_pct, interval.overlap_pct);
}

std::string OpenMetrics::text(const store::Store& store, const analysis::WatchInterval& interval) const {
  Page page;
  if (store.has_tables()) {
    const auto& tables = store.tables();
    page.family("shardscope_run", "info", "", "The run that is watched.");
    page.sample(
        "shardscope_run_info",
        fmt::format("run=\"{}\",model=\"{}\",stage=\"{}\",world=\"{}\",device=\"{}\",framework=\"{}\"",
                    label(tables.run_id), label(tables.model), tables.stage, tables.world,
                    label(tables.device), label(tables.framework)),
        1);
  }
  page.counter("shardscope_steps", "Steps that every rank completed.", steps_);
  page.gauge("shardscope_step", "", "Number of the last step that every rank completed.",
             shown_.step == instrumentation::kNoId ? std::nullopt : std::optional<double>(shown_.step));
  // Intervals without a step change none of these.
  page.gauge("shardscope_step_seconds", "seconds",
             "Median time of the last interval's steps, without pauses.", seconds(shown_.step_ms_median));
  page.gauge("shardscope_step_longest_seconds", "seconds", "Longest step of the last interval.",
             seconds(shown_.step_ms_max));
  page.gauge("shardscope_tokens_per_second", "", "Tokens of the last interval's steps over their time.",
             shown_.tokens_per_s);
  page.gauge("shardscope_loss", "", "Loss of the interval's last step, mean over ranks and micro-steps.",
             shown_.loss);
  page.gauge("shardscope_held_out_loss", "",
             "Loss of the latest evaluation, on held-out data, mean over ranks.",
             interval.evaluation ? std::optional(interval.evaluation->loss) : std::nullopt);
  page.gauge("shardscope_grad_norm", "", "Gradient norm of the interval's last step.", shown_.grad_norm);
  page.gauge("shardscope_loss_scale", "", "Loss scale of the interval's last step.", shown_.loss_scale);
  page.gauge("shardscope_exposed_communication_ratio", "ratio",
             "Exposed communication over recorded time, all ranks, last interval.",
             ratio(shown_.exposed_comm_pct));
  page.gauge("shardscope_idle_ratio", "ratio", "Idle time over recorded time, all ranks, last interval.",
             ratio(shown_.idle_pct));
  page.gauge("shardscope_overlap_ratio", "ratio", "Communication that was hidden, last interval.",
             ratio(shown_.overlap_pct));
  page.family("shardscope_device_memory_peak_bytes", "gauge", "bytes",
              "Most that a rank's device pool held so far.");
  for (const store::RankRow& row : store.ranks()) {
    if (const auto peak = store.memory_peak(row.rank, instrumentation::MemoryPool::device))
      page.sample("shardscope_device_memory_peak_bytes", fmt::format("rank=\"{}\"", row.rank), peak->total());
  }
  page.family("shardscope_ranks", "gauge", "", "Ranks that have come, by state.");
  page.sample("shardscope_ranks", "state=\"running\"", interval.ranks - interval.ranks_ended);
  page.sample("shardscope_ranks", "state=\"ended\"", interval.ranks_ended - interval.ranks_failed);
  page.sample("shardscope_ranks", "state=\"failed\"", interval.ranks_failed);
  // Without it a run that hangs looks like one whose figures do not change.
  page.gauge("shardscope_seconds_since_event", "", "Time without an event.",
             std::chrono::duration<double>(interval.quiet).count());
  page.counter("shardscope_events", "Events received.", interval.events);
  page.counter("shardscope_dropped_events", "Events dropped by ranks or collectors.",
               interval.missing_events);
  page.counter("shardscope_lost_messages", "Messages lost on the way.", interval.lost_messages);
  page.family("shardscope_triggers", "counter", "", "Triggers so far, by kind.");
  for (std::size_t kind = 0; kind < triggers_.size(); ++kind) {
    page.sample("shardscope_triggers_total",
                fmt::format("kind=\"{}\"", analysis::name_of(static_cast<analysis::TriggerKind>(kind))),
                triggers_[kind]);
  }
  return std::move(page).take();
}

}  // namespace shardscope::exporter
