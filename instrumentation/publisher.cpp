#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "instrumentation/clock.h"
#include "instrumentation/drain_pace.h"
#include "instrumentation/emission_cost.h"
#include "instrumentation/emitter.h"
#include "instrumentation/event_observer.h"
#include "instrumentation/gate.h"
#include "instrumentation/gpu_monitor.h"
#include "instrumentation/post.h"
#include "instrumentation/processor_wait.h"
#include "instrumentation/rank_link.h"
#include "instrumentation/requests.h"
#include "instrumentation/ring.h"
#include "instrumentation/sockets.h"
#include "instrumentation/time_merge.h"

namespace shardscope::instrumentation {

namespace {
constexpr std::int64_t kHoldBackNs = 4'000'000;  // see [Note: holding back]
/// When to warn that no collector replies; longer than any collector needs.
constexpr std::int64_t kNoCollectorAfterNs = 5'000'000'000;
/// How long the collector's latest pause setting is valid; it comes with every ping, once a second.
constexpr std::int64_t kLookWordNs = 3'000'000'000;
/// Interval between reads of the threads' processor waits and of the GPU's state.
constexpr std::int64_t kSampleEveryNs = 1'000'000'000;
/// How long finish() with an error waits for the collector to confirm, since the process is about to exit.
constexpr std::chrono::milliseconds kFinishWait{1000};

std::mutex g_publisher_mutex;
Publisher* g_publisher = nullptr;  // guarded by g_publisher_mutex
EventObserver g_observer;          // guarded by g_publisher_mutex

bool is_step_end(const Event& drained) noexcept {
  return static_cast<EventKind>(static_cast<std::uint16_t>(drained.kind) & ~kTimeIsNs) == EventKind::step_end;
}
}  // namespace

void post_message(Severity severity, const std::string& text) {
  const std::lock_guard lock(g_publisher_mutex);
  if (g_publisher != nullptr) g_publisher->message(severity, text);
}

void set_event_observer(EventObserver observer) {
  const std::lock_guard lock(g_publisher_mutex);
  g_observer = std::move(observer);
}

struct Publisher::State {
  explicit State(const PublisherOptions& o)
      : options(o), clock(o.kept ? TickClock(o.kept->since) : TickClock()) {}
  ~State() {
    requests.stop();  // posts to the link
    link.reset();     // its control thread calls what is below
  }

  PublisherOptions options;
  std::unique_ptr<RankLink> link;  ///< null: events are discarded
  EventObserver observer;

  TickClock clock;
  TimeMerge merge;
  DrainPace pace;
  std::vector<Event> drained;
  std::uint64_t dropped_before = 0;  ///< drops of rings before this publisher existed
  std::vector<Ring::Drops> drops;    ///< drops of rings, not yet passed on; by last_ns
  std::int64_t last_drain_ns = 0;
  std::int64_t began_ns = 0;
  ProcessorWait processor_wait;
  std::mutex gpu_mutex;             ///< not `mutex`: NVML may wait for the driver
  std::unique_ptr<GpuMonitor> gpu;  ///< guarded by gpu_mutex; null: no GPU is sampled
  std::int64_t sampled_ns = 0;      ///< time of the last samples; 0: no step has ended yet
  double event_ns = 0;              ///< calibrated once, on this thread
  std::uint64_t events = 0;         ///< drained from the rings
  bool collector_seen = false;      ///< a collector has replied
  bool warned = false;              ///< about a missing collector, or its refusal of this rank

  std::mutex mutex;
  std::condition_variable wake;
  bool stop = false;
  bool gate_moved = false;
  bool woken = false;                       ///< drain at once
  bool watched = true;                      ///< no recent message of the collector allows long pauses
  std::int64_t unwatched_ns = 0;            ///< time of the last such message, and ...
  std::chrono::milliseconds look_pause{0};  ///< ... its pause
  std::vector<Event> changes;               ///< detail_changed events, not yet passed on
  bool finishing = false;                   ///< finish() was called: drain everything, then send it
  wire::Finish finish;
  std::unordered_map<std::string, std::uint32_t> names;
  std::thread thread;
  Requests requests{[this](Severity severity, std::string text) {
    link->post(wire::Body(wire::Text{monotonic_now_ns(), severity, std::move(text)}));
    const std::lock_guard lock(mutex);
    woken = true;
    wake.notify_one();
  }};

