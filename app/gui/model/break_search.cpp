// Breakpoints in a recording: searches for the next hit by time windows, and stops playback there.
#include <algorithm>
#include <utility>

#include "app/gui/model/app_state.h"
#include "app/gui/model/break_list.h"

namespace shardscope::gui {
namespace {

/// Approximate number of a rank's events per search window.
constexpr double kLookEvents = 20'000;

}  // namespace

void BreakList::start_search(const AppState& app, std::int64_t after_ns, bool jump) {
  none_left_ = false;
  ahead_.reset();
  search_.reset();
  if (!any_enabled()) {
    none_left_ = jump;
    return;
  }
  search_ = Search{};
  search_->after_ns = search_->until_ns = after_ns;
  search_->jump = jump;
  const store::Store& store = app.store();
  const auto ranks = store.ranks();
  const auto events_of_rank =
      static_cast<double>(store.event_count()) / static_cast<double>(std::max<std::size_t>(1, ranks.size()));
  const auto end = static_cast<double>(store.end_ns());
  search_->length_ns = static_cast<std::int64_t>(
      std::max(1e6, end * std::min(1.0, kLookEvents / std::max(1.0, events_of_rank))));
  // Hits of the run's steps are known without reading events: they bound the windows.
  if (ranks.empty()) return;
  search_->rank = ranks.front().rank;
  search_->best = next_hit(*app.run, search_->rank, list_, after_ns, store.end_ns(), {BreakFilter::Of::run});
}

void BreakList::to_next(AppState& app) {
  playback_.playing = false;
  start_search(app, app.now_ns(), true);
}

void BreakList::play(AppState& app, bool on) {
  playback_.playing = on && !app.run->live();
  last_seconds_ = 0;
  played_ns_ = -1;
  if (!playback_.playing) return;
  if (!app.cursor_ns || *app.cursor_ns >= app.store().end_ns())
    app.jump_to(app.cursor_ns ? 0 : std::max<std::int64_t>(0, app.time.range().begin_ns));
}

/// Searches the next window, or the rest of one, in all ranks; `best` is the earliest hit.
void BreakList::search_window(const AppState& app, BreakClock::time_point until) {
  Search& s = *search_;
  const auto ranks = app.store().ranks();
  if (s.next_rank == 0) {
    s.after_ns = s.until_ns;
    s.until_ns = std::min(app.store().end_ns(), s.after_ns + s.length_ns);
  }
  while (s.next_rank < ranks.size()) {
    const std::uint32_t rank = ranks[s.next_rank++].rank;
    const std::int64_t end = s.best ? std::min(s.until_ns, s.best->at_ns - 1) : s.until_ns;
    if (const auto hit = next_hit(*app.run, rank, list_, s.after_ns, end, {BreakFilter::Of::rank})) {
      s.best = hit;
      s.rank = rank;
    }
    if (BreakClock::now() >= until) break;
  }
  if (s.next_rank >= ranks.size()) s.next_rank = 0;
}

bool BreakList::search(AppState& app, BreakClock::time_point until) {
  const auto over = [&] {
    const Search& s = *search_;
    return s.next_rank == 0 &&
           (s.until_ns >= app.store().end_ns() || (s.best && s.best->at_ns <= s.until_ns));
  };
  do search_window(app, until);
  while (!over() && BreakClock::now() < until);
  if (!over()) return true;
  const Search done = *std::exchange(search_, std::nullopt);
  if (done.jump) {
    none_left_ = !done.best;
    if (done.best) {
      stop_at(app, done.best->which, done.rank);
      app.jump_to(done.best->at_ns);
    }
  } else {
    ahead_ = done.best;
    ahead_rank_ = done.rank;
  }
  return true;
}

bool BreakList::advance(AppState& app, double passed) {
  const std::int64_t from = app.now_ns();
  if (from != played_ns_) {
    // Playback has just begun, or the cursor was moved.
    start_search(app, from, false);
    played_ns_ = from;
    return true;
  }
  std::int64_t to = playback_.advance(from, passed, app.store().end_ns());
  if (ahead_ && ahead_->at_ns <= to) {
    to = ahead_->at_ns;
    playback_.playing = false;
    stop_at(app, ahead_->which, ahead_rank_);
    ahead_.reset();
  }
  app.cursor_ns = played_ns_ = to;
  app.follow = false;
  if (!app.time.range().contains(to))
    app.time.set({to, to + app.time.range().length()}, app.store().end_ns());
  return true;
}

}  // namespace shardscope::gui
