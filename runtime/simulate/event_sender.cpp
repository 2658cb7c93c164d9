#include "runtime/simulate/event_sender.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include "instrumentation/clock.h"

namespace shardscope::simulate {
namespace {

using instrumentation::EventKind;

/// Unsent bytes of one rank before the simulation waits for the collector.
constexpr std::size_t kQueueBytes = std::size_t{4} << 20;
constexpr std::chrono::milliseconds kPause{1};
/// A collector that is behind is waited for; one that says nothing for so long is gone.
constexpr std::chrono::seconds kSilence{10};
constexpr std::chrono::seconds kMoment{2};  ///< in which a collector answers that is there
constexpr double kLastWait_s = 60;  ///< for the collector to confirm the end of one rank after the other

/// A link: two connections, the file descriptors that wake their threads, and its control thread's.
constexpr std::size_t kFilesPerLink = 8;

/// What is computed from values that a simulation does not have is missing, not zero.
bool depends_on_values(const instrumentation::Event& event) noexcept {
  return event.kind == EventKind::loss || event.kind == EventKind::grad_norm ||
         event.kind == EventKind::clip_factor || event.kind == EventKind::eval_loss;
}

}  // namespace

void EventSender::allow_connections(std::uint32_t ranks) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const std::size_t wanted = std::size_t{ranks} * kFilesPerLink + 256;
  if (files.rlim_cur >= wanted) return;
  if (files.rlim_max < wanted) {
    throw std::runtime_error("--ranks " + std::to_string(ranks) + ": needs about " + std::to_string(wanted) +
                             " open files and this process may have " + std::to_string(files.rlim_max) +
                             "; raise the limit (ulimit -Hn) or simulate fewer ranks");
  }
  files.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &files);
}

EventSender::EventSender(const std::string& endpoint, const std::string& key_file,
                         const instrumentation::RunTables& tables, instrumentation::Detail detail)
    : endpoint_(endpoint), context_(tables.world) {
  instrumentation::RunTables lean = tables;
  lean.drop_lists();
  sent_until_ns_.assign(tables.world, instrumentation::monotonic_now_ns());
  for (std::uint32_t rank = 0; rank < tables.world; ++rank) {
    gates_.push_back(std::make_unique<instrumentation::GateKeeper>());
    instrumentation::RankLinkOptions link;
    link.endpoint = endpoint;
    link.key_file = key_file;
    link.queue_bytes = 16 * kQueueBytes;
    link.gate = gates_.back().get();
    link.detail = [detail] { return static_cast<int>(detail); };
    link.shared = &context_;
    instrumentation::RunTables own = rank == 0 ? tables : lean;
    own.rank = rank;
    own.host = "node " + std::to_string(rank / tables.local_world);
    links_.push_back(std::make_unique<instrumentation::RankLink>(std::move(link), std::move(own)));
  }
}

EventSender::~EventSender() = default;

void EventSender::connect(double seconds, const std::function<void()>& waiting) {
  const auto begin = std::chrono::steady_clock::now();
  const auto deadline = begin + std::chrono::duration<double>(seconds);
  bool notified = false;
  for (const auto& link : links_) {
    while (!link->collector_alive()) {
      if (std::chrono::steady_clock::now() > deadline) {
        throw std::runtime_error("no collector answered at " + endpoint_ + " within " +
                                 std::to_string(static_cast<int>(seconds)) +
                                 " s; is it listening there, with the key it expects?");
      }
      if (!notified && std::chrono::steady_clock::now() - begin > kMoment) {
        notified = true;
        waiting();
      }
      for (const auto& each : links_) each->pump();
      std::this_thread::sleep_for(kPause);
    }
  }
}

void EventSender::take(std::uint32_t rank, std::vector<instrumentation::Event> events) {
  events.erase(std::remove_if(events.begin(), events.end(), depends_on_values), events.end());
  if (events.empty()) return;
  events_ += events.size();
  instrumentation::RankLink& link = *links_[rank];
  const auto end = static_cast<std::int64_t>(events.back().ticks);
  link.push(std::move(events), 0, std::exchange(sent_until_ns_[rank], end), end, 0);
  link.pump();
  auto last_answer = std::chrono::steady_clock::now();
  while (link.queued_bytes() > kQueueBytes) {
    std::this_thread::sleep_for(kPause);
    link.pump();
    const auto now = std::chrono::steady_clock::now();
    if (link.collector_alive()) last_answer = now;
    if (now - last_answer > kSilence) {
      throw std::runtime_error("the collector at " + endpoint_ + " has not answered for " +
                               std::to_string(kSilence.count()) + " s; the run is not whole there");
    }
  }
}

void EventSender::message(instrumentation::Severity severity, const std::string& text) {
  links_[0]->post(instrumentation::wire::Body(instrumentation::wire::Text{
      sent_until_ns_[0], severity, text.substr(0, instrumentation::wire::kMaxText)}));
}

std::uint32_t EventSender::name_id(const std::string& name) {
  const auto known = std::find(names_.begin(), names_.end(), name);
  if (known != names_.end()) return static_cast<std::uint32_t>(known - names_.begin());
  names_.push_back(name);
  const auto id = static_cast<std::uint32_t>(names_.size() - 1);
  for (const auto& link : links_) {
    link->post(instrumentation::wire::Body(instrumentation::wire::Name{id, name}));
  }
  return id;
}

void EventSender::finish(int exit_code, const std::string& text) {
  for (std::size_t rank = 0; rank < links_.size(); ++rank) {
    links_[rank]->pump();
    links_[rank]->post(
        instrumentation::wire::Body(instrumentation::wire::Finish{exit_code, sent_until_ns_[rank], 0, text}));
  }
  for (const auto& link : links_) link->pump();
  std::size_t unconfirmed = 0;
  for (const auto& link : links_) {
    // Where one does not confirm, the others are not waited for as well.
    const double wait_s = unconfirmed == 0 ? kLastWait_s : 0.0;
    if (!link->drain(wait_s)) ++unconfirmed;
  }
  if (unconfirmed != 0 && exit_code == 0) {
    throw std::runtime_error("the collector at " + endpoint_ + " did not confirm the end of " +
                             std::to_string(unconfirmed) + " of " + std::to_string(links_.size()) +
                             " ranks; the run is not whole there");
  }
}

}  // namespace shardscope::simulate
