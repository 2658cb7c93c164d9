// An export from the window: on a thread of its own, through a reader of its own, so that no frame waits.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "app/store/recording.h"

namespace shardscope::gui {

enum class ExportFormat : std::uint8_t { report, csv, chrome, perfetto, sqlite, kineto };
/// "report", ".html": what a file of it is called.
[[nodiscard]] const char* word(ExportFormat format) noexcept;
[[nodiscard]] const char* ending(ExportFormat format) noexcept;

/// Throws std::runtime_error where a recording would be replaced.
void refuse_target(const std::string& path);
/// A small file, whole or not at all. Throws std::runtime_error: path, reason.
void write_whole(const std::string& path, const std::string& text);

class ExportJob {
 public:
  ExportJob() = default;
  ~ExportJob();  ///< waits for one that is under way
  ExportJob(const ExportJob&) = delete;
  ExportJob& operator=(const ExportJob&) = delete;
  struct Order {
    ExportFormat format{};
    std::string recording, target;
    std::string other = {};  ///< report: the run that it is compared with
    std::optional<std::pair<std::int64_t, std::int64_t>> range_ns = {};  ///< not report, Kineto: only that
    std::optional<std::pair<std::uint32_t, std::uint32_t>> steps = {};   ///< Kineto: first and last
  };
  /// Nothing happens while another one is under way.
  void start(Order order);
  /// Ends it soon; what was there at its target stays.
  void cancel() { cancelled_ = true; }
  struct State {
    bool running = false;
    bool done = false;
    std::string what;     ///< "reading the recording", "writing report.html"
    std::string problem;  ///< why it failed
    std::string target;
    double seconds = 0;
    double share = 0;  ///< of the spans that are written; 0 where it is not known
    bool cancelled = false;
  };
  [[nodiscard]] State state() const;

 private:
  void run(const Order& order);
  void write(const Order& order, const store::Store& store, const store::RecordingInfo& info);
  void report(const Order& order, const store::Store& store, const store::RecordingInfo& info);
  void say(std::string what);
  void go_on_or_end() const;  ///< throws once it was cancelled
  std::atomic<bool> cancelled_ = false;
  mutable std::mutex mutex_;
  State state_;
  std::chrono::steady_clock::time_point began_;
  std::thread thread_;
};

}  // namespace shardscope::gui