  /// Drains once; returns how full the fullest ring was, in percent.
  std::size_t drain_rings(std::int64_t hold_back_ns) {
    const std::int64_t now = monotonic_now_ns();
    clock.update();
    drained.clear();
    RingRegistry::Drained info = RingRegistry::instance().drain(drained, &clock);
    events += drained.size();
    add_samples(info.run_begins, now);
    add_changes(info.run_begins);
    merge.add(drained, info.run_begins, clock);
    if (info.drops.events != 0) add_drops(info.drops, now);
    // The times of these are unknown.
    if (info.without_ring != 0) add_drops({info.without_ring, last_drain_ns, now}, now);
    hand_over(merge.take(now - hold_back_ns, link->buffer()), now - hold_back_ns, now);
    last_drain_ns = now;
    return info.fullest_percent;
  }

  void add_drops(Ring::Drops more, std::int64_t now) {
    more.last_ns = std::min(more.last_ns, now);
    more.first_ns = std::min(more.first_ns, more.last_ns);
    drops.insert(
        std::upper_bound(drops.begin(), drops.end(), more,
                         [](const Ring::Drops& a, const Ring::Drops& b) { return a.last_ns < b.last_ns; }),
        more);
  }

  /// Passes on events up to `until_ns`, together with the drops up to the end of theirs. A batch with drops
  /// covers only the interval of the drops: what a rank did between two drops is recorded.
  void hand_over(std::vector<Event> taken, std::int64_t until_ns, std::int64_t now) {
    std::size_t handed = 0;
    for (; handed < drops.size() && drops[handed].last_ns <= until_ns; ++handed) {
      const Ring::Drops& gone = drops[handed];
      const auto after = std::partition_point(taken.begin(), taken.end(), [&](const Event& event) {
        return static_cast<std::int64_t>(event.ticks) <= gone.last_ns;
      });
      std::vector<Event> rest = link->buffer();
      rest.assign(after, taken.end());
      taken.erase(after, taken.end());
      if (observer) observer(taken, gone.events);
      link->push(std::move(taken), gone.events, gone.first_ns, gone.last_ns + 1, clock.error_ns());
      taken = std::move(rest);
    }
    drops.erase(drops.begin(), drops.begin() + static_cast<std::ptrdiff_t>(handed));
    if (observer && !taken.empty()) observer(taken, 0);
    link->push(std::move(taken), 0, last_drain_ns, now, clock.error_ns());
  }

  /// Queued before any event that the change enables, and not through a ring: the calling thread has
  /// none.
  void change_detail(Detail detail) {
    const int before = g_detail.load(std::memory_order_relaxed);
    if (before == static_cast<int>(detail)) return;
    {
      const std::lock_guard lock(mutex);
      Event change =
          make<EventKind::detail_changed>({.detail = detail, .before = static_cast<Detail>(before)});
      change.ticks = static_cast<std::uint64_t>(monotonic_now_ns());
      change.kind = static_cast<EventKind>(static_cast<std::uint16_t>(change.kind) | kTimeIsNs);
      changes.push_back(change);
    }
    g_detail.store(static_cast<int>(detail), std::memory_order_relaxed);
  }

  /// Only at the end of a step: start-up is not part of any figure, and a hung run must emit nothing.
  void add_samples(std::vector<std::size_t>& run_begins, std::int64_t now) {
    if (sampled_ns != 0 && now - sampled_ns < kSampleEveryNs) return;
    if (std::ranges::none_of(drained, is_step_end)) return;
    if (!enabled(Detail::steps)) return;
    sampled_ns = now;
    const auto add = [&](Event event) {
      event.ticks = static_cast<std::uint64_t>(now);
      event.kind = static_cast<EventKind>(static_cast<std::uint16_t>(event.kind) | kTimeIsNs);
      drained.push_back(event);
    };
    const std::optional<ProcessorWait::Sample> sample = processor_wait.take(now);
    const std::optional<Event> of_gpu = [&] {
      const std::lock_guard lock(gpu_mutex);
      return gpu ? gpu->take(now) : std::nullopt;
    }();
    if (!sample && !of_gpu) return;
    run_begins.push_back(drained.size());
    if (sample) {
      add(make<EventKind::processor_wait>({.switches = sample->switches,
                                           .used_ms = sample->used_ms,
                                           .waited_ns = sample->waited_ns,
                                           .over_ns = sample->over_ns}));
    }
    if (of_gpu) add(*of_gpu);
  }

