// Sends the events of simulated ranks to their collectors, each rank over its own link, as in training.
// Unlike training it waits for a slow collector: no event is dropped for a full queue.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "instrumentation/emitter.h"
#include "instrumentation/rank_link.h"

namespace shardscope::simulate {

/// The collectors to which the ranks of a run publish.
struct Destination {
  std::vector<std::string> endpoints;  ///< with several, ranks are divided equally in order: one per node
  std::string key_file;
  [[nodiscard]] const std::string& of(std::uint32_t rank, std::uint32_t world) const noexcept {
    return endpoints[std::size_t{rank} * endpoints.size() / world];
  }
};

struct RankRange {
  std::uint32_t first = 0, count = 0;
};

class EventSender {
 public:
  /// Maximum number of ranks that one process can connect. Raises the process's limit of open files to its
  /// hard limit.
  [[nodiscard]] static std::uint32_t most_ranks();

  /// A sender for the ranks `ranks`. `tables`: of rank 0; those of other ranks differ in rank and host only,
  /// and omit the lists, which one rank sends for all. Throws std::runtime_error on an invalid endpoint.
  EventSender(const Destination& destination, const instrumentation::RunTables& tables,
              instrumentation::Detail detail, RankRange ranks);
  ~EventSender();
  EventSender(const EventSender&) = delete;
  EventSender& operator=(const EventSender&) = delete;

  /// Connects the ranks in batches and waits until the collectors respond. Throws std::runtime_error if one
  /// does not within `seconds`. `waiting` is called once if it takes longer than two seconds.
  void connect(double seconds, const std::function<void()>& waiting);
  /// Queues events of one rank, in order of time. Throws std::runtime_error if the collector is gone.
  void take(std::uint32_t rank, std::vector<instrumentation::Event> events);
  /// Sends a message of the first rank.
  void message(instrumentation::Severity severity, const std::string& text);
  /// Sends a kernel's name for every rank.
  void name(std::uint32_t id, const std::string& text);
  /// Sends queued data; call while there are no new events.
  void pump();
  /// Ends every rank's run. Returns when the collector has received everything; throws std::runtime_error if
  /// it has not after a minute, or is gone. With an exit code other than 0 it returns in any case.
  void finish(int exit_code, const std::string& text);

 private:
  [[nodiscard]] const std::string& endpoint_of(std::size_t link) const noexcept {
    return destination_.of(ranks_.first + static_cast<std::uint32_t>(link), world_);
  }

  void add_link(std::uint32_t rank);

  const Destination destination_;
  const instrumentation::RunTables tables_, lean_;  ///< complete, and without the lists
  const instrumentation::Detail detail_;
  const RankRange ranks_;
  const std::uint32_t world_;
  instrumentation::LinkContext context_;
  std::vector<std::unique_ptr<instrumentation::GateKeeper>>
      gates_;  ///< never held: a simulated rank does not pause
  std::vector<std::unique_ptr<instrumentation::RankLink>> links_;  ///< by rank, from ranks_.first on
  std::vector<std::int64_t> sent_until_ns_;                        ///< likewise
};

}  // namespace shardscope::simulate
