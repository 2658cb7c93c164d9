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

constexpr seconds kUnheard{30};  ///< the thread that answers is not there, or the machine is at its limit
/// Who waits so long for Python's lock waits for native code: a thread in Python's own code would have let go
/// of it after 5 ms.
constexpr seconds kLockIsHeld{3};

/// Between the library's thread, which asks, and Python's, which answers. Never destroyed: threads may be in
/// it when the process ends.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  bool closed = false, asked = false, answered = false;
  std::uint64_t ticket = 0;
  Clock::time_point taken{};  ///< since when Python's thread waits for the lock, with this request
  bool is_taken = false;
  std::string answer;
};
Mailbox& mailbox() {
  static auto* const box = new Mailbox;
  return *box;
}

PyInterpreterState* g_interpreter = nullptr;

/// Every thread's frames, read as they stand: for when a thread keeps Python's lock in native code, and no
/// frame moves.
std::string frames_without_the_lock() {
  using Dump = const char* (*)(int, PyInterpreterState*, PyThreadState*);
  const auto dump = reinterpret_cast<Dump>(dlsym(RTLD_DEFAULT, "_Py_DumpTracebackThreads"));
  std::string text = "native code keeps Python's lock";
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
  std::string words;
  while (words.empty()) {
    box.changed.wait_for(lock, std::chrono::milliseconds(100),
                         [&] { return box.closed || (box.answered && box.ticket == ticket); });
    const auto now = Clock::now();
    if (box.answered) {
      words = box.answer;
    } else if (box.closed) {
      words = "none: the recording of this process has ended";
    } else if (box.is_taken && now - box.taken > kLockIsHeld) {
      lock.unlock();
      words = frames_without_the_lock();
      lock.lock();
    } else if (now - asked > kUnheard) {
      words = "none: the thread that answers did not come to it";
    }
  }
  box.asked = false;
  const std::size_t size = std::min(capacity, words.size());
  std::memcpy(text, words.data(), size);
  return size;
}

/// Waits for a request, without Python's lock; its number, or None once there will be no more. Nothing with a
/// destructor lives where the lock is taken again: at the interpreter's end CPython 3.11 ends the thread
/// there.
nb::object next_request() {
  std::uint64_t ticket = 0;
  PyThreadState* const saved = PyEval_SaveThread();
  {
    Mailbox& box = mailbox();
    std::unique_lock lock(box.mutex);
    box.changed.wait(lock, [&] { return box.closed || (box.asked && !box.is_taken); });
    if (!box.closed) {
      box.is_taken = true;
      box.taken = Clock::now();
      ticket = box.ticket;
    }
  }
  PyEval_RestoreThread(saved);
  return ticket == 0 ? nb::none() : nb::object(nb::int_(ticket));
}

void answer(std::uint64_t ticket, const std::string& text) {
  Mailbox& box = mailbox();
  const std::lock_guard lock(box.mutex);
  if (ticket != box.ticket || !box.asked) return;  // has been answered without the lock
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
