// The collector: receives and validates the ranks' messages, aligns clocks, records, serves viewers and
// relays their commands. Runs on its own thread inside `shardscope run`, `record` and the dashboard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "app/store/retention.h"
#include "app/store/rotation.h"
#include "app/store/store.h"
#include "instrumentation/emitter.h"
#include "instrumentation/host_clock.h"

namespace shardscope::collector {

/// Limits on the cost of viewers. Each viewer has at most one reply in flight.
struct ViewerLimits {
  std::size_t bytes = 64U << 20;  ///< of replies not received yet, all viewers together
  double patience_s = 10;         ///< a viewer that has not received a reply after this time is cut off ...
  double bytes_per_s = 64 << 10;  ///< ... plus the reply's bytes at this rate
};

/// Bounds of the log that later viewers read a run from. Items beyond `memory_bytes` move to the file; when
/// that is full, or cannot be written, the oldest are discarded.
struct ViewLogLimits {
  std::size_t memory_bytes = 32U << 20;  ///< of the newest items
  /// Of the older items, in an unlinked temporary file beside the recording, else in $TMPDIR or /tmp.
  std::uint64_t file_bytes = std::uint64_t{16} << 30;
  std::size_t items = std::size_t{4} << 20;  ///< in the file; each takes 16 bytes of memory too
};

struct CollectorOptions {
  std::string listen =
      "tcp://127.0.0.1:5711";  ///< ranks; viewers and control use the next two ports. Port 0: any
  std::string record_path;     ///< empty: no recording
  store::Retention retention;  ///< how much of the run the recording keeps at full detail
  store::Rotation rotation;    ///< when the recording goes on in its next file
  std::string run_id;          ///< the only run that is accepted; empty: the first that publishes anything
  double lease_s = 10;
  /// Key file, or a folder made by `shardscope keys`. Empty: on the loopback keys that programs of this user
  /// find by themselves (instrumentation/local_keys.h), over ipc any process of this user.
  std::string keys;
  bool insecure = false;     ///< without keys: anyone who reaches it can read and control the run
  std::string upstream;      ///< collector above, to which the ranks' messages are relayed; empty: none
  std::string upstream_key;  ///< publishing key for it (instrumentation::Credentials)
  double linger_s = 10;      ///< longest wait at the end: for the collector above to receive the rest, and
                             ///< for ranks to read the confirmation of their ends
  std::string clock_id;      ///< of a simulated host; empty: this machine's
  instrumentation::HostClock clock;
  /// Bound on the memory of events received and not recorded yet. Beyond it ranks have to wait; when the
  /// recorder has stalled for a second, events are shed and counted, lowest detail first; steps and memory
  /// watermarks are never shed.
  std::size_t intake_bytes = 64U << 20;
  ViewerLimits viewers;
  ViewLogLimits view_log;
};

/// Upper bound on a collector's memory, in bytes beside the program itself, whatever its ranks send and
/// however slow its disk, its viewers and the collector above are. Terms: docs/architecture.md, "What a
/// collector holds".
[[nodiscard]] std::size_t memory_bound(const CollectorOptions& options, std::size_t ranks,
                                       std::size_t params);

struct CollectorStatus {
  std::uint64_t messages = 0, events = 0;
  std::uint64_t control = 0;        ///< control messages received, of ranks and of nodes' collectors
  std::uint64_t dropped = 0;        ///< events dropped by ranks and by collectors
  std::uint64_t shed = 0;           ///< of these, by this collector
  std::uint64_t shed_upstream = 0;  ///< not relayed to the collector above, which counts them as well
  std::uint64_t rejected = 0;       ///< messages ignored
  std::map<std::string, std::uint64_t>
      rejected_by;             ///< the same by reason: size, garbage, version, value, order, ...
  std::uint64_t refused = 0;   ///< connections turned away: no key, another key, another protocol
  std::uint64_t repeated = 0;  ///< messages received twice: a connection was cut, so they were sent again
  double stalled_s = 0;        ///< time in which the collector was stopped or not scheduled
  std::uint64_t stalled = 0;   ///< viewers cut off: they did not receive their replies in time
  std::uint64_t flooding = 0;  ///< connections cut off for too many bytes not received (ConnectionWatch)
  std::uint32_t ranks_connected = 0, ranks_finished = 0, viewers = 0;
  std::string recording_error;  ///< a whole sentence
  bool finished = false;        ///< every rank of the world has reported its end
  std::int32_t exit_code = 0;   ///< first non-zero exit code of a rank
  std::string failure;          ///< its message
};

class Collector {
 public:
  /// Binds at once. Throws std::runtime_error: endpoint, reason ("address in use"), what to do.
  explicit Collector(CollectorOptions options);
  ~Collector();  ///< finishes the recording
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  [[nodiscard]] std::string publish_endpoint() const;  ///< with the port chosen where 0 was given
  [[nodiscard]] std::string view_endpoint() const;     ///< the endpoint to pass to a Viewer: the same one
  /// The folder (or file) with the keys that peers need, publish.key and control.key among them; empty: no
  /// keys.
  [[nodiscard]] std::string keys() const;
  [[nodiscard]] CollectorStatus status() const;
  /// A warning about the recording for its owner to show, once; empty: none.
  [[nodiscard]] std::string take_recording_warning();
  /// Runs `reader` with the collector's own store, of totals, while nothing changes it (terminal progress).
  void read(const std::function<void(const store::Store&)>& reader) const;
  /// Makes the recording keep full detail around this moment, where `retention` would not keep it.
  void keep(store::Moment moment);
  /// Requests the recorders of nodes below this collector, if any, to keep the interval around the moment
  /// too. Requests of viewers reach them without this.
  void ask_nodes_to_keep(store::Moment moment);
  /// Moments that viewers, or the collector above, have requested to keep since the last call; the caller
  /// decides. At most the first kMostAskedFor, of all requesters together.
  [[nodiscard]] std::vector<store::Moment> take_asked_for();
  static constexpr std::size_t kMostAskedFor = 64;
  /// Answers such a request by a message of the run, which viewers see and the recording contains.
  void answer(const std::string& text);
  /// Sets the ranks' level of detail, like a viewer's command. Not for a node's collector: its commands come
  /// from the collector above.
  void set_detail(instrumentation::Detail detail);
  /// Reports how a rank's process ended, from the launcher: 128 + signal, or its exit code. Ignored for a
  /// rank that has reported its end itself.
  void note_exit(std::uint32_t rank, std::int32_t exit_code);
  /// Reports that the processes of all ranks have ended, even if some did not report it: viewers are notified
  /// that the run is over.
  void note_over();
  void stop();  ///< ends the thread, commits and closes the recording

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::collector
