// Viewers' requests to a running rank, answered by a function of the program on a separate thread, so that a
// slow answer delays neither clocks nor commands nor the training.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "instrumentation/event.h"

namespace shardscope::instrumentation {

enum class Request : std::uint8_t {
  stacks  ///< the stack of every thread
};

/// Prefix of an answer's text, to find it among a run's messages.
[[nodiscard]] const char* answer_prefix(Request request) noexcept;

/// The last line of an answer that was truncated to the size of a message.
[[nodiscard]] std::string cut_note(std::size_t bytes);

class Requests {
 public:
  using Answer = std::function<std::string(Request)>;
  using Post = std::function<void(Severity, std::string text)>;
  explicit Requests(Post post) : post_(std::move(post)) {}
  ~Requests() { stop(); }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  /// Answers requests from now on, for every publisher of this process. Empty: requests are answered with
  /// "none".
  static void set_answer(Answer answer);
  /// Never waits. While a request is being answered the next one waits; a further one replaces it, because it
  /// would say the same.
  void ask(Request request);
  /// Waits for the answer in progress; later requests are not answered.
  void stop();

 private:
  void run();

  Post post_;
  std::mutex mutex_;  // everything below
  std::condition_variable wake_;
  bool asked_ = false, stop_ = false;
  Request request_{};
  std::thread thread_;  ///< started by the first request
};

}  // namespace shardscope::instrumentation
