// What viewers ask of a running rank, and who answers: a function of the program, on a thread of its own, so
// that an answer that takes its time holds up neither clocks nor commands nor the training.
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
  stacks  ///< where every thread is
};

/// How the text of an answer begins, for who looks for it among a run's messages.
[[nodiscard]] const char* answer_prefix(Request request) noexcept;

/// The last line of an answer that a message has no room for.
[[nodiscard]] std::string cut_note(std::size_t bytes);

class Requests {
 public:
  using Answer = std::function<std::string(Request)>;
  using Post = std::function<void(Severity, std::string text)>;
  explicit Requests(Post post) : post_(std::move(post)) {}
  ~Requests() { stop(); }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  /// For requests that come from now on, of whatever publisher this process has. None: the answer is that
  /// there is none.
  static void set_answer(Answer answer);
  /// Never waits. While one is being answered the next waits, and a second of the same says no more: it is
  /// dropped.
  void ask(Request request);
  /// Waits for the answer that is being made; nothing is answered any more.
  void stop();

 private:
  void run();

  Post post_;
  std::mutex mutex_;  // everything below
  std::condition_variable wake_;
  bool asked_ = false, stop_ = false;
  Request request_{};
  std::thread thread_;  ///< from the first request on
};

}  // namespace shardscope::instrumentation
