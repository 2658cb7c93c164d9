// A viewer's connection to a collector: requests the snapshot (tables and every chunk so far), then new
// items, at its own pace, so that a slow viewer delays no one else; and sends commands.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "app/store/chunk.h"
#include "app/store/store.h"
#include "instrumentation/gate.h"
#include "instrumentation/requests.h"
#include "instrumentation/run_tables.h"

namespace shardscope::collector {

struct Command {
  enum class Kind : std::uint8_t { pause, resume, set_detail, ask } kind = Kind::pause;
  instrumentation::StopRule rule;  ///< resume: where to stop next (step = resume with a rule)
  instrumentation::Detail detail{};
  /// ask: every rank answers with a message that begins with instrumentation::answer_prefix().
  instrumentation::Request request{};
};

/// The run's control state as the collector reports it, refreshed by poll().
struct ControlState {
  bool pausing = false;  ///< a pause has begun; not every rank holds yet
  bool paused = false;   ///< every rank holds at `gate`
  std::uint64_t gate = 0;
  double lease_left_s = 0;
  std::string note;  ///< why a command was refused, who resumed the run, ...
};

/// Traffic of a viewer's connection: data received, waiting and missing.
struct ViewTraffic {
  std::uint64_t bytes = 0;          ///< received
  std::uint64_t waiting_bytes = 0;  ///< of decoded items not applied by poll() yet
  // Of the collector that answers now; its log's items are chunks of events and messages.
  std::uint64_t items_behind = 0;   ///< in its log, not received yet
  std::uint64_t items_missing = 0;  ///< discarded from its log before they were sent
  std::uint64_t items_damaged = 0;  ///< received and not decodable: chunks and tables
  bool from_begin = false;          ///< it still had its run's first item when it was first requested
};

/// Receives the items that poll() applies, in order and on its thread, before the store does.
class ViewObserver {
 public:
  virtual ~ViewObserver() = default;
  /// `encoded`: as the collector sent it, equal to chunk.encode().
  virtual void chunk(const store::Chunk& chunk, std::span<const std::byte> encoded) = 0;
  virtual void tables(const instrumentation::RunTables& tables) = 0;
  virtual void rank(const store::RankRow& row) = 0;  ///< with the collector's counts
  virtual void message(const store::Message& message) = 0;
  virtual void name(std::uint32_t rank, std::uint32_t id, const std::string& name) = 0;
  /// Another collector answers from here on: earlier items were of another run. `before`: traffic of that
  /// run's collector as of its last reply, with no bytes waiting.
  virtual void another_run(const ViewTraffic& before) = 0;
};

class Viewer {
 public:
  /// `endpoint` is the collector's listen endpoint; the view port is derived from it.
  /// `key_file`: a viewing or controlling key (instrumentation::Credentials).
  /// `observer`: or null; outlives this.
  explicit Viewer(const std::string& endpoint, const std::string& key_file = {},
                  ViewObserver* observer = nullptr);
  ~Viewer();
  Viewer(const Viewer&) = delete;
  Viewer& operator=(const Viewer&) = delete;
  /// Applies received items to `store` for about `budget`; does not wait for more. True if anything changed.
  bool poll(store::Store& store, std::chrono::microseconds budget);
  void send(const Command& command);
  /// Requests the recorder to keep the interval around a moment: `kind` is one word ("request"), `at_ns` on
  /// the collector's clock (0: now). The answer is a message that begins with "control: ".
  void keep(const std::string& kind, std::int64_t at_ns, const std::string& text);
  [[nodiscard]] ControlState control() const;
  enum class Link : std::uint8_t { connecting, catching_up, live, lost, ended };
  /// As of the items that poll() has applied: catching_up until all items from before the connection are in
  /// the store, and ended only when the last item is.
  [[nodiscard]] Link link() const;
  using Traffic = ViewTraffic;
  /// As of the last reply, which poll() may not have applied yet.
  [[nodiscard]] Traffic traffic() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::collector