  /// After the drained events, so that no event enabled by a change is sent before it.
  void add_changes(std::vector<std::size_t>& run_begins) {
    const std::lock_guard lock(mutex);
    if (changes.empty()) return;
    run_begins.push_back(drained.size());
    drained.insert(drained.end(), changes.begin(), changes.end());
    changes.clear();
  }

  /// Messages at the end of the run, including the cost of sending everything before them.
  void post_end(const wire::Finish& last) {
    const EmissionCost cost{events, event_ns, monotonic_now_ns() - began_ns, publishing_cpu_ns()};
    link->post(wire::Body(wire::Text{monotonic_now_ns(), Severity::info, emission_cost_text(cost)}));
    link->post(wire::Body(last));
  }

  /// Warns once, on the program's standard error, that no collector receives its events.
  void warn_if_no_collector(bool at_the_end) {
    collector_seen = collector_seen || link->collector_alive();
    if (const std::string why = link->refusal(); !collector_seen && !warned && !why.empty()) {
      warned = true;
      std::fprintf(stderr, "shardscope: warning: the collector at %s takes nothing from rank %u: %s\n",
                   options.endpoint.c_str(), static_cast<unsigned>(link->rank()), why.c_str());
    }
    const bool long_enough = at_the_end || monotonic_now_ns() - began_ns > kNoCollectorAfterNs;
    if (collector_seen || warned || !long_enough) return;
    warned = true;
    std::fprintf(
        stderr,
        "shardscope: warning: no collector answers at %s, so %s; start `shardscope record` there, and give "
        "this program a publishing key (SHARDSCOPE_KEY) if it has keys or is another user's\n",
        options.endpoint.c_str(),
        at_the_end ? "this run's events were not received"
                   : "events wait for one, and what does not fit is dropped");
  }

  /// At the end: otherwise nothing would show that events did not reach the collector.
  void warn_if_unconfirmed() const {
    if (!collector_seen) return;  // warn_if_no_collector() has warned
    const std::uint64_t unsent = link->unsent_events();
    std::fprintf(stderr, "shardscope: warning: the collector at %s did not confirm the end of this run: %s\n",
                 options.endpoint.c_str(),
                 unsent == 0 ? "its last events may be missing there"
                             : (std::to_string(unsent) + " events were not confirmed").c_str());
  }

  /// The longest allowed pause; `mutex` must be held.
  [[nodiscard]] std::chrono::milliseconds longest_pause() const {
    const bool rarely = !watched && monotonic_now_ns() - unwatched_ns < kLookWordNs;
    return rarely ? std::max(look_pause, DrainPace::kLongest) : DrainPace::kLongest;
  }

  void set_look_pause(std::uint16_t milliseconds) {
    const std::lock_guard lock(mutex);
    const bool before = watched;
    watched = milliseconds == 0;
    look_pause = std::chrono::milliseconds(milliseconds);
    unwatched_ns = monotonic_now_ns();
    // A viewer has connected: events are sent now, not at the end of a long pause.
    woken = woken || (watched && !before);
    if (woken) wake.notify_one();
  }

