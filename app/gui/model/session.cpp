#include "app/gui/model/session.h"

#include <algorithm>
#include <utility>

#include "app/gui/model/format.h"

namespace shardscope::gui {
namespace {

using Clock = std::chrono::steady_clock;

/// A summary looks at every step's figures, so it may take at most this share of the time.
constexpr int kSummaryShare = 30;
constexpr std::chrono::milliseconds kSummaryInterval{1000};
/// What drawing one frame may spend on reading blocks; it shows levels of detail where that is not enough.
constexpr std::chrono::microseconds kFrameReading{500};
/// More as long as all that it asks of the store takes less than this: of 4 ms, the rest is for drawing it.
constexpr std::chrono::microseconds kFrameLooking{2750};
/// A run with more events than this is indexed only where it is looked at, and there up to so many events.
constexpr std::uint64_t kWholeIndexEvents = 2'000'000;
constexpr double kWindowEvents = 150'000;
/// Events of other threads of a rank may still come this long after a step has ended.
constexpr std::int64_t kStepSettling = 200'000'000;
/// The GPU's own records come later: in buffers that are given back when all in them has ended.
constexpr std::int64_t kGpuSettling = 4'000'000'000;

std::int64_t step_settling(const store::Store& store) {
  for (const store::RankRow& rank : store.ranks()) {
    if (store.depth_count({rank.rank, ev::StreamId::gpu_records}) > 0) return kGpuSettling;
  }
  return kStepSettling;
}

}  // namespace

std::unique_ptr<Session> Session::open_file(const std::string& path) {
  std::unique_ptr<Session> session(new Session());
  session->source_ = path;
  store::RecordingInfo info;
  session->store_ = store::open_recording(path, &info, store::Verify::as_read);
  session->info_ = std::move(info);
  return session;
}

std::unique_ptr<Session> Session::connect(const std::string& endpoint, const std::string& key_file) {
  std::unique_ptr<Session> session(new Session());
  session->source_ = endpoint;
  session->viewer_ = std::make_unique<collector::Viewer>(endpoint, key_file);
  return session;
}

Session::Session(store::Store store) : store_(std::move(store)), source_("memory") {}

collector::Viewer::Link Session::link() const {
  return viewer_ ? viewer_->link() : collector::Viewer::Link::ended;
}

collector::ControlState Session::control() const {
  return viewer_ ? viewer_->control() : collector::ControlState{};
}

bool Session::poll(std::chrono::microseconds budget) {
  const std::uint64_t before = store_.revision();
  const auto* const summary_before = summary_.step_ms.data();
  const std::size_t times_before = step_times_done_;
  bool changed = store_.wants_more();  // the last frame was drawn more coarsely than it could be
  store_.limit_reading(std::nullopt);
  if (viewer_) changed = viewer_->poll(store_, budget) || changed;
  derive(budget);
  if (info_ && store_.problems().size() > damage_shown_) {
    const auto found = store_.problems().subspan(damage_shown_);
    info_->problems.insert(info_->problems.end(), found.begin(), found.end());
    damage_shown_ = store_.problems().size();
    changed = true;
  }
  store_.limit_reading(kFrameReading, kFrameLooking);
  // The lease counts down in whole seconds on the screen.
  const collector::ControlState control = this->control();
  std::string seen = std::to_string(static_cast<int>(link())) + (control.paused ? "p" : "r") +
                     (control.pausing ? "p" : "r") + std::to_string(control.gate) + control.note +
                     std::to_string(static_cast<int>(control.lease_left_s));
  changed |= seen != control_seen_;
  control_seen_ = std::move(seen);
  return changed || !digest_whole_ || store_.revision() != before ||
         summary_.step_ms.data() != summary_before || step_times_done_ != times_before ||
         !next_step_times_.ranks.empty();
}

void Session::derive(std::chrono::microseconds budget) {
  const auto completeness =
      link() == collector::Viewer::Link::ended ? Completeness::complete : Completeness::growing;
  if (store_.revision() != indexed_revision_ || completeness != indexed_as_) {
    indexed_as_ = completeness;
    update_index();
    indexed_revision_ = store_.revision();
  }
  update_summary(budget);
  compute_step_times(budget);
}

void Session::update_index() {
  if (store_.event_count() <= kWholeIndexEvents) {
    index_.update(store_, indexed_as_);
    return;
  }
  // The run has outgrown an index of all of it, which would say from here on that nothing happened.
  if (index_.whole()) index_ = {};
  const auto [begin, end] = looked_at_;
  const double share =
      static_cast<double>(end - begin) / static_cast<double>(std::max<std::int64_t>(store_.end_ns(), 1));
  if (end <= begin || share * static_cast<double>(store_.event_count()) > kWindowEvents) return;
  if (index_.covers(begin, end) && begin + (end - begin) * 4 < store_.end_ns()) return;
  // With a margin, so that panning does not begin anew at every frame.
  index_.update(store_, indexed_as_, {.begin_ns = begin - (end - begin), .end_ns = end + (end - begin)});
}

void Session::look_at(std::int64_t begin_ns, std::int64_t end_ns) {
  const RunIndex::Window window{begin_ns, end_ns};
  if (window == looked_at_) return;
  looked_at_ = window;
  if (store_.event_count() > kWholeIndexEvents) update_index();
}

void Session::update_summary(std::chrono::microseconds budget) {
  // Another run, or the same with another time 0: what was taken does not hold any more.
  if (store_.origin_ns() != digest_origin_ns_ || store_.event_count() < digest_events_) {
    digest_ = {};
    digest_origin_ns_ = store_.origin_ns();
    digest_whole_ = false;
  }
  if (store_.event_count() != digest_events_ || !digest_whole_) {
    digest_events_ = store_.event_count();
    const bool ended = indexed_as_ == Completeness::complete;
    digest_whole_ =
        digest_.update(store_, budget, ended ? store::Store::kEnd : store_.end_ns() - step_settling(store_));
  }
  const Clock::time_point now = Clock::now();
  const bool news = store_.revision() != summarized_revision_ || digest_.steps().size() != summarized_steps_;
  if (!news || now < next_summary_) return;
  summary_ = analysis::summarize(store_, digest_);
  findings_ = analysis::find(store_, summary_);
  summarized_revision_ = store_.revision();
  summarized_steps_ = digest_.steps().size();
  const auto cost = Clock::now() - now;
  next_summary_ = Clock::now() + std::max<Clock::duration>(kSummaryInterval, cost * kSummaryShare);
}

std::string Session::summarized_so_far() const {
  // A live run's summary is behind by a moment at every step, which is not worth a word.
  const bool behind = !live() && summarized_steps_ < digest_.steps().size();
  if (digest_whole_ && !behind) return {};
  return grouped(static_cast<std::int64_t>(summarized_steps_)) + " of " +
         grouped(static_cast<std::int64_t>(store_.steps().size())) + " steps";
}

void Session::compute_step_times(std::chrono::microseconds budget) {
  const std::span<const store::StepRow> steps = store_.steps();
  step_times_.resize(steps.size());
  const Clock::time_point until = Clock::now() + budget;
  while (step_times_done_ < steps.size() && steps[step_times_done_].end_ns != store::kOpen &&
         Clock::now() < until) {
    // Rank by rank: with many of them one step is more than a frame has time for.
    std::vector<analysis::TimePartition>& ranks = next_step_times_.ranks;
    const std::span<const store::RankRow> rows = store_.ranks();
    if (rows.size() != std::exchange(next_step_ranks_, rows.size())) ranks.clear();  // one came in between
    while (ranks.size() < rows.size() && Clock::now() < until) {
      ranks.push_back(analysis::partition_time(
          store_, rows[ranks.size()].rank, steps[step_times_done_].begin_ns, steps[step_times_done_].end_ns));
    }
    if (ranks.size() < rows.size()) break;
    step_times_[step_times_done_++] = std::exchange(next_step_times_, {});
  }
}

const StepTimes* Session::step_times(std::size_t step_index) const {
  if (step_index >= step_times_.size() || !step_times_[step_index]) return nullptr;
  return &*step_times_[step_index];
}

void Session::settle() {
  store_.limit_reading(std::nullopt);
  next_summary_ = {};
  derive(std::chrono::seconds(20));
}

const ElementAxis& Session::elements(ElementScale scale) {
  const std::size_t params = store_.has_tables() ? store_.tables().params.size() : 0;
  if (params != elements_params_) {
    elements_.clear();
    elements_params_ = params;
  }
  const auto found = elements_.find(scale);
  if (found != elements_.end()) return found->second;
  return elements_.emplace(scale, params == 0 ? ElementAxis() : ElementAxis(store_.tables(), scale))
      .first->second;
}

}  // namespace shardscope::gui
