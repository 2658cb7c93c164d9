// Sends the events of simulated ranks to their collectors, each rank over a link of its own, as ranks do.
// Unlike training it waits for a collector: nothing is lost to a full queue.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "instrumentation/emitter.h"
#include "instrumentation/rank_link.h"

namespace shardscope::simulate {

/// Where the ranks of a run publish.
struct Destination {
  std::vector<std::string> endpoints;  ///< of several the ranks have equal parts, in order: one for each node
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
  /// Most ranks that one process may have connections for. Raises its own limit of open files to what it may
  /// be.
  [[nodiscard]] static std::uint32_t most_ranks();

  /// A sender for the ranks `ranks`. `tables`: of rank 0; the other ranks' differ in their rank and host
  /// only, and leave out the lists, which one rank sends for all. Throws std::runtime_error when an endpoint
  /// cannot be one.
  EventSender(const Destination& destination, const instrumentation::RunTables& tables,
              instrumentation::Detail detail, RankRange ranks);
  ~EventSender();
  EventSender(const EventSender&) = delete;
  EventSender& operator=(const EventSender&) = delete;

  /// Connects the ranks in turns and waits until the collectors answer. Throws std::runtime_error when it
  /// does not within `seconds`. `waiting` is called once where it takes more than a moment.
  void connect(double seconds, const std::function<void()>& waiting);
  /// Events of one rank in order of time. Throws std::runtime_error when the collector has gone.
  void take(std::uint32_t rank, std::vector<instrumentation::Event> events);
  /// A message of its first rank.
  void message(instrumentation::Severity severity, const std::string& text);
  /// A kernel's name, of every rank.
  void name(std::uint32_t id, const std::string& text);
  /// Sends what waits, where there is nothing new.
  void pump();
  /// Ends every rank's run. Returns when the collector has everything; throws std::runtime_error when it has
  /// not after a minute, or is gone. With an exit code that is not 0 it returns in any case.
  void finish(int exit_code, const std::string& text);

 private:
  [[nodiscard]] const std::string& endpoint_of(std::size_t link) const noexcept {
    return destination_.of(ranks_.first + static_cast<std::uint32_t>(link), world_);
  }

  void add_link(std::uint32_t rank);

  const Destination destination_;
  const instrumentation::RunTables tables_, lean_;  ///< whole, and without the lists
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
