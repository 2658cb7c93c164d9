#include "app/gui/model/finder.h"

#include <algorithm>
#include <utility>

#include "app/gui/model/app_state.h"
#include "app/gui/model/format.h"
#include "app/gui/model/name_cell.h"
#include "app/gui/model/names.h"
#include "app/store/span_time.h"

namespace shardscope::gui {
namespace {

SpanQuery query_of(const Finder& find, const AppState& app) {
  SpanQuery query;
  query.words = find.words;
  if (find.scope == FindScope::run) return query;
  const TimeRange range = find.scope == FindScope::measured && app.measured ? *app.measured : find.range;
  query.begin_ns = range.begin_ns;
  query.end_ns = range.end_ns;
  return query;
}

std::optional<store::Span> span_of(const store::Store& store, store::LaneId lane, const SpanHit& hit) {
  std::optional<store::Span> out;
  store.for_each_span(lane, hit.depth, hit.begin_ns, hit.begin_ns + 1, [&](const store::Span& span) {
    if (span.begin_ns == hit.begin_ns) out = span;
  });
  return out;
}

}  // namespace

bool Finder::advance(const AppState& app, std::chrono::nanoseconds time) {
  if (!wanted || !app.run) return false;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  const auto left = [&] { return std::max(std::chrono::nanoseconds(0), time - (Clock::now() - began)); };
  const store::Store& store = app.store();
  const SpanQuery query = query_of(*this, app);
  const bool anew = std::exchange(again, false) || search.query() != query ||
                    // Late first events of a rank move time 0, also after the search was complete.
                    search.outdated(store);
  if (anew) {
    // Name ids belong to the old search.
    filter.name.reset();
    search.start(query);
    at.reset();
    ++searches;
  }
  if (anew || statistics.by() != by || statistics.filter() != filter) {
    statistics.start(by, filter);
    ++countings;
    ++version;
  }
  if (anew || rows.filter() != filter || rows.order() != order || rows.descending() != descending) {
    rows.start(filter, order, descending);
    ++version;
  }
  if (anew || marks.filter() != filter) marks.start(filter);
  const RunIndex& index = app.run->index();
  const bool indexed = index.whole() || index.covers(query.begin_ns, query.end_ns);
  // The index of a long run follows the visible range, perhaps away from a search that is not done.
  if (anew || !search.done()) by_contents = indexed && (anew || by_contents);
  const bool searched = search.advance(store, left() / 2, by_contents ? &index : nullptr);
  const bool counted = statistics.advance(search, left() / 2);
  const bool picked = rows.advance(search, left() / 2);
  const bool marked_more = marks.advance(search, left());
  if (searched || counted || picked || marked_more) ++version;
  return searched || counted || picked || marked_more;
}

std::string Finder::coverage() const {
  if (!search.cut_short()) return {};
  return "of the first " + grouped(static_cast<std::int64_t>(search.hits())) + " spans found";
}

void Finder::forget() {
  Finder fresh;
  fresh.version = version + 1;
  fresh.searches = searches + 1;
  fresh.countings = countings + 1;
  *this = std::move(fresh);
}

void Finder::find_name(const std::string& name) {
  words = '"' + name + '"';
  scope = FindScope::run;
  filter = {};
}

std::vector<FilterPart> filter_parts(const AppState& app) {
  const Finder& find = app.find;
  const store::Store& store = app.store();
  const SpanFilter& filter = find.filter;
  std::vector<FilterPart> out;
  const auto add = [&](std::string text, auto&& take) {
    FilterPart part{std::move(text), filter};
    take(part.without);
    out.push_back(std::move(part));
  };
  if (filter.name) add(find.search.name(*filter.name), [](SpanFilter& f) { f.name.reset(); });
  if (filter.rank)
    add(group_name(store, find.search, GroupBy::rank, *filter.rank), [](SpanFilter& f) { f.rank.reset(); });
  if (filter.module)
    add(group_name(store, find.search, GroupBy::module, *filter.module),
        [](SpanFilter& f) { f.module.reset(); });
  if (filter.step)
    add(group_name(store, find.search, GroupBy::step, *filter.step), [](SpanFilter& f) { f.step.reset(); });
  if (filter.within)
    add((*filter.within == ev::kNoId ? "" : "in ") +
            group_name(store, find.search, GroupBy::parent, *filter.within),
        [](SpanFilter& f) { f.within.reset(); });
  if (filter.stream)
    add(std::string("stream ") + word(*filter.stream), [](SpanFilter& f) { f.stream.reset(); });
  if (filter.time_ns)
    add(duration(filter.time_ns->first).text() + " to " + duration(filter.time_ns->second).text(),
        [](SpanFilter& f) { f.time_ns.reset(); });
  return out;
}

void go_to_span(AppState& app, store::LaneId lane, const store::Span& span) {
  app.select_span(lane, span);
  app.show_rank(lane.rank);
  app.cursor_ns = span.begin_ns;
  app.follow = false;
  const std::int64_t end = store::time_of(app.store(), lane.rank, span).until_ns;
  const std::int64_t length = std::max<std::int64_t>(end - span.begin_ns, 1);
  constexpr std::int64_t kSeen = 400, kZoomed = 20;  // fractions of the visible range
  if (app.time.goal().length() / kSeen > length) {
    const std::int64_t margin = std::max(length * kZoomed / 2, TimeAxis::kShortest);
    app.time.go({span.begin_ns - margin, end + margin}, app.store().end_ns());
  } else {
    app.time.reveal({span.begin_ns, end}, app.store().end_ns());
  }
}

void go_to_hit(AppState& app, const HitPlace& place) {
  if (!place_of(app.find.search, place.ref)) return;
  const SpanSearch::Lane& lane = app.find.search.lanes()[place.ref.lane];
  const auto span = span_of(app.store(), lane.id, lane.hits[place.ref.hit]);
  if (!span) return;  // evicted from a live run
  app.find.at = place;
  go_to_span(app, lane.id, *span);
}

bool go_to_next_hit(AppState& app, Toward toward) {
  HitPlace from{app.now_ns(), {0, 0}};
  if (app.find.at)
    from = *app.find.at;
  else if (!app.cursor_ns)
    from.begin_ns = toward == Toward::later ? app.time.goal().begin_ns : app.time.goal().end_ns;
  const auto next = next_hit(app.find.search, app.find.filter, from, toward);
  if (next) go_to_hit(app, *next);
  return next.has_value();
}

bool find_selection(AppState& app) {
  const Selection& s = app.selection;
  Finder& find = app.find;
  if (s.span && s.kind != SelectionKind::step) {
    find.find_name(shared_name(app.store(), s.rank, *s.span));
    return true;
  }
  switch (s.kind) {
    case SelectionKind::module:
      find.words.clear();
      find.filter = {};
      find.filter.module = s.module;
      break;
    case SelectionKind::step:
      find.words.clear();
      find.filter = {};
      find.filter.step = s.step;
      break;
    case SelectionKind::rank:
      find.words.clear();
      find.filter = {};
      find.filter.rank = s.rank;
      break;
    case SelectionKind::param:
      find.words = param_name(app.store(), s.param);
      find.filter = {};
      break;
    default:
      return false;
  }
  find.scope = FindScope::run;
  return true;
}

Table hit_table(const AppState& app, const std::vector<HitRef>& rows) {
  Table table;
  table.columns = {{"what", 0.5F},
                   {"name", 2.2F, false, "", false, 150},
                   {"rank", 0.4F, true},
                   {"begin", 0.8F, true, "Since the run's first event"},
                   {"time", 0.7F, true, "Pauses cut out"},
                   {"self", 0.7F, true, "Without child spans on the same lane"},
                   {"step", 0.4F, true}};
  const SpanSearch& search = app.find.search;
  const NameCells& names = app.name_cells();
  const auto time = [](std::int64_t ns) { return number_cell(static_cast<double>(ns), duration(ns).text()); };
  for (const HitRef& ref : rows) {
    const SpanSearch::Lane& lane = search.lanes()[ref.lane];
    const SpanHit& hit = lane.hits[ref.hit];
    std::string name = search.name(hit.name);
    if (hit.module != ev::kNoId) {
      // Of a collective what it moves, of a wait what is waited for.
      const std::string module = module_name(app.store(), hit.module);
      if (name.find(module) == std::string::npos) name += " " + module;
    }
    table.add({{word(lane.id.stream), {}, Tone::muted, {}, ""},
               names.cell(name),
               number_cell(lane.id.rank, std::to_string(lane.id.rank)),
               number_cell(static_cast<double>(hit.begin_ns), timestamp(hit.begin_ns, 1'000)),
               time(hit.time_ns),
               hit.parent ? time(hit.self_ns) : number_cell(std::nullopt, ""),
               hit.step == ev::kNoId ? number_cell(std::nullopt, "")
                                     : number_cell(hit.step, std::to_string(hit.step))});
  }
  return table;
}

}  // namespace shardscope::gui
