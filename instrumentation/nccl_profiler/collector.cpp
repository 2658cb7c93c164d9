#include "instrumentation/nccl_profiler/collector.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "instrumentation/event_fields.h"
#include "instrumentation/nccl_profiler/abi.h"

namespace shardscope::nccl_profiler {
namespace {

using instrumentation::CollectiveOp;
using instrumentation::CollectiveScope;
using instrumentation::Detail;
using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::kNoId;
using instrumentation::StreamId;

// Events of a lane should arrive within 4 ms of their timestamp.
constexpr auto kPeriod = std::chrono::milliseconds(2);
constexpr std::int64_t kTurn = 1'000'000'000;
constexpr std::int64_t kMaskPeriod = 50'000'000;
/// How long a collective may wait for a late rank before its slot is reused.
constexpr std::int64_t kPatience = 60'000'000'000;

std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

constexpr int kCalls =
    static_cast<int>(abi::kCollective | abi::kCollectiveCall | abi::kPointToPoint | abi::kPointToPointCall);
constexpr int kKernels = kCalls | static_cast<int>(abi::kKernelChannel | abi::kProxyOperation);

/// SHARDSCOPE_NCCL_LEVEL; -1: follows the run's detail level.
int fixed_mask() {
  static const int mask = [] {
    const std::string_view level = environment("SHARDSCOPE_NCCL_LEVEL");
    if (level == "off") return 0;
    if (level == "collectives") return kCalls;
    if (level == "kernels") return kKernels;
    if (!level.empty() && level != "auto") {
      std::fprintf(stderr,
                   "shardscope: SHARDSCOPE_NCCL_LEVEL is '%.*s'; use off, collectives, kernels or auto\n",
                   static_cast<int>(level.size()), level.data());
    }
    return -1;
  }();
  return mask;
}

void set_mask(int* mask, int value) {
  // NCCL's threads read it at every operation.
  __atomic_store_n(mask, value, __ATOMIC_RELAXED);
}

/// The fields common to all kinds about an operation.
template <EventKind kind>
instrumentation::Fields<kind> fields_of(const OperationFacts& facts, const Communicator& of) {
  instrumentation::Fields<kind> fields;
  fields.op = facts.op;
  fields.sequence = facts.sequence;
  if constexpr (requires { fields.group; }) {
    fields.group = of.folded();
  } else {
    fields.communicator = of.folded();
  }
  return fields;
}

}  // namespace

Collector& Collector::instance() {
  static Collector* const collector = [] {
    auto* made = new Collector;  // never destroyed: NCCL's threads may report while the process ends
    pthread_atfork(nullptr, nullptr, [] { instance().set_forked(); });
    // Many programs never destroy their communicators, and NCCL does not report the end of a job.
    std::atexit([] { instance().close(); });
    return made;
  }();
  return *collector;
}

std::uint32_t Collector::add(std::uint64_t id, const char* name, int nodes, int ranks, int rank, int* mask) {
  const std::lock_guard lock(mutex_);
  std::uint32_t index = known_;
  if (index == kCommunicators) {
    // Reuses the slot of a destroyed communicator; late reports about it may be attributed to the new one.
    for (index = 0; index < kCommunicators && communicators_[index].live.load(); ++index) {
    }
    if (index == kCommunicators) return index;
  } else {
    ++known_;
  }
  Communicator& one = communicators_[index];
  one.id = id;
  one.name = name == nullptr ? "" : name;
  one.nodes = nodes;
  one.ranks = ranks;
  one.rank = rank;
  one.mask.store(mask);
  one.live.store(true, std::memory_order_release);
  if (mask != nullptr) set_mask(mask, fixed_mask() >= 0 ? fixed_mask() : kCalls);
  if (alive_++ == 0) {
    ends_ = false;
    // Signals are for the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { run(); });
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      --alive_;
      one.live.store(false);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  return index;
}

void Collector::remove(std::uint32_t index) {
  std::unique_lock lock(mutex_);
  if (index >= kCommunicators || !communicators_[index].live.exchange(false)) return;
  communicators_[index].mask.store(nullptr);
  if (--alive_ == 0) stop_thread(std::move(lock));
}

void Collector::close() {
  if (forked()) return;  // the thread is the parent's
  std::unique_lock lock(mutex_);
  stop_thread(std::move(lock));
  end_own_run();
}

void Collector::stop_thread(std::unique_lock<std::mutex> lock) {
  ends_ = true;
  std::thread last = std::move(thread_);
  lock.unlock();
  changed_.notify_all();
  if (last.joinable()) last.join();
}

Communicator* Collector::live(std::uint32_t index) noexcept {
  if (index >= kCommunicators || !communicators_[index].live.load(std::memory_order_acquire)) return nullptr;
  return &communicators_[index];
}

void Collector::run() {
  pthread_setname_np(pthread_self(), "scope-nccl");
  std::int64_t turned = now_ns();
  std::int64_t masked = 0;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kPeriod, [this] { return ends_; })) {
    const std::int64_t now = now_ns();
    const std::uint32_t known = known_;
    if (now - masked >= kMaskPeriod) {
      set_masks();
      masked = now;
    }
    lock.unlock();
    look(now);
    if (now - turned >= kTurn) {
      for (std::uint32_t i = 0; i < known; ++i) communicators_[i].clock.turn();
      turned = now;
    }
    lock.lock();
  }
  lock.unlock();
  // Completes operations without times. Twice: a slot that NCCL is writing to is skipped once.
  for (int i = 0; i < 2; ++i) operations_.collect(*this, now_ns(), -1);
}