  void run() {
    pthread_setname_np(pthread_self(), kPublishThread);
    event_ns = calibrated_event_ns();
    std::unique_lock lock(mutex);
    std::chrono::milliseconds pause = DrainPace::kShortest;
    while (!stop) {
      if (pause.count() > 0 && !finishing && !gate_moved && !woken) wake.wait_for(lock, pause);
      woken = false;
      // A viewer steps through the run: events up to the gate are sent at once, the newest of them (see
      // [Note: holding back]) by the drains that follow soon.
      if (std::exchange(gate_moved, false)) pace.restart();
      const bool end_of_run = finishing;
      const wire::Finish last = finish;
      finishing = false;
      const std::chrono::milliseconds longest = longest_pause();
      lock.unlock();
      pause = pace.after(drain_rings(end_of_run ? -kHoldBackNs : kHoldBackNs), longest);
      if (end_of_run) {
        link->pump();
        post_end(last);
      }
      link->pump();
      warn_if_no_collector(false);
      lock.lock();
    }
    // finish() and the destructor may both run before this loop sees either.
    const bool end_of_run = std::exchange(finishing, false);
    lock.unlock();
    drain_rings(-kHoldBackNs);
    if (end_of_run) {
      link->pump();
      post_end(finish);
    }
    const bool confirmed = link->drain(options.linger_s);
    warn_if_no_collector(true);
    if (!confirmed) warn_if_unconfirmed();
  }
};

Publisher::Publisher(const PublisherOptions& options, RunTables tables)
    : state_(std::make_unique<State>(options)) {
  State& s = *state_;
  RingRegistry::instance().set_capacity(options.ring_events);
  s.dropped_before = options.kept ? options.kept->dropped : RingRegistry::instance().dropped();
  // Drops since shardscope_keep() are missing in this run.
  if (!options.kept) RingRegistry::instance().forget_drops();
  if (options.endpoint.empty()) {  // no collector: emission stays off
    g_detail.store(-1, std::memory_order_relaxed);
    return;
  }
  if (tables.pid == 0) tables.pid = getpid();
  GateKeeper::instance().enable();
  RankLinkOptions link;
  link.endpoint = options.endpoint;
  link.key_file = options.key_file;
  link.queue_bytes = options.queue_bytes;
  link.gate = &GateKeeper::instance();
  link.set_detail = [&s](Detail detail) { s.change_detail(detail); };
  link.look_pause = [&s](std::uint16_t milliseconds) { s.set_look_pause(milliseconds); };
  link.gate_moved = [&s] {
    {
      const std::lock_guard lock(s.mutex);
      s.gate_moved = true;
    }
    s.wake.notify_one();
  };
  link.ask = [&s](Request request) { s.requests.ask(request); };
  link.detail = [] { return g_detail.load(std::memory_order_relaxed); };
  s.link = std::make_unique<RankLink>(std::move(link), std::move(tables));
  s.began_ns = monotonic_now_ns();
  s.last_drain_ns = options.kept ? options.kept->since.ns : s.began_ns;
  {
    const std::lock_guard lock(g_publisher_mutex);
    s.observer = g_observer;
  }
  {
    const BlockSignals blocked;
    s.thread = std::thread([&s] { s.run(); });
  }
  {
    const std::lock_guard lock(g_publisher_mutex);
    g_publisher = this;
  }
  g_detail.store(static_cast<int>(options.detail), std::memory_order_relaxed);
}

Publisher::~Publisher() {
  State& s = *state_;
  if (!s.link) return;
  {
    const std::lock_guard lock(g_publisher_mutex);
    if (g_publisher == this) g_publisher = nullptr;
  }
  s.requests.stop();
  GateKeeper::instance().release_for_shutdown();
  g_detail.store(-1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(s.mutex);
    s.stop = true;
  }
  s.wake.notify_all();
  s.thread.join();
}

void Publisher::tables(RunTables tables) {
  if (!state_->link) return;
  if (tables.pid == 0) tables.pid = getpid();
  state_->link->post_tables(std::move(tables));
}

void Publisher::message(Severity severity, const std::string& text) {
  if (!state_->link) return;
  state_->link->post(wire::Body(wire::Text{monotonic_now_ns(), severity, text.substr(0, wire::kMaxText)}));
}

std::string Publisher::name_key(const std::string& name) { return name.substr(0, wire::kMaxName); }

std::uint32_t Publisher::name_id(const std::string& name) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  const std::string key = name_key(name);
  const auto [it, added] = s.names.try_emplace(key, static_cast<std::uint32_t>(s.names.size()));
  if (added && s.link && it->second < wire::kMaxNames) s.link->post(wire::Body(wire::Name{it->second, key}));
  return it->second;
}

void Publisher::sample_gpu(std::unique_ptr<GpuMonitor> gpu) {
  const std::lock_guard lock(state_->gpu_mutex);
  state_->gpu = std::move(gpu);
}

void Publisher::finish(int exit_code, const std::string& text) {
  State& s = *state_;
  if (!s.link) return;
  GateKeeper::instance().release_for_shutdown();
  {
    const std::lock_guard lock(s.mutex);
    s.finish = {exit_code, monotonic_now_ns(), dropped(), text.substr(0, wire::kMaxText)};
    s.finishing = true;
  }
  s.wake.notify_all();
  if (exit_code == 0) return;
  const auto deadline = std::chrono::steady_clock::now() + kFinishWait;
  while (!s.link->finish_received() && s.link->collector_alive() &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::uint64_t Publisher::dropped() const noexcept {
  if (!state_->link) return 0;
  return RingRegistry::instance().dropped() - state_->dropped_before + state_->link->shed();
}

}  // namespace shardscope::instrumentation
