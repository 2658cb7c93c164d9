// A recording of a live run that the window makes for itself: on a thread of its own, through a connection of
// its own, so that neither the view nor the run waits for the disk.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace shardscope::gui {

/// It has whatever the collector still has of the run when it begins, as the collector sends it, and what
/// comes until it ends. What the collector had forgotten by then is missing in the file, and named.
class CopyRecording {
 public:
  CopyRecording() = default;
  ~CopyRecording();  ///< ends the file properly
  CopyRecording(const CopyRecording&) = delete;
  CopyRecording& operator=(const CopyRecording&) = delete;

  struct Order {
    std::string endpoint, target;
    std::string key_file = {};
    /// Of the run's time 0 on the collector's clock, if it is known: what the copy's begin is given from
    /// where the collector has forgotten the run's.
    std::optional<std::int64_t> zero_ns = {};
  };
  /// Nothing happens while another one is under way.
  void start(Order order);
  /// Ends it within seconds: what has arrived is in the file, or it says that it was catching up. Nothing
  /// where none is under way.
  void stop();

  struct State {
    bool running = false;
    /// The file was closed, or never made: until the collector has answered a file that was there is left,
    /// and from then on it is gone, also where the copy fails.
    bool done = false;
    std::string target;
    std::uint64_t bytes = 0;   ///< of the file and its log beside it
    std::uint64_t events = 0;  ///< that were handed to the file
    /// Chunks and messages: that the collector did not have any more, as its note in the file counts them;
    /// and that could not be read when they came.
    std::uint64_t missing_pieces = 0, damaged_pieces = 0;
    /// Its first event, in the run's time; nothing: none has arrived, or that time is not known.
    std::optional<double> since_s;
    bool catching_up = false;  ///< what happened before is not in the file yet, or never will be
    std::string why_ended;     ///< "it was stopped", "the connection was lost", ...
    std::string problem;       ///< why it failed: path, reason
  };
  [[nodiscard]] State state() const;
  /// What the window says of it in one line; empty: there has been none. `brief`: the file without its
  /// folder, so that the figures behind it are seen.
  [[nodiscard]] std::string line(bool brief = false) const;

 private:
  class Copier;
  void run(const Order& order);
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::condition_variable wake_;  ///< for the thread: stop()
  State state_;
  std::thread thread_;
};

}  // namespace shardscope::gui
