#include "runtime/train/native_stacks.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/train/own_symbols.h"

namespace shardscope::train {
namespace {

// [Note: stacks without deadlocks]
// The handler runs in a thread that may hold any lock: of malloc, of the loader, ours. So it takes none: it
// calls backtrace() (library loaded by prepare_native_stacks(); since glibc 2.35 it finds unwinding data
// without a lock) into preallocated memory, and stores with atomics. Every wait for it is bounded. Threads
// are signalled one after the other and continue at once, so that locks they hold are released. A request is
// claimed by one handler, of the thread it is for, and only until it is withdrawn: a late handler touches
// neither the memory nor the next thread's request. A handler that has claimed its request is waited for
// before the next one, and until it ends no other thread is signalled.
constexpr int kMostFrames = 64;
constexpr auto kAnswer = std::chrono::milliseconds(100);

struct Slot {
  std::atomic<std::uint64_t> wanted{0};  ///< request: thread id in the low half; 0: none, or claimed
  std::atomic<std::uint64_t> answered{0};
  std::array<void*, kMostFrames> frames{};
  int depth = 0;
};
Slot g_slot;
std::atomic<bool> g_ready{false};

/// Not used by glibc, the debugger or NCCL.
int stack_signal() { return SIGRTMIN + 7; }

pid_t own_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

void on_signal(int) {
  const int error = errno;
  std::uint64_t question = g_slot.wanted.load();
  if (static_cast<pid_t>(question & 0xFFFFFFFFU) == own_thread() &&
      g_slot.wanted.compare_exchange_strong(question, 0)) {
    g_slot.depth = backtrace(g_slot.frames.data(), kMostFrames);
    g_slot.answered.store(question);
  }
  errno = error;
}

std::string line_of_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool blocks_signal(pid_t thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/status", thread));
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("SigBlk:", 0) != 0) continue;
    const std::uint64_t blocked = std::strtoull(line.c_str() + 7, nullptr, 16);
    return (blocked >> static_cast<unsigned>(stack_signal() - 1) & 1U) != 0;
  }
  return false;
}

/// Description of a thread that did not respond.
std::string without_answer(const std::filesystem::path& folder, const char* why) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return "it has ended meanwhile";
  const std::string where = line_of_file(folder / "wchan");
  return std::string(why) +
         // "0": it is in no kernel call, or this user may not read it.
         (where.empty() || where == "0" ? std::string() : "; in the kernel: " + where);
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         &std::free);
  std::string out = status == 0 && text ? text.get() : name;
  constexpr std::size_t kMost = 160;
  return out.size() <= kMost ? out : out.substr(0, kMost) + "...";
}

/// "shardscope::comm::Ring::wait() (zero_train+0x1234)".
std::string name_of(const OwnSymbols& own, const void* address, bool returns_here) {
  // A return address may be the first of the next function: the call is before it.
  const auto at = reinterpret_cast<std::uintptr_t>(address) - (returns_here ? 1 : 0);
  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<const void*>(at), &info) != 0 && info.dli_fname != nullptr;
  std::string where = known
                          ? fmt::format("{}+{:#x}", std::filesystem::path(info.dli_fname).filename().string(),
                                        at - reinterpret_cast<std::uintptr_t>(info.dli_fbase))
                          : fmt::format("{:#x}", at);
  std::string name = own.name_at(at);
  if (name.empty() && known && info.dli_sname != nullptr) name = info.dli_sname;
  return name.empty() ? where : fmt::format("{} ({})", demangled(name.c_str()), where);
}

bool is_answered(std::uint64_t question) {
  const auto end = std::chrono::steady_clock::now() + kAnswer;
  while (g_slot.answered.load() != question) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

/// Frames of `thread`; empty if it does not respond in time. nullopt if it was not signalled, since another
/// thread's handler, which uses the only slot, has not ended.
std::optional<std::vector<void*>> ask(pid_t thread, std::uint32_t number) {
  static std::uint64_t claimed = 0;  // by a handler that had not ended in time
  static bool waited_again = false;  // for that one: once, not for each thread
  if (claimed != 0 && g_slot.answered.load() != claimed && (waited_again || !is_answered(claimed))) {
    waited_again = true;
    return std::nullopt;
  }
  waited_again = false;
  claimed = 0;
  const std::uint64_t question = std::uint64_t{number} << 32U | static_cast<std::uint32_t>(thread);
  g_slot.wanted.store(question);
  if (syscall(SYS_tgkill, getpid(), thread, stack_signal()) != 0 || !is_answered(question)) {
    if (g_slot.wanted.exchange(0) == 0) claimed = question;
    return std::vector<void*>();
  }
  // The first two frames are the handler itself and the signal return.
  constexpr int kOfHandler = 2;
  // In parentheses: in braces the two would be elements.
  return std::vector<void*>(g_slot.frames.begin() + std::min(kOfHandler, g_slot.depth),
                            g_slot.frames.begin() + g_slot.depth);
}

std::vector<pid_t> threads() {
  std::vector<pid_t> out;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error))
    out.push_back(static_cast<pid_t>(std::atoi(entry.path().filename().c_str())));
  std::ranges::sort(out);  // the main thread's is the lowest
  return out;
}

}  // namespace

bool prepare_native_stacks() {
  if (g_ready) return true;
  struct sigaction before {};
  if (sigaction(stack_signal(), nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return false;
  std::array<void*, 4> frames{};
  (void)backtrace(frames.data(), static_cast<int>(frames.size()));  // loads what unwinds
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  g_ready = sigaction(stack_signal(), &action, nullptr) == 0;
  return g_ready;
}

std::string native_stacks() {
  static std::mutex one_at_a_time;
  static std::uint32_t number = 0;
  const std::lock_guard lock(one_at_a_time);
  if (!g_ready) return "none: the signal that asks the threads is in use";
  const OwnSymbols own;
  const std::vector<pid_t> all = threads();
  std::string out = fmt::format("{} threads, the innermost call of each first", all.size() - 1);
  for (const pid_t thread : all) {
    if (thread == own_thread()) continue;
    const std::filesystem::path folder = fmt::format("/proc/self/task/{}", thread);
    out += fmt::format("\nthread {} ({}):", thread == getpid() ? "main" : std::to_string(thread),
                       line_of_file(folder / "comm"));
    const bool blocked = blocks_signal(thread);
    const std::optional<std::vector<void*>> answer = blocked ? std::vector<void*>() : ask(thread, ++number);
    const std::vector<void*> frames = answer.value_or(std::vector<void*>());
    for (std::size_t i = 0; i < frames.size(); ++i) out += "\n  " + name_of(own, frames[i], i > 0);
    if (frames.empty())
      out +=
          "\n  " + without_answer(folder, blocked  ? "it blocks the signal that asks"
                                          : answer ? "it does not answer"
                                                   : "it was not asked: another thread is still answering");
  }
  return out;
}

}  // namespace shardscope::train
