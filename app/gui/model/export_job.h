// An export from the window: on a thread of its own, through a reader of its own, so that no frame waits.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

namespace shardscope::gui {

enum class ExportFormat : std::uint8_t { report, csv, chrome, perfetto, sqlite };
/// "report", ".html": what a file of it is called.
[[nodiscard]] const char* word(ExportFormat format) noexcept;
[[nodiscard]] const char* ending(ExportFormat format) noexcept;

class ExportJob {
 public:
  ExportJob() = default;
  ~ExportJob();  ///< waits for one that is under way
  ExportJob(const ExportJob&) = delete;
  ExportJob& operator=(const ExportJob&) = delete;
  /// Nothing happens while another one is under way.
  void start(ExportFormat format, std::string recording, std::string target);
  struct State {
    bool running = false;
    bool done = false;
    std::string what;     ///< "reading the recording", "writing report.html"
    std::string problem;  ///< why it failed
    std::string target;
    double seconds = 0;
  };
  [[nodiscard]] State state() const;
  void forget();  ///< of one that is done

 private:
  void run(ExportFormat format, const std::string& recording, const std::string& target);
  void say(std::string what);
  mutable std::mutex mutex_;
  State state_;
  std::chrono::steady_clock::time_point began_;
  std::thread thread_;
};

}  // namespace shardscope::gui