void Collector::look(std::int64_t now) {
  operations_.collect(*this, now, kPatience);
  const std::uint64_t lost = operations_.lost();
  if (sink_ != nullptr && lost != lost_reported_) {
    message_of_own_run("NCCL plugin: " + std::to_string(lost - lost_reported_) +
                       " operations were not followed: more were under way than there are places");
    lost_reported_ = lost;
  }
}

void Collector::find_sink() {
  if (sink_ == nullptr) sink_ = sink_of_process();
  if (sink_ != nullptr || no_sink_ || environment("SHARDSCOPE_NCCL_RUN") == "join") return;
  const Communicator& first = communicators_[0];
  std::string problem;
  sink_ = start_own_run(own_run(first.id, first.nodes, first.ranks, first.rank), problem);
  if (sink_ != nullptr) return;
  no_sink_ = true;
  std::fprintf(stderr, "shardscope: NCCL plugin: %s\n", problem.c_str());
}

void Collector::set_masks() {
  int mask = fixed_mask();
  if (mask < 0) {
    mask = kCalls;
    if (sink_ != nullptr) {
      const bool wanted = sink_->enabled(sink_->joins() ? Detail::params : Detail::modules);
      mask = sink_->enabled(Detail::kernels) ? kKernels : wanted ? kCalls : 0;
    }
  }
  for (std::uint32_t i = 0; i < known_; ++i) {
    if (int* nccl = communicators_[i].mask.load(); nccl != nullptr) set_mask(nccl, mask);
  }
}

void Collector::started(const OperationFacts& facts) {
  find_sink();
  if (sink_ == nullptr) return;
  const Communicator& of = any(facts.communicator);
  if (sink_->enabled(instrumentation::detail_of(EventKind::nccl_collective))) {
    auto fields = fields_of<EventKind::nccl_collective>(facts, of);
    fields.algorithm = facts.algorithm;
    fields.protocol = facts.protocol;
    fields.channels = facts.planned_channels;
    fields.warps = facts.warps;
    fields.bytes = facts.bytes;
    fields.nccl_sequence = static_cast<std::int64_t>(facts.nccl_sequence);
    sink_->emit_at(facts.started_ns, instrumentation::make<EventKind::nccl_collective>(fields));
  }
  if (sink_->joins() || !sink_->enabled(Detail::modules)) return;
  auto submitted = fields_of<EventKind::collective_submitted>(facts, of);
  submitted.parts = 1;
  submitted.elems = facts.elems;
  submitted.bytes = facts.bytes;
  sink_->emit_at(facts.started_ns, instrumentation::make<EventKind::collective_submitted>(submitted));
}

