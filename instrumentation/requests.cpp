#include "instrumentation/requests.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include "instrumentation/sockets.h"
#include "instrumentation/wire.h"

namespace shardscope::instrumentation {

const char* answer_prefix(Request request) noexcept {
  switch (request) {
    case Request::stacks:
      return "stacks: ";
  }
  return "";
}

std::string cut_note(std::size_t bytes) {
  return "\n(cut: the whole answer has " + std::to_string(bytes) + " bytes)";
}

namespace {
std::mutex g_answer_mutex;
Requests::Answer g_answer;  // guarded by g_answer_mutex

Requests::Answer present_answer() {
  const std::lock_guard lock(g_answer_mutex);
  return g_answer;
}
}  // namespace

void Requests::set_answer(Answer answer) {
  const std::lock_guard lock(g_answer_mutex);
  g_answer = std::move(answer);
}

void Requests::ask(Request request) {
  std::string failure;
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    asked_ = true;
    request_ = request;
    if (!thread_.joinable()) {
      try {
        const BlockSignals blocked;
        thread_ = std::thread([this] { run(); });
      } catch (const std::system_error& error) {  // a limit on processes must not end a training
        asked_ = false;
        failure = error.what();
      }
    }
  }
  if (!failure.empty()) {
    post_(Severity::warning,
          std::string(answer_prefix(request)) + "none: no thread could be made: " + failure);
    return;
  }
  wake_.notify_one();
}

void Requests::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Requests::run() {
  pthread_setname_np(pthread_self(), "observe-answer");
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return asked_ || stop_; });
    if (stop_) return;
    asked_ = false;
    const Request request = request_;
    lock.unlock();
    const Answer answer = present_answer();
    std::string text = answer_prefix(request);
    Severity severity = Severity::info;
    try {
      text += answer ? answer(request) : "none: this program has no function that answers requests";
    } catch (const std::exception& error) {
      text += std::string("none: ") + error.what();
      severity = Severity::warning;
    }
    if (text.size() > wire::kMaxText) {
      const std::string note = cut_note(text.size());
      text.resize(wire::kMaxText - note.size());
      text += note;
    }
    post_(severity, std::move(text));
    lock.lock();
  }
}

}  // namespace shardscope::instrumentation
