#include "runtime/simulate/event_sender.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include "instrumentation/clock.h"
#include "instrumentation/sockets.h"

namespace shardscope::simulate {
namespace {

/// Unsent bytes of one rank before the simulation waits for the collector.
constexpr std::size_t kQueueBytes = std::size_t{4} << 20;
constexpr std::chrono::milliseconds kPause{1};
/// A slow collector is waited for; one that is silent for this long counts as gone.
constexpr std::chrono::seconds kSilence{10};
constexpr std::chrono::seconds kMoment{2};  ///< in which a running collector responds
constexpr double kLastWait_s = 60;  ///< for the collector to confirm the end of one rank after the other

constexpr std::chrono::milliseconds kConnectPause{5};
constexpr std::size_t kRanksAtOnce = 64;  ///< that connect at a time

/// A link: two connections, the file descriptors that wake their threads, and its control thread's.
constexpr std::size_t kFilesPerLink = 8;

/// Files of the rest of the process.
constexpr std::size_t kOtherFiles = 256;
}  // namespace

std::uint32_t EventSender::most_ranks() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const std::size_t left = files.rlim_max > kOtherFiles ? files.rlim_max - kOtherFiles : 0;
  return static_cast<std::uint32_t>(std::min<std::size_t>(left / kFilesPerLink, UINT32_MAX));
}

namespace {
instrumentation::RunTables without_lists(instrumentation::RunTables tables) {
  tables.drop_lists();
  return tables;
}
}  // namespace

EventSender::EventSender(const Destination& destination, const instrumentation::RunTables& tables,
                         instrumentation::Detail detail, RankRange ranks)
    : destination_(destination),
      tables_(tables),
      lean_(without_lists(tables)),
      detail_(detail),
      ranks_(ranks),
      world_(tables.world),
      context_(ranks.count) {
  sent_until_ns_.assign(ranks.count, instrumentation::monotonic_now_ns());
  for (const std::string& endpoint : destination.endpoints)
    static_cast<void>(instrumentation::endpoints_of(endpoint));  // throws if invalid
}

EventSender::~EventSender() = default;

void EventSender::add_link(std::uint32_t rank) {
  const std::string& endpoint = destination_.of(rank, world_);
  gates_.push_back(std::make_unique<instrumentation::GateKeeper>());
  instrumentation::RankLinkOptions link;
  link.endpoint = endpoint;
  link.key_file = destination_.key_file;
  link.queue_bytes = 16 * kQueueBytes;
  link.gate = gates_.back().get();
  link.detail = [this] { return static_cast<int>(detail_); };
  link.shared = &context_;
  instrumentation::RunTables own = rank == 0 ? tables_ : lean_;
  own.rank = rank;
  own.host = "node " + std::to_string(rank / tables_.local_world);
  links_.push_back(std::make_unique<instrumentation::RankLink>(std::move(link), std::move(own)));
}

void EventSender::connect(double seconds, const std::function<void()>& waiting) {
  bool notified = false;
  auto begin = std::chrono::steady_clock::now();
  for (std::size_t done = 0; done < ranks_.count;) {
    // Hellos, clock samples and tables of thousands of ranks at once would overload one machine.
    const std::size_t end = std::min<std::size_t>(ranks_.count, done + kRanksAtOnce);
    while (links_.size() < end) add_link(ranks_.first + static_cast<std::uint32_t>(links_.size()));
    for (; done < end; ++done) {
      while (!links_[done]->collector_alive()) {
        const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
        if (waited.count() > seconds) {
          throw std::runtime_error("no collector answered at " + endpoint_of(done) + " within " +
                                   std::to_string(static_cast<int>(seconds)) +
                                   " s; is it listening there, with the key it expects?");
        }
        if (!notified && waited > kMoment) {
          notified = true;
          waiting();
        }
        for (std::size_t i = done; i < end; ++i) links_[i]->pump();
        std::this_thread::sleep_for(kConnectPause);
      }
      links_[done]->pump();
    }
    begin = std::chrono::steady_clock::now();
  }
}

void EventSender::pump() {
  for (const auto& link : links_) link->pump();
}

void EventSender::take(std::uint32_t rank, std::vector<instrumentation::Event> events) {
  if (events.empty()) return;
  const std::size_t i = rank - ranks_.first;
  instrumentation::RankLink& link = *links_[i];
  const auto end = static_cast<std::int64_t>(events.back().ticks);
  link.push(std::move(events), 0, std::exchange(sent_until_ns_[i], end), end, 0);
  link.pump();
  auto last_answer = std::chrono::steady_clock::now();
  while (link.queued_bytes() > kQueueBytes) {
    std::this_thread::sleep_for(kPause);
    link.pump();
    const auto now = std::chrono::steady_clock::now();
    if (link.collector_alive()) last_answer = now;
    if (now - last_answer > kSilence) {
      throw std::runtime_error("the collector at " + endpoint_of(i) + " has not answered for " +
                               std::to_string(kSilence.count()) + " s; the run is not whole there");
    }
  }
}

void EventSender::message(instrumentation::Severity severity, const std::string& text) {
  links_[0]->post(instrumentation::wire::Body(instrumentation::wire::Text{
      sent_until_ns_[0], severity, text.substr(0, instrumentation::wire::kMaxText)}));
}

void EventSender::name(std::uint32_t id, const std::string& text) {
  for (const auto& link : links_)
    link->post(instrumentation::wire::Body(instrumentation::wire::Name{id, text}));
}

void EventSender::finish(int exit_code, const std::string& text) {
  for (std::size_t rank = 0; rank < links_.size(); ++rank) {
    links_[rank]->pump();
    links_[rank]->post(
        instrumentation::wire::Body(instrumentation::wire::Finish{exit_code, sent_until_ns_[rank], 0, text}));
  }
  pump();
  std::size_t unconfirmed = 0, first = 0;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    // If one does not confirm, do not wait for the others as well.
    const double wait_s = unconfirmed == 0 ? kLastWait_s : 0.0;
    if (links_[i]->drain(wait_s)) continue;
    if (unconfirmed++ == 0) first = i;
  }
  if (unconfirmed != 0 && exit_code == 0) {
    throw std::runtime_error("the collector at " + endpoint_of(first) + " did not confirm the end of " +
                             std::to_string(unconfirmed) + " of " + std::to_string(links_.size()) +
                             " ranks; the run is not whole there");
  }
}

}  // namespace shardscope::simulate
