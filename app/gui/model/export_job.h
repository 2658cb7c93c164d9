// Export from the window: a background thread with its own reader, so that drawing does not wait.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "app/analysis/digest.h"
#include "app/store/recording.h"

namespace shardscope::gui {

enum class ExportFormat : std::uint8_t { report, csv, chrome, perfetto, sqlite, kineto };
/// Name ("report") and file extension (".html") of a format.
[[nodiscard]] const char* word(ExportFormat format) noexcept;
[[nodiscard]] const char* ending(ExportFormat format) noexcept;

/// Throws std::runtime_error if `path` is an existing recording.
void refuse_target(const std::string& path);
/// Writes a small file atomically. Throws std::runtime_error: path, reason.
void write_whole(const std::string& path, const std::string& text);

class ExportJob {
 public:
  ExportJob() = default;
  ~ExportJob();  ///< waits for a running export
  ExportJob(const ExportJob&) = delete;
  ExportJob& operator=(const ExportJob&) = delete;
  struct Order {
    ExportFormat format{};
    std::string recording, target;
    bool live = false;          ///< `recording` is the endpoint of a live run, which is read as far as it is
    std::string key_file = {};  ///< for an endpoint that needs one
    std::string other = {};     ///< report: second run of a comparison
    std::optional<std::pair<std::int64_t, std::int64_t>> range_ns = {};  ///< not for report, Kineto
    std::optional<std::pair<std::uint32_t, std::uint32_t>> steps = {};   ///< Kineto: first and last step
  };
  /// No effect while an export is running.
  void start(Order order);
  /// Stops soon; an existing target is kept.
  void cancel() { cancelled_ = true; }
  struct State {
    bool running = false;
    bool done = false;
    std::string what;     ///< "reading the recording", "writing report.html"
    std::string problem;  ///< why it failed
    std::string target;
    double seconds = 0;
    double share = 0;  ///< written fraction of the spans; 0: unknown
    bool cancelled = false;
  };
  [[nodiscard]] State state() const;

 private:
  void run(const Order& order);
  store::Store read(const Order& order, store::RecordingInfo& info);
  /// The run so far, over a connection of its own: the window's own store may lack what it did not ask for.
  store::Store read_live(const Order& order, store::RecordingInfo& info);
  void write(const Order& order, const store::Store& store, const store::RecordingInfo& info);
  analysis::Digest digest(const store::Store& store, const char* of_what);
  void report(const Order& order, const store::Store& store, const store::RecordingInfo& info);
  void say(std::string what);
  void go_on_or_end() const;  ///< throws after cancel()
  std::atomic<bool> cancelled_ = false;
  mutable std::mutex mutex_;
  State state_;
  std::chrono::steady_clock::time_point began_;
  std::thread thread_;
};

}  // namespace shardscope::gui
