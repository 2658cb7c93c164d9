#include "app/gui/model/break_list.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "app/gui/model/app_state.h"
#include "app/gui/model/names.h"

namespace shardscope::gui {
namespace {

std::string place_name(const store::Store& store, const Breakpoint& breakpoint) {
  if (breakpoint.kind == BreakKind::module) return module_name(store, breakpoint.id);
  if (breakpoint.kind == BreakKind::param) return param_name(store, breakpoint.id);
  return {};
}

bool has_name(BreakKind kind) { return kind == BreakKind::module || kind == BreakKind::param; }

ev::StopRule rule_of(const Breakpoint& breakpoint) {
  ev::StopRule rule;
  rule.id = breakpoint.id;
  switch (breakpoint.kind) {
    case BreakKind::module:
      rule.kind = ev::StopRule::Kind::run_to_module;
      break;
    case BreakKind::param:
      rule.kind = ev::StopRule::Kind::run_to_param;
      break;
    case BreakKind::bucket:
      rule.kind = ev::StopRule::Kind::run_to_bucket;
      break;
    case BreakKind::step:
      rule.kind = ev::StopRule::Kind::run_to_step;
      break;
    default:
      break;
  }
  return rule;
}

}  // namespace

bool BreakList::any_enabled() const {
  return std::ranges::any_of(list_, [](const Breakpoint& one) { return one.enabled; });
}

void BreakList::changed() {
  ++revision_;
  kept_ = false;
  rule_due_ = true;
  none_left_ = false;
  search_.reset();
  ahead_.reset();
  played_ns_ = -1;
}

void BreakList::add(const store::Store& store, Breakpoint breakpoint) {
  for (Breakpoint& there : list_) {
    Breakpoint on = there;
    on.enabled = breakpoint.enabled;
    if (on != breakpoint) continue;
    there.enabled = true;
    changed();
    return;
  }
  list_.push_back(breakpoint);
  names_.push_back(place_name(store, breakpoint));
  changed();
}

void BreakList::remove(std::size_t which) {
  if (which >= list_.size()) return;
  list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(which));
  names_.erase(names_.begin() + static_cast<std::ptrdiff_t>(which));
  stopped_.reset();
  if (armed_ == which)
    armed_.reset();  // the run still stops there until it receives the next rule
  else if (armed_ && *armed_ > which)
    --*armed_;
  changed();
}

void BreakList::enable(std::size_t which, bool on) {
  if (which >= list_.size() || list_[which].enabled == on) return;
  list_[which].enabled = on;
  changed();
}

std::string BreakList::text(const store::Store& store, std::size_t which) const {
  const Breakpoint& one = list_[which];
  if (!has_name(one.kind) || one.id != ev::kNoId) return text_of(store, one);
  return std::string(word(one.kind, words_of(store))) + " " + names_[which] + " (not in this run)";
}

std::vector<std::string> BreakList::lines() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < list_.size(); ++i) {
    if (names_[i].find_first_of("\n\r\t") != std::string::npos) continue;
    char threshold[40];
    std::snprintf(threshold, sizeof threshold, "%.9g", list_[i].threshold);
    const std::string id = has_name(list_[i].kind)    ? "-"
                           : list_[i].id == ev::kNoId ? "any"
                                                      : std::to_string(list_[i].id);
    out.push_back("Break=" + std::to_string(static_cast<int>(list_[i].kind)) + "\t" + id + "\t" + threshold +
                  "\t" + (list_[i].enabled ? "1" : "0") + "\t" + names_[i]);
  }
  return out;
}

void BreakList::take_line(std::string_view line) {
  if (!line.starts_with("Break=") || list_.size() >= 64) return;
  line.remove_prefix(6);
  std::vector<std::string> fields;
  for (std::size_t tab = 0; fields.size() < 4 && tab != std::string_view::npos;) {
    tab = line.find('\t');
    fields.emplace_back(line.substr(0, tab));
    line.remove_prefix(tab == std::string_view::npos ? line.size() : tab + 1);
  }
  if (fields.size() < 4) return;
  const auto number = [](const std::string& text) -> std::optional<std::uint32_t> {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
  };
  const auto kind = number(fields[0]);
  if (!kind || *kind >= kBreakKinds) return;
  Breakpoint breakpoint;
  breakpoint.kind = static_cast<BreakKind>(*kind);
  breakpoint.id = number(fields[1]).value_or(ev::kNoId);
  breakpoint.threshold = std::atof(fields[2].c_str());
  breakpoint.enabled = fields[3] == "1";
  list_.push_back(breakpoint);
  names_.emplace_back(line);
  kept_ = true;
  resolved_ = false;
}

void BreakList::forget_run() {
  resolved_ = false;
  stopped_.reset();
  playback_.playing = false;
  search_.reset();
  ahead_.reset();
  armed_.reset();
  has_rule_ = false;
  seen_.clear();
  skipped_ = UINT64_MAX;
  steps_seen_ns_ = -1;
  rule_due_ = false;
  kept_ = true;
}

/// Looks up the ids of the places in the current run; an unknown place has no hits.
void BreakList::resolve(const store::Store& store) {
  if (resolved_ || !store.has_tables()) return;
  resolved_ = true;
  for (std::size_t i = 0; i < list_.size(); ++i) {
    if (!has_name(list_[i].kind)) continue;
    list_[i].id = ev::kNoId;
    if (list_[i].kind == BreakKind::module) {
      for (const ev::ModuleInfo& module : store.tables().modules)
        if (module_name(store, module.id) == names_[i]) list_[i].id = module.id;
    } else {
      for (const ev::ParamInfo& param : store.tables().params)
        if (param_name(store, param.id) == names_[i]) list_[i].id = param.id;
    }
  }
}

