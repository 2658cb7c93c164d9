#include "app/gui/model/analyst.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "app/store/recording.h"
#include "instrumentation/sockets.h"

namespace shardscope::gui {
namespace {

using Clock = std::chrono::steady_clock;

/// Time limit of a turn with a shared store, exceeded by one rank of one step at most: a frame waits for it.
constexpr std::chrono::milliseconds kTurn{2};
constexpr std::chrono::milliseconds kOwnTurn{50};
/// Rank-steps in a live run's digest, about 1 KB each.
constexpr std::size_t kMostRankSteps = std::size_t{1} << 16;
/// Limits the CPU share of summaries, each of which goes over every step: less for a live run, which shares
/// cores with training ranks and the store with the window.
struct Pace {
  std::chrono::milliseconds interval;
  int share;
};
constexpr Pace kOfRecording{std::chrono::milliseconds(250), 4};
constexpr Pace kOfLiveRun{std::chrono::milliseconds(1000), 30};
/// Events of a rank's other threads may arrive this long after the end of a step.
constexpr std::int64_t kStepSettling = 200'000'000;
/// GPU records arrive later: their buffers are returned when everything in them has ended.
constexpr std::int64_t kGpuSettling = 4'000'000'000;

std::int64_t step_settling(const store::Store& store) {
  for (const store::RankRow& rank : store.ranks()) {
    if (store.depth_count({rank.rank, ev::StreamId::gpu_records}) > 0) return kGpuSettling;
  }
  return kStepSettling;
}

/// Steps that ended before this are complete in the store. The minimum over ranks, as ranks may have received
/// events up to very different times.
std::int64_t settled_until(const store::Store& store, Completeness completeness) {
  if (completeness == Completeness::complete) return store::Store::kEnd;
  std::int64_t until = store.end_ns();
  for (const store::RankRow& rank : store.ranks()) until = std::min(until, rank.last_ns);
  return until - step_settling(store);
}

}  // namespace

/// State of the analyst's thread.
struct Analyst::Work {
  std::optional<store::Store> own;
  std::vector<std::string> opened_with;  ///< problems found when opening
  analysis::Digest digest;
  std::vector<std::shared_ptr<const StepTimes>> step_times;
  std::int64_t origin_ns = 0;
  std::uint64_t events = 0;
  std::size_t evicted_steps = 0;  ///< number of steps evicted from `step_times`
  Clock::time_point next_summary{}, began = Clock::now();

  /// True when all steps up to `until_ns` are included.
  bool take(const store::Store& store, std::int64_t until_ns) {
    // Another run, or the same one with a moved time 0: earlier results are invalid.
    if (store.origin_ns() != origin_ns || store.event_count() < events) {
      digest = {};
      step_times.clear();
      evicted_steps = 0;
      origin_ns = store.origin_ns();
    }
    events = store.event_count();
    if (store.bounds()) digest.keep_at_most(kMostRankSteps);
    const bool all = digest.update(store, own ? kOwnTurn : kTurn, until_ns);
    if (digest.evicted_steps() != evicted_steps) {
      step_times.erase(step_times.begin(),
                       step_times.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                digest.evicted_steps() - evicted_steps, step_times.size())));
      evicted_steps = digest.evicted_steps();
    }
    for (std::size_t i = step_times.size(); i < digest.steps().size(); ++i) {
      const analysis::StepDigest& taken = digest.steps()[i];
      StepTimes times{taken.step, {}};
      for (const analysis::RankStep& rank : taken.ranks) {
        times.ranks.push_back({rank.rank, rank.time});
        times.micro_batches.add(rank.micro_batches);
      }
      step_times.push_back(std::make_shared<const StepTimes>(std::move(times)));
    }
    return all;
  }

  [[nodiscard]] std::shared_ptr<const Analysis> summarize(const store::Store& store, bool whole,
                                                          Completeness of) {
    const Clock::time_point at = Clock::now();
    auto out = std::make_shared<Analysis>();
    out->summary = analysis::summarize(store, digest);
    if (own) {
      out->problems = opened_with;
      out->problems.insert(out->problems.end(), store.problems().begin(), store.problems().end());
      out->summary.problems = out->problems;  // a finding reports them
    }
    out->findings = analysis::find(store, out->summary, digest);
    out->longest_waits = digest.longest_waits();
    out->longest_pieces = digest.longest_pieces();
    out->step_times = step_times;
    out->steps = digest.steps().size();
    out->evicted_steps = digest.evicted_steps();
    out->of_steps = static_cast<std::size_t>(std::ranges::count_if(
        store.steps(), [](const store::StepRow& row) { return row.end_ns != store::kOpen; }));
    out->whole = whole;
    out->of = of;
    if (own && whole)
      out->digest = std::make_shared<const analysis::Digest>(std::move(digest));  // the last use of `digest`
    const Pace& pace = own ? kOfRecording : kOfLiveRun;
    const Clock::duration cost = Clock::now() - at;
    if (own) out->took = Clock::now() - began;
    next_summary = Clock::now() + std::max<Clock::duration>(pace.interval, cost * pace.share);
    return out;
  }
};

