#include "app/gui/model/session.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "app/gui/model/format.h"

namespace shardscope::gui {
namespace {

/// Time between two frames for the index of a part of a long run, exceeded by a part of one rank at most.
constexpr std::chrono::microseconds kBetweenFramesIndex{2000};
/// Time per frame for low rows of ranks; the others keep the data of an earlier frame.
constexpr std::chrono::microseconds kFrameHeat{1000};
/// The same between two frames: where drawing is slow (no graphics card, a remote desktop) there are few
/// frames.
constexpr std::chrono::microseconds kBetweenFrames{3000};
/// The same for curves and status bands.
constexpr std::chrono::microseconds kFrameTracks{700};
/// The same for reading blocks; beyond it levels of detail are drawn.
constexpr std::chrono::microseconds kFrameReading{500};
/// Extended while all store queries of the frame take less than this: of 4 ms, the rest is for drawing.
constexpr std::chrono::microseconds kFrameLooking{2750};
/// A run with more events is indexed only around the visible range, up to kWindowEvents events.
constexpr std::uint64_t kWholeIndexEvents = 2'000'000;
constexpr double kWindowEvents = 150'000;
/// The window and the analysis read a recording separately and may find the same damage.
void name_problem(store::RecordingInfo& info, const std::string& problem) {
  if (std::ranges::find(info.problems, problem) == info.problems.end()) info.problems.push_back(problem);
}

std::uint64_t next_session() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

Session::Session() : number_(next_session()) {}

std::unique_ptr<Session> Session::open_file(const std::string& path) {
  std::unique_ptr<Session> session(new Session());
  session->source_ = path;
  const auto began = std::chrono::steady_clock::now();
  store::RecordingInfo info;
  session->store_ = store::open_recording(path, &info, store::Verify::as_read);
  session->info_ = std::move(info);
  session->opened_in_ = std::chrono::steady_clock::now() - began;
  session->analyst_ = std::make_unique<Analyst>(path);
  return session;
}

std::unique_ptr<Session> Session::connect(const std::string& endpoint, const std::string& key_file) {
  std::unique_ptr<Session> session(new Session());
  session->source_ = endpoint;
  session->key_file_ = key_file;
  session->store_.bound({});  // bounds memory: the run may last days
  session->viewer_ = std::make_unique<collector::Viewer>(endpoint, key_file);
  session->analyst_ = std::make_unique<Analyst>(session->store_, session->turns_);
  return session;
}

Session::Session(store::Store store) : number_(next_session()), store_(std::move(store)), source_("memory") {
  analyst_ = std::make_unique<Analyst>(store_, turns_);
}

collector::Viewer::Link Session::link() const {
  return viewer_ ? viewer_->link() : collector::Viewer::Link::ended;
}

collector::ControlState Session::control() const {
  return viewer_ ? viewer_->control() : collector::ControlState{};
}

collector::Viewer::Traffic Session::traffic() const { return viewer_ ? viewer_->traffic() : traffic_; }

std::optional<Session::LoadTime> Session::load_time() const {
  if (!info_) return std::nullopt;
  return LoadTime{opened_in_, analysis_->whole ? analysis_->took : std::chrono::nanoseconds{0}};
}

void Session::disconnect() {
  if (!viewer_) return;
  traffic_ = viewer_->traffic();
  viewer_.reset();
  disconnected_ = true;
}

bool Session::poll(std::chrono::microseconds budget) {
  const Turns::Turn turn = turns_.first();
  const std::uint64_t before = store_.revision();
  in_window_ = true;
  bool changed =
      std::exchange(wants_more_, false);  // the last frame was drawn more coarsely than it could be
  if (viewer_) {
    changed = viewer_->poll(store_, budget) || changed;
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    rates_.add({now.count(), store_.event_count(), viewer_->traffic().bytes});
  }
  derive();
  store_.limit_reading(kFrameReading, kFrameLooking);
  reading_ = heat_.catch_up(store_, kBetweenFrames);
  store_.limit_reading(std::nullopt);
  changed = advance_index() || changed;
  changed = adopt() || changed;
  changed = hangs_.look(store_, run_state(), HangWatch::Clock::now()) || changed;
  if (info_ && store_.problems().size() > damage_shown_) {
    for (const std::string& found : store_.problems().subspan(damage_shown_)) name_problem(*info_, found);
    damage_shown_ = store_.problems().size();
    changed = true;
  }
  // The lease is displayed in whole seconds.
  const collector::ControlState control = this->control();
  std::string seen = std::to_string(static_cast<int>(link())) + (control.paused ? "p" : "r") +
                     (control.pausing ? "p" : "r") + std::to_string(control.gate) + control.note +
                     std::to_string(static_cast<int>(control.lease_left_s));
  changed |= seen != control_seen_;
  control_seen_ = std::move(seen);
  return changed || store_.revision() != before;
}

void Session::begin_frame() {
  if (in_window_) store_.limit_reading(kFrameReading, kFrameLooking);
  heat_.begin_frame(in_window_ ? std::optional(kFrameHeat) : std::nullopt);
  tracks_.begin_frame(in_window_ ? std::optional(kFrameTracks) : std::nullopt);
}

void Session::end_frame() {
  if (!in_window_) return;
  wants_more_ = store_.wants_more() || heat_.behind() || tracks_.behind();
  store_.limit_reading(std::nullopt);
}

HangWatch::Run Session::run_state() const {
  using Link = collector::Viewer::Link;
  if (disconnected_) return HangWatch::Run::held;
  if (!viewer_ || viewer_->link() == Link::ended) return HangWatch::Run::over;
  const collector::ControlState control = viewer_->control();
  return viewer_->link() != Link::live || control.paused || control.pausing ? HangWatch::Run::held
                                                                            : HangWatch::Run::running;
}

void Session::derive() {
  const auto completeness =
      link() == collector::Viewer::Link::ended ? Completeness::complete : Completeness::growing;
  if (store_.revision() == indexed_revision_ && completeness == indexed_as_) return;
  indexed_as_ = completeness;
  update_index();
  indexed_revision_ = store_.revision();
  analyst_->look(completeness);
}

bool Session::adopt() {
  std::shared_ptr<const Analysis> latest = analyst_->latest();
  if (latest == of_analyst_) return adopt_advice();
  analysis_ = of_analyst_ = std::move(latest);
  if (info_) {
    for (const std::string& found : analysis_->problems) name_problem(*info_, found);
  }
  return true;
}

bool Session::adopt_advice() {
  const AdviceRun::State before = advice_.state();
  if (std::optional<std::vector<analysis::Finding>> findings = advice_.take()) {
    auto advised = std::make_shared<Analysis>(*analysis_);
    advised->findings = std::move(*findings);
    analysis_ = std::move(advised);
  }
  return advice_.state() != before;
}

void Session::ask_what_if() {
  if (advice_.state() != AdviceRun::State::not_asked || !info_ || !recorded() || !analysis_->whole) return;
  if (can_be_played(store_, analysis_->findings)) advice_.ask(source_);
}

void Session::update_index() {
  if (store_.event_count() <= kWholeIndexEvents) {
    index_.update(store_, indexed_as_);
    return;
  }
  // The run has outgrown an index of the whole run, which would lack all later events.
  if (index_.whole()) index_ = {};
  const auto [begin, end] = looked_at_;
  const double share =
      static_cast<double>(end - begin) / static_cast<double>(std::max<std::int64_t>(store_.end_ns(), 1));
  if (end <= begin || share * static_cast<double>(store_.event_count()) > kWindowEvents) return;
  if (index_.covers(begin, end)) {
    // Without news this would read the last second of the range again.
    if (!index_.current(store_, indexed_as_)) index_.update(store_, indexed_as_, *index_.extent());
    next_window_.reset();
    return;
  }
  // A margin on both sides, so that panning does not rebuild the index in every frame.
  const RunIndex::Window window{.begin_ns = begin - (end - begin), .end_ns = end + (end - begin)};
  if (!in_window_) {
    index_.update(store_, indexed_as_, window);
    return;
  }
  if (next_window_ && next_window_->begin_ns <= begin && end <= next_window_->end_ns) return;
  next_window_ = window;
  next_index_ = {};
}

bool Session::advance_index() {
  if (!next_window_) return false;
  if (!next_index_.advance(store_, indexed_as_, *next_window_, kBetweenFramesIndex)) return false;
  index_ = std::exchange(next_index_, {});
  next_window_.reset();
  return true;
}

void Session::look_at(std::int64_t begin_ns, std::int64_t end_ns) {
  const RunIndex::Window window{begin_ns, end_ns};
  if (window == looked_at_) return;
  looked_at_ = window;
  if (store_.event_count() > kWholeIndexEvents) update_index();
}

std::string Session::partial(bool brief) const {
  const Analysis& a = *analysis_;
  const bool catching_up = link() == collector::Viewer::Link::catching_up;
  const bool ended = link() == collector::Viewer::Link::ended;
  // The short lag of a live run's analysis is not reported.
  const bool whole = a.whole && !catching_up && (!ended || a.of == Completeness::complete);
  if (whole || store_.steps().empty()) return {};
  const auto known = static_cast<std::int64_t>(std::max(a.of_steps, store_.steps().size()));
  return "partial: " + grouped(static_cast<std::int64_t>(a.steps)) + " of " + grouped(known) +
         (catching_up ? " or more" : "") + (brief ? "" : " steps analysed");
}

const StepTimes* Session::step_times(std::uint32_t step) const {
  const auto& all = analysis_->step_times;
  // Steps are usually consecutive: guess the index, as panels look up every step in each frame.
  if (!all.empty() && step >= all.front()->step) {
    const std::size_t guess = step - all.front()->step;
    if (guess < all.size() && all[guess]->step == step) return all[guess].get();
  }
  const auto found = std::ranges::lower_bound(all, step, {}, [](const auto& times) { return times->step; });
  return found == all.end() || (*found)->step != step ? nullptr : found->get();
}

bool Session::settle(std::chrono::milliseconds most) {
  {
    const Turns::Turn turn = turns_.first();
    in_window_ = false;
    derive();
  }
  const bool all = analyst_->wait(most);
  adopt();
  return all;
}

const ElementAxis& Session::elements(ElementScale scale) {
  const std::size_t params = store_.has_tables() ? store_.tables().params.size() : 0;
  if (const TablesKey key = key_of_tables(number_, store_); key != elements_of_) {
    elements_.clear();
    elements_of_ = key;
  }
  const auto found = elements_.find(scale);
  if (found != elements_.end()) return found->second;
  return elements_.emplace(scale, params == 0 ? ElementAxis() : ElementAxis(store_.tables(), scale))
      .first->second;
}

}  // namespace shardscope::gui
