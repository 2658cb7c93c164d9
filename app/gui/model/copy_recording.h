// Copies a live run into a recording, on a background thread with a connection of its own, so that neither
// the window nor the run waits for the disk.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace shardscope::gui {

/// The file contains the events that the collector still holds at the start, and all later ones. A note in
/// the file counts what the collector no longer had.
class CopyRecording {
 public:
  CopyRecording() = default;
  ~CopyRecording();  ///< closes the file properly
  CopyRecording(const CopyRecording&) = delete;
  CopyRecording& operator=(const CopyRecording&) = delete;

  struct Order {
    std::string endpoint, target;
    std::string key_file = {};
    /// The run's time 0 on the collector's clock, if known: the reference for State::since_s when the
    /// collector no longer has the begin of the run.
    std::optional<std::int64_t> zero_ns = {};
  };
  /// No effect while another copy is running.
  void start(Order order);
  /// Ends the copy within seconds: the file contains what has arrived, or notes that it was still catching
  /// up. No effect without a running copy.
  void stop();

  struct State {
    bool running = false;
    /// The file was closed, or never created. An existing target is kept until the collector answers; after
    /// that it is replaced, also where the copy fails.
    bool done = false;
    std::string target;
    std::uint64_t bytes = 0;   ///< size of the file and its write-ahead log
    std::uint64_t events = 0;  ///< events written to the file
    /// Chunks and messages: no longer held by the collector, as its note in the file counts them; and
    /// received but unreadable.
    std::uint64_t missing_pieces = 0, damaged_pieces = 0;
    /// Time of the first event in the run; nullopt: no event yet, or the run's begin is unknown.
    std::optional<double> since_s;
    bool catching_up = false;  ///< earlier events are not in the file yet, or never will be
    std::string why_ended;     ///< "it was stopped", "the connection was lost", ...
    std::string problem;       ///< why it failed: path, reason
  };
  [[nodiscard]] State state() const;
  /// Status of the copy in one line; empty before the first one. `brief`: the file name without its folder,
  /// so that the figures after it stay visible.
  [[nodiscard]] std::string line(bool brief = false) const;

 private:
  class Copier;
  void run(const Order& order);
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::condition_variable wake_;  ///< wakes the thread for stop()
  State state_;
  std::thread thread_;
};

}  // namespace shardscope::gui
