#include "app/gui/model/session.h"

#include <algorithm>
#include <utility>

namespace shardscope::gui {
namespace {

using Clock = std::chrono::steady_clock;

/// A summary reads the whole run, so it may take at most this share of the time.
constexpr int kSummaryShare = 30;
constexpr std::chrono::milliseconds kSummaryInterval{1000};

}  // namespace

std::unique_ptr<Session> Session::open_file(const std::string& path) {
  std::unique_ptr<Session> session(new Session());
  session->source_ = path;
  store::RecordingInfo info;
  session->store_ = store::open_recording(path, &info);
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
  bool changed = false;
  if (viewer_) changed = viewer_->poll(store_, budget);
  derive(budget);
  // The lease counts down in whole seconds on the screen.
  const collector::ControlState control = this->control();
  std::string seen = std::to_string(static_cast<int>(link())) + (control.paused ? "p" : "r") +
                     (control.pausing ? "p" : "r") + std::to_string(control.gate) + control.note +
                     std::to_string(static_cast<int>(control.lease_left_s));
  changed |= seen != control_seen_;
  control_seen_ = std::move(seen);
  return changed || store_.revision() != before || summary_.step_ms.data() != summary_before ||
         step_times_done_ != times_before;
}

void Session::derive(std::chrono::microseconds budget) {
  const auto completeness =
      link() == collector::Viewer::Link::ended ? Completeness::complete : Completeness::growing;
  if (store_.revision() != indexed_revision_ || completeness != indexed_as_) {
    index_.update(store_, completeness);
    indexed_revision_ = store_.revision();
    indexed_as_ = completeness;
  }
  const Clock::time_point now = Clock::now();
  if (store_.revision() != summarized_revision_ && now >= next_summary_) {
    summary_ = analysis::summarize(store_);
    findings_ = analysis::find(store_, summary_);
    summarized_revision_ = store_.revision();
    const auto cost = Clock::now() - now;
    next_summary_ = Clock::now() + std::max<Clock::duration>(kSummaryInterval, cost * kSummaryShare);
  }
  compute_step_times(budget);
}

void Session::compute_step_times(std::chrono::microseconds budget) {
  const std::span<const store::StepRow> steps = store_.steps();
  step_times_.resize(steps.size());
  const Clock::time_point until = Clock::now() + budget;
  while (step_times_done_ < steps.size() && steps[step_times_done_].end_ns != store::kOpen &&
         Clock::now() < until) {
    StepTimes times;
    for (const store::RankRow& rank : store_.ranks()) {
      times.ranks.push_back(analysis::partition_time(store_, rank.rank, steps[step_times_done_].begin_ns,
                                                     steps[step_times_done_].end_ns));
    }
    step_times_[step_times_done_++] = std::move(times);
  }
}

const StepTimes* Session::step_times(std::size_t step_index) const {
  if (step_index >= step_times_.size() || !step_times_[step_index]) return nullptr;
  return &*step_times_[step_index];
}

void Session::settle() {
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
