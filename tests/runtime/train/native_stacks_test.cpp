// Stacks of threads that wait, that allocate all the time, and that take no signal.
#include "runtime/train/native_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace shardscope::train {

using namespace std::chrono_literals;

std::mutex g_mutex;
std::condition_variable g_wake;
std::atomic<bool> g_over{false};
std::atomic<int> g_there{0};

// Of the names that are looked for.
[[gnu::noinline]] void waits_for_its_turn() {
  std::unique_lock lock(g_mutex);
  ++g_there;
  g_wake.wait(lock, [] { return g_over.load(); });
  lock.unlock();
  g_there.fetch_sub(1);  // the wait is not its last call
}

[[gnu::noinline]] void allocates_all_the_time() {
  ++g_there;
  while (!g_over) {
    std::vector<std::unique_ptr<std::string>> some;
    for (int i = 0; i < 20; ++i) some.push_back(std::make_unique<std::string>(200, 'x'));
  }
  g_there.fetch_sub(1);
}

void takes_no_signal() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  pthread_setname_np(pthread_self(), "all-blocked");
  waits_for_its_turn();
}

TEST(NativeStacks, ASignalThatIsInUseIsLeftAloneAndSaid) {
  const auto own = [](int) {};
  struct sigaction before {};
  struct sigaction used {};
  used.sa_handler = own;
  ASSERT_EQ(sigaction(SIGRTMIN + 7, &used, &before), 0);
  EXPECT_FALSE(prepare_native_stacks());
  struct sigaction now {};
  ASSERT_EQ(sigaction(SIGRTMIN + 7, &before, &now), 0);
  EXPECT_EQ(now.sa_handler, static_cast<void (*)(int)>(own));
  EXPECT_EQ(native_stacks(), "none: the signal that asks the threads is in use");
}

TEST(NativeStacks, NameWhatThreadsDoAndNeverWaitForLong) {
  ASSERT_TRUE(prepare_native_stacks());
  EXPECT_TRUE(prepare_native_stacks()) << "a second training in one process";
  std::vector<std::thread> threads;
  threads.emplace_back(waits_for_its_turn);
  threads.emplace_back(takes_no_signal);
  for (int i = 0; i < 2; ++i) threads.emplace_back(allocates_all_the_time);
  while (g_there < 4) std::this_thread::sleep_for(1ms);
  std::string text;
  const auto ask = [&] {
    // As the runtime does: by a thread of its own, so that the main one is asked too.
    std::thread answer([&] { text = native_stacks(); });
    answer.join();
  };
  for (int i = 0; i < 50; ++i) ask();
  EXPECT_THAT(text, testing::HasSubstr("5 threads"));
  EXPECT_THAT(text, testing::HasSubstr("thread main"));
  EXPECT_THAT(text, testing::HasSubstr("shardscope::train::waits_for_its_turn()"));
  EXPECT_THAT(text, testing::HasSubstr("shardscope::train::allocates_all_the_time()"));
  EXPECT_THAT(text, testing::ContainsRegex("all-blocked.:\n  it blocks the signal that asks"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("kernel: 0\n")));
  {
    const std::lock_guard lock(g_mutex);
    g_over = true;
  }
  g_wake.notify_all();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace shardscope::train