std::optional<std::size_t> BreakList::at_gate(const store::Store& store) const {
  const auto steps = store.steps();
  for (std::size_t i = 0; i < list_.size(); ++i) {
    const Breakpoint& one = list_[i];
    if (!one.enabled || one.id == ev::kNoId || rule_of(one).kind == ev::StopRule::Kind::never) continue;
    // The rule matches from that step on: for a step already begun the run would stop at once.
    if (one.kind == BreakKind::step && !steps.empty() && one.id <= steps.back().step) continue;
    return i;
  }
  return std::nullopt;
}

ev::StopRule BreakList::rule(const store::Store& store) const {
  const auto which = at_gate(store);
  return which ? rule_of(list_[*which]) : ev::StopRule();
}

std::optional<ev::StopRule> BreakList::rule_due(const store::Store& store) const {
  if (!rule_due_) return std::nullopt;
  const ev::StopRule wanted = rule(store);
  return wanted.kind != ev::StopRule::Kind::never || has_rule_ ? std::optional(wanted) : std::nullopt;
}

void BreakList::sent(const ev::StopRule& sent, const store::Store& store,
                     const collector::ControlState& control) {
  gone_on_ = !control.paused;
  sent_gate_ = control.gate;
  const auto which = at_gate(store);
  has_rule_ = sent.kind != ev::StopRule::Kind::never;
  armed_ = which && sent.kind == rule(store).kind && sent.id == rule(store).id ? which : std::nullopt;
  rule_due_ = false;
  stopped_.reset();
}

void BreakList::sent_pause() {
  armed_.reset();
  has_rule_ = false;
}

void BreakList::stop_at(AppState& app, std::size_t which, std::optional<std::uint32_t> rank) {
  stopped_ = Stop{which, rank};
  if (rank) app.stepper_rank = app.memory_rank = *rank;
}

/// Marks all events up to now as evaluated: they must not stop a run that is paused, or after a breakpoint
/// was enabled.
void BreakList::skip(const store::Store& store) {
  if (std::exchange(skipped_, store.revision()) == store.revision() && !seen_.empty()) return;
  steps_seen_ns_ = store.end_ns();
  for (const store::RankRow& rank : store.ranks()) seen_[rank.rank] = rank.last_ns;
}

bool BreakList::watch(AppState& app, BreakClock::time_point until) {
  const store::Store& store = app.store();
  const auto ranks = store.ranks();
  const collector::ControlState control = app.run->control();
  if (control.paused) {
    // Still the old pause, until the collector has processed the command.
    if (armed_ && !gone_on_ && control.gate == sent_gate_) return false;
    const bool by_itself = armed_.has_value();
    if (by_itself) stop_at(app, *std::exchange(armed_, std::nullopt), std::nullopt);
    skip(store);
    rule_due_ = false;  // resuming sends the current list
    return by_itself;
  }
  gone_on_ = true;
  if (rule_due_ && !control.pausing && app.run->link() == collector::Viewer::Link::live) {
    const auto wanted = rule_due(store);
    rule_due_ = false;
    if (wanted) app.go_on(*wanted);
    skip(store);
    return true;
  }
  if (!any_enabled()) {
    seen_.clear();
    return false;
  }
  if (seen_.empty()) {
    skip(store);
    return false;
  }
  const auto look = [&](std::uint32_t rank, BreakFilter::Of of, std::int64_t& seen, std::int64_t end) {
    const std::int64_t after = std::exchange(seen, std::max(seen, end));
    if (end <= after) return false;
    const auto hit = next_hit(*app.run, rank, list_, after, end, {of, armed_});
    if (!hit) return false;
    app.pause();
    stop_at(app, hit->which, of == BreakFilter::Of::run ? std::nullopt : std::optional(rank));
    return true;
  };
  // A step is evaluated once all ranks have passed its end.
  std::int64_t all = INT64_MAX;
  for (const store::RankRow& rank : ranks)
    if (!rank.finished) all = std::min(all, rank.last_ns);
  if (!ranks.empty() && all != INT64_MAX &&
      look(ranks.front().rank, BreakFilter::Of::run, steps_seen_ns_, all))
    return true;
  for (std::size_t count = 0; count < ranks.size(); ++count) {
    const store::RankRow& rank = ranks[next_rank_++ % ranks.size()];
    const auto [seen, first] = seen_.try_emplace(rank.rank, rank.last_ns);
    if (!first && look(rank.rank, BreakFilter::Of::rank, seen->second, rank.last_ns)) return true;
    if (BreakClock::now() >= until) break;
  }
  return false;
}

bool BreakList::tick(AppState& app, double seconds, std::chrono::microseconds budget) {
  const auto until = BreakClock::now() + budget;
  const double passed = last_seconds_ > 0 ? std::clamp(seconds - last_seconds_, 0.0, 0.25) : 0;
  last_seconds_ = seconds;
  if (!resolved_ && app.store().has_tables()) {
    resolve(app.store());
    if (kept_ && app.run->live())
      for (Breakpoint& breakpoint : list_) breakpoint.enabled = false;
    kept_ = false;
  }
  if (app.run->live()) return watch(app, until);
  if (search_) return search(app, until);
  return playback_.playing && advance(app, passed);
}

}  // namespace shardscope::gui
