#include "requests.h"

#include <Python.h>
#include <dlfcn.h>
#include <nanobind/stl/string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>

namespace nb = nanobind;

namespace shardscope::python {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

/// Afterwards the answering thread is assumed to have ended or to get no CPU time.
constexpr seconds kNoAnswerAfter{30};
/// A thread that runs Python code releases the GIL after 5 ms; a longer wait is for native code. Counted in
/// waits of this thread, not in time: a stopped process does not wait.
constexpr std::chrono::milliseconds kWait{100};
constexpr int kGilHeldAfter = 30;  ///< waits

/// Between the library's thread, which asks, and Python's, which answers. Never destroyed: threads may use it
/// while the process exits.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  bool closed = false, asked = false, answered = false;
  std::uint64_t ticket = 0;
  bool is_taken = false;  ///< Python's thread has taken this request and waits for the GIL
  std::string answer;
};
Mailbox& mailbox() {
  static auto* const box = new Mailbox;
  return *box;
}

PyInterpreterState* g_interpreter = nullptr;

/// Every thread's frames, read without the GIL: only while native code holds it, so that no frame changes.
std::string frames_without_gil() {
  using Dump = const char* (*)(int, PyInterpreterState*, PyThreadState*);
  const auto dump = reinterpret_cast<Dump>(dlsym(RTLD_DEFAULT, "_Py_DumpTracebackThreads"));
  std::string text = "native code holds the GIL";
  if (dump == nullptr) return text + "; this Python has no way to read frames without it";
  const int file = memfd_create("shardscope-stacks", MFD_CLOEXEC);
  if (file < 0) return text + "; no memory for the frames";
  const char* wrong = dump(file, g_interpreter, nullptr);
  text += wrong != nullptr ? std::string(": ") + wrong : ", the innermost call of each thread first\n";
  (void)lseek(file, 0, SEEK_SET);
  char part[4096];
  for (ssize_t got = 0; (got = read(file, part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  (void)close(file);
  return text;
}

std::size_t on_request(void*, std::int32_t, char* text, std::size_t capacity) {
  Mailbox& box = mailbox();
  std::unique_lock lock(box.mutex);
  box.asked = true;
  box.answered = box.is_taken = false;
  const std::uint64_t ticket = ++box.ticket;
  box.changed.notify_all();
  const auto asked = Clock::now();
  int waits = 0;  // while Python's thread waits for the GIL
  std::string words;
  while (words.empty()) {
    box.changed.wait_for(lock, kWait, [&] { return box.closed || (box.answered && box.ticket == ticket); });
    waits = box.is_taken ? waits + 1 : 0;
    if (box.answered) {
      words = box.answer;
    } else if (box.closed) {
      words = "none: the recording of this process has ended";
    } else if (waits > kGilHeldAfter) {
      lock.unlock();
      words = frames_without_gil();
      lock.lock();
    } else if (Clock::now() - asked > kNoAnswerAfter) {
      words = "none: the answering thread did not run within 30 s";
    }
  }
  box.asked = false;
  std::memcpy(text, words.data(), std::min(capacity, words.size()));
  return words.size();
}

/// Waits for a request, without the GIL; returns its number, or None if there will be no more. No object with
/// a destructor may exist where the GIL is acquired again: at the interpreter's exit CPython 3.11 ends the
/// thread there.
nb::object next_request() {
  std::uint64_t ticket = 0;
  PyThreadState* const saved = PyEval_SaveThread();
  {
    Mailbox& box = mailbox();
    std::unique_lock lock(box.mutex);
    box.changed.wait(lock, [&] { return box.closed || (box.asked && !box.is_taken); });
    if (!box.closed) {
      box.is_taken = true;
      ticket = box.ticket;
    }
  }
  PyEval_RestoreThread(saved);
  return ticket == 0 ? nb::none() : nb::object(nb::int_(ticket));
}

void answer(std::uint64_t ticket, const std::string& text) {
  Mailbox& box = mailbox();
  const std::lock_guard lock(box.mutex);
  if (ticket != box.ticket || !box.asked) return;  // answered without the GIL meanwhile
  box.answer = text.empty() ? "none" : text;
  box.answered = true;
  box.changed.notify_all();
}

void end_requests() {
  Mailbox& box = mailbox();
  const std::lock_guard lock(box.mutex);
  box.closed = true;
  box.changed.notify_all();
}

}  // namespace

void answer_requests_of(shardscope_run* run) {
  g_interpreter = PyInterpreterState_Get();
  {
    const std::lock_guard lock(mailbox().mutex);
    mailbox().closed = mailbox().asked = false;
  }
  if (shardscope_set_on_request(run, &on_request, nullptr) != SHARDSCOPE_OK)
    throw nb::value_error(shardscope_last_error());
}

void add_requests(nb::module_& module) {
  module.def("next_request", &next_request);
  module.def("answer", &answer);
  module.def("end_requests", &end_requests);
}

}  // namespace shardscope::python