Analyst::Analyst(std::string path)
    : path_(std::move(path)), asked_(1), completeness_(Completeness::complete) {
  start();
}

Analyst::Analyst(const store::Store& store, Turns& turns) : shared_(&store), turns_(&turns) { start(); }

Analyst::~Analyst() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Analyst::start() {
  const instrumentation::BlockSignals blocked;
  thread_ = std::thread([this] { run(); });
}

void Analyst::look(Completeness completeness) {
  {
    const std::lock_guard lock(mutex_);
    ++asked_;
    completeness_ = completeness;
  }
  changed_.notify_all();
}

std::shared_ptr<const Analysis> Analyst::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

bool Analyst::wait(std::chrono::milliseconds most) const {
  std::unique_lock lock(mutex_);
  const std::uint64_t wanted = asked_;
  run_now_ = true;
  changed_.notify_all();
  return changed_.wait_for(lock, most, [&] { return answered_ >= wanted; });
}

void Analyst::publish(std::shared_ptr<const Analysis> analysis, std::uint64_t answered) {
  {
    const std::lock_guard lock(mutex_);
    latest_ = std::move(analysis);
    answered_ = std::max(answered_, answered);
    if (answered_ >= asked_) run_now_ = false;
  }
  changed_.notify_all();
}

void Analyst::run() {
  Work work;
  try {
    if (!path_.empty()) {
      store::RecordingInfo info;
      work.own = store::open_recording(path_, &info, store::Verify::as_read);
      work.opened_with = std::move(info.problems);
    }
    std::uint64_t taken = 0;
    bool all = true, shown = true;
    for (;;) {
      Completeness completeness{};
      bool hurry = false;
      {
        std::unique_lock lock(mutex_);
        const auto due = [&] { return stop_ || asked_ != taken || !all || (run_now_ && !shown); };
        if (shown)
          changed_.wait(lock, due);
        else
          changed_.wait_until(lock, work.next_summary, due);
        if (stop_) return;
        taken = asked_;
        completeness = completeness_;
        hurry = run_now_;
      }
      const auto once = [&](const store::Store& store) {
        all = work.take(store, settled_until(store, completeness));
        // Published at once: the final result, and in wait() a complete one.
        const bool last = all && completeness == Completeness::complete;
        if (!last && !(all && hurry) && Clock::now() < work.next_summary) {
          shown = false;
          return;
        }
        publish(work.summarize(store, all, completeness), !all ? 0 : work.own ? UINT64_MAX : taken);
        shown = true;
      };
      if (work.own) {
        once(*work.own);
        if (all) return;  // a recording does not grow: its store is released
      } else {
        const Turns::Turn turn = turns_->next();
        once(*shared_);
      }
    }
  } catch (const std::exception& error) {
    // Rare, as the recording was readable before: publishes an analysis that reports the failure.
    auto none = std::make_shared<Analysis>(*latest());
    none->failed = true;
    none->problems.push_back(std::string("not analysed: ") + error.what());
    publish(std::move(none), UINT64_MAX);
  }
}

}  // namespace shardscope::gui
