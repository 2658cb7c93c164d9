#include "app/gui/model/places.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "app/gui/model/app_state.h"
#include "app/gui/model/format.h"
#include "app/gui/model/match.h"
#include "app/gui/model/names.h"
#include "app/store/names.h"

namespace shardscope::gui {
namespace {

bool same(const Selection& a, const Selection& b) noexcept {
  const auto begin = [](const Selection& s) { return s.span ? s.span->begin_ns : INT64_MIN; };
  return a.kind == b.kind && a.rank == b.rank && a.param == b.param && a.module == b.module &&
         a.collective == b.collective && a.gather == b.gather && a.step == b.step && a.lane == b.lane &&
         begin(a) == begin(b);
}

std::optional<std::uint32_t> number_from(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool has_rank(const AppState& app, std::uint32_t rank) {
  return std::ranges::find(app.store().ranks(), rank, &store::RankRow::rank) != app.store().ranks().end();
}

/// Escapes the characters that end a value: names in a link may contain any character.
std::string escaped(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (c != '&' && c != '#' && c != '%' && c != ' ') {
      out.push_back(c);
      continue;
    }
    out += {'%', kHex[static_cast<unsigned char>(c) >> 4U], kHex[static_cast<unsigned char>(c) & 15U]};
  }
  return out;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr == text.data() + i + 3) {
      out.push_back(static_cast<char>(value));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

std::string ns_text(std::int64_t ns) { return std::to_string(ns) + "ns"; }

std::string range_text(const TimeRange& range) {
  return ns_text(range.begin_ns) + "-" + ns_text(range.end_ns);
}

std::optional<TimeRange> range_from_text(std::string_view text) {
  // It may begin below 0: skip a leading '-'.
  const std::size_t dash = text.find('-', 1);
  const auto from = time_from_text(text.substr(0, dash));
  const auto to = dash == std::string_view::npos ? std::nullopt : time_from_text(text.substr(dash + 1));
  return from && to && *to > *from ? std::optional(TimeRange{*from, *to}) : std::nullopt;
}

/// "gather.0.1234567ns": lane, depth and begin of a span of the rank.
std::string span_place_text(const Selection& s) {
  return std::string(store::name_of(s.lane.stream)) + "." + std::to_string(s.span->depth) + "." +
         ns_text(s.span->begin_ns);
}

/// Selects the span at such a place. False if there is none.
bool select_span_at(AppState& app, std::uint32_t rank, std::string_view text) {
  const std::size_t first = text.find('.'), second = text.find('.', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return false;
  const auto depth = number_from(text.substr(first + 1, second - first - 1));
  const auto begin = time_from_text(text.substr(second + 1));
  if (!depth || *depth > UINT8_MAX || !begin || *begin >= INT64_MAX) return false;
  for (const store::LaneId lane : app.store().lanes()) {
    if (lane.rank != rank || store::name_of(lane.stream) != text.substr(0, first)) continue;
    for (const store::Span& span :
         app.store().spans(lane, static_cast<std::uint8_t>(*depth), *begin, *begin + 1)) {
      if (span.begin_ns != *begin) continue;
      app.select_span(lane, span);
      return true;
    }
  }
  return false;
}

std::string follow_link(AppState& app, std::string_view link) {
  Place place = place_of(app);
  place.selection = {};
  place.follow = false;
  std::uint32_t rank = ev::kNoId;
  bool ranged = false;
  std::string span;
  std::optional<std::string> find;
  std::optional<TimeRange> measured;
  while (!link.empty()) {
    const std::size_t end = std::min(link.find('&'), link.size());
    const std::string_view part = link.substr(0, end);
    link.remove_prefix(std::min(end + 1, link.size()));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      return "'" + std::string(part) + "' is not part of a link; write NAME=VALUE";
    const std::string_view key = part.substr(0, equals);
    const std::string value = unescaped(part.substr(equals + 1));
    const std::string wrong = "'" + value + "' is not a " + std::string(key) + " of this run";
    if (key == "at") {
      const auto at = time_from_text(value);
      if (!at) return "at='" + value + "' is not a time; write for example at=1.25s";
      place.cursor_ns = *at;
    } else if (key == "range") {
      const auto range = range_from_text(value);
      if (!range) return "range='" + value + "' is not a time range; write for example range=1.2s-1.5s";
      place.range = *range;
      ranged = true;
    } else if (key == "measured") {
      measured = range_from_text(value);
      if (!measured)
        return "measured='" + value + "' is not a time range; write for example measured=1.2s-1.5s";
    } else if (key == "span") {
      span = value;
    } else if (key == "find") {
      find = value;
    } else if (key == "rank") {
      const auto number = number_from(value);
      if (!number || !has_rank(app, *number)) return wrong;
      rank = *number;
      if (place.selection.kind == SelectionKind::none) place.selection.kind = SelectionKind::rank;
      place.selection.rank = rank;
    } else if (key == "step") {
      const auto number = number_from(value);
      if (!number) return wrong;
      place.selection.kind = SelectionKind::step;
      place.selection.step = *number;
    } else if (key == "module" || key == "param") {
      if (!app.store().has_tables()) return "the run has sent no list of modules yet";
      const ev::RunTables& tables = app.store().tables();
      bool found = false;
      if (key == "param") {
        for (const ev::ParamInfo& param : tables.params) {
          if (param.name != value) continue;
          found = true;
          place.selection.kind = SelectionKind::param;
          place.selection.param = param.id;
          if (!param.modules.empty()) place.selection.module = param.modules.front();
          break;
        }
      } else {
        for (const ev::ModuleInfo& module : tables.modules) {
          if (module_name(app.store(), module.id) != value) continue;
          found = true;
          place.selection.kind = SelectionKind::module;
          place.selection.module = module.id;
          break;
        }
      }
      if (!found) return wrong;
    }
    // Other keys are of a newer version and are ignored.
  }
  go_to_place(app, place);
  if (measured) app.measured = measured;
  if (find) app.find.words = *find;
  if (!span.empty() && !select_span_at(app, rank, span))
    return "span='" + span + "' is not a span of this run; the rest of the link was followed";
  if (!ranged && place.cursor_ns) app.jump_to(*place.cursor_ns);
  if (rank != ev::kNoId) app.show_rank(rank);
  return {};
}

}  // namespace

bool Place::same_as(const Place& other) const noexcept {
  return follow == other.follow && (follow || range == other.range) && cursor_ns == other.cursor_ns &&
         same(selection, other.selection) && ranks == other.ranks;
}

RankArrangement arrangement_of(const TimelineOptions& options) {
  return {options.order, options.grouping, options.own_order, options.crops};
}

void arrange(TimelineOptions& options, const RankArrangement& ranks) {
  options.order = ranks.order;
  options.grouping = ranks.grouping;
  options.own_order = ranks.own_order;
  options.crops = ranks.crops;
}

Place place_of(const AppState& app) {
  return {app.time.goal(), app.cursor_ns, app.selection, app.follow, arrangement_of(app.timeline)};
}

void go_to_place(AppState& app, const Place& place) {
  app.follow = place.follow && app.run->live();
  app.cursor_ns = place.cursor_ns;
  app.selection = place.selection;
  arrange(app.timeline, place.ranks);
  if (!app.follow) app.time.go(place.range, app.store().end_ns());
  app.time_placed = true;
}

void PlaceHistory::note(const Place& place, double seconds) {
  if (!current_) {
    current_ = place;
    changed_at_ = seconds;
    return;
  }
  if (place.same_as(*current_)) {
    current_->range = place.range;  // the range of a place that follows a live run
    return;
  }
  if (seconds - changed_at_ >= kRest || past_.empty()) {
    past_.push_back(*current_);
    if (past_.size() > kMost) past_.erase(past_.begin());
  }
  future_.clear();
  current_ = place;
  changed_at_ = seconds;
}

std::optional<Place> PlaceHistory::back(double seconds) {
  if (past_.empty() || !current_) return std::nullopt;
  future_.push_back(*current_);
  current_ = past_.back();
  past_.pop_back();
  changed_at_ = seconds - kRest;
  return current_;
}

std::optional<Place> PlaceHistory::forward(double seconds) {
  if (future_.empty() || !current_) return std::nullopt;
  past_.push_back(*current_);
  current_ = future_.back();
  future_.pop_back();
  changed_at_ = seconds - kRest;
  return current_;
}

std::string link_of(const AppState& app) {
  std::string out = app.run->source();
  if (const std::size_t slash = out.rfind('/'); app.run->recorded() && slash != std::string::npos)
    out = out.substr(slash + 1);
  const TimeRange range = app.time.goal();
  out = escaped(out) + "#at=" + ns_text(app.now_ns()) + "&range=" + range_text(range);
  const Selection& s = app.selection;
  if (s.rank != ev::kNoId) out += "&rank=" + std::to_string(s.rank);
  if (s.step != ev::kNoId) out += "&step=" + std::to_string(s.step);
  if (s.param != ev::kNoId)
    out += "&param=" + escaped(param_name(app.store(), s.param));
  else if (s.module != ev::kNoId)
    out += "&module=" + escaped(module_name(app.store(), s.module));
  if (s.span && s.rank != ev::kNoId) out += "&span=" + escaped(span_place_text(s));
  if (app.measured) out += "&measured=" + range_text(*app.measured);
  if (!app.find.words.empty()) out += "&find=" + escaped(app.find.words);
  return out;
}

std::optional<std::int64_t> time_from_text(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  const std::string_view number = text.substr(0, static_cast<std::size_t>(end - text.data()));
  const std::string_view unit = trimmed(text.substr(number.size()));
  double scale = 0;
  if (unit == "ns") scale = 1;
  if (unit == "us" || unit == "µs") scale = 1e3;
  if (unit == "ms") scale = 1e6;
  if (unit == "s") scale = 1e9;
  if (unit == "min") scale = 60e9;
  if (unit == "h") scale = 3600e9;
  if (scale == 0 || std::fabs(value * scale) > 9e18) return std::nullopt;
  // Keep integers exact: a double cannot represent all of them.
  std::int64_t whole = 0;
  if (unit == "ns" && std::from_chars(number.data(), number.data() + number.size(), whole).ptr ==
                          number.data() + number.size())
    return whole;
  return std::llround(value * scale);
}

std::string go_to_text(AppState& app, std::string_view text) {
  text = trimmed(text);
  if (const std::size_t hash = text.find('#'); hash != std::string_view::npos)
    return follow_link(app, text.substr(hash + 1));
  if (text.find('=') != std::string_view::npos) return follow_link(app, text);
  if (text.starts_with("rank")) {
    const auto rank = number_from(trimmed(text.substr(4)));
    if (!rank || !has_rank(app, *rank))
      return "'" + std::string(text) + "': the run has no such rank; it has " +
             std::to_string(app.store().ranks().size()) + " ranks";
    app.select_rank(*rank);
    app.show_rank(*rank);
    return {};
  }
  if (const auto at = time_from_text(text)) {
    if (*at < 0 || *at > app.store().end_ns())
      return "'" + std::string(text) + "' is outside the run, which ends at " +
             timestamp(app.store().end_ns(), 1'000'000);
    app.jump_to(*at);
    return {};
  }
  const auto step = number_from(trimmed(text.starts_with("step") ? text.substr(4) : text));
  if (!step)
    return "'" + std::string(text) +
           "' is not a place; write a step (12), a time (1.25s, 830ms), a rank (rank 3) or a copied link";
  if (!app.go_to_step(*step))
    return "the run has no step " + std::to_string(*step) + "; it has " +
           std::to_string(app.store().steps().size()) + " steps";
  return {};
}

}  // namespace shardscope::gui