void Collector::ended(const OperationFacts& facts, const OperationTimes& times) {
  if (sink_ == nullptr) return;
  const Communicator& of = any(facts.communicator);
  if (times.channels_timed > 0 && times.end_gpu_ns >= times.begin_gpu_ns) {
    const auto end = of.clock.host_ns(times.end_gpu_ns);
    const auto length = static_cast<std::int64_t>(times.end_gpu_ns - times.begin_gpu_ns);
    if (end && *end > 0) {
      auto kernel = fields_of<EventKind::nccl_kernel>(facts, of);
      kernel.channels_timed = static_cast<std::uint16_t>(times.channels_timed);
      kernel.channels_used = static_cast<std::uint16_t>(facts.channels);
      kernel.begin_ns_before = length;
      kernel.first_end_ns_before =
          static_cast<std::int64_t>(times.end_gpu_ns - std::min(times.first_end_gpu_ns, times.end_gpu_ns));
      if (sink_->enabled(Detail::kernels))
        sink_->emit_at(*end, instrumentation::make<EventKind::nccl_kernel>(kernel));
      if (!sink_->joins()) span(facts, of, *end - length, *end);
    }
  }
  if (times.proxies > 0 && times.proxy_end_ns >= times.proxy_begin_ns && sink_->enabled(Detail::kernels)) {
    auto proxy = fields_of<EventKind::nccl_proxy>(facts, of);
    proxy.operations = times.proxies;
    proxy.begin_ns_before = times.proxy_end_ns - times.proxy_begin_ns;
    sink_->emit_at(times.proxy_end_ns, instrumentation::make<EventKind::nccl_proxy>(proxy));
  }
}

void Collector::span(const OperationFacts& facts, const Communicator& of, std::int64_t begin_ns,
                     std::int64_t end_ns) {
  const bool gathers = facts.op == CollectiveOp::all_gather || facts.op == CollectiveOp::broadcast;
  LaneEnd& lane = lane_ends_[gathers ? 0 : 1];
  if (begin_ns < lane.at_ns && lane.communicator == facts.communicator) {
    // Kernels of one communicator are sequential: the overlap comes from a change of the clock estimate.
    begin_ns = lane.at_ns;
    end_ns = std::max(begin_ns, end_ns);
  }
  // Spans of a lane must nest, but kernels of two communicators may overlap: the later one then has no span,
  // only the times of its nccl_kernel.
  if (begin_ns < lane.at_ns) {
    if (overlapping_++ == 0) {
      message_of_own_run(
          "NCCL plugin: collectives of different communicators overlap; those that begin before the lane's "
          "last one has ended have no span of their own, only their times in nccl_kernel");
    }
    return;
  }
  if (!sink_->enabled(Detail::modules)) return;
  lane = {end_ns, facts.communicator};
  auto fields = fields_of<EventKind::collective_begin>(facts, of);
  if (facts.type != 255) {
    fields.code.bits = instrumentation::collective_code(facts.type, CollectiveScope::world,
                                                        static_cast<std::uint32_t>(of.ranks));
  }
  fields.elems = facts.elems;
  fields.bytes = facts.bytes;
  Event event = instrumentation::make<EventKind::collective_begin>(
      gathers ? StreamId::gather : StreamId::reduce, fields);
  sink_->emit_at(begin_ns, event);
  event.kind = EventKind::collective_end;
  sink_->emit_at(end_ns, event);
}

}  // namespace shardscope::nccl_profiler
