#include "runtime/comm/mpi/mpi_link.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "runtime/comm/mpi/session.h"
#include "runtime/device/error.h"

namespace shardscope::comm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kFailureTag = 1;
constexpr std::size_t kLongestText = 2000;  // below the eager limit: sent without the receiver's help

void nap(std::int64_t ns) {
  const timespec time{0, static_cast<long>(ns)};
  nanosleep(&time, nullptr);
}

}  // namespace

MpiLink::MpiLink(std::uint32_t rank, std::uint32_t size, std::chrono::milliseconds timeout)
    : rank_(rank), size_(size), timeout_(timeout) {
  // Collective over all ranks. A separate communicator, so that no receive of a collective can match a notice
  // of failure.
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &failures_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(failures_, MPI_ERRORS_RETURN);
}

MpiLink::~MpiLink() {
  // [Note: no MPI after a failure]
  if (!failed()) MPI_Comm_free(&failures_);
}

/// Called by the host thread and the streams' workers at the same time, each with its own requests
/// (MPI_THREAD_MULTIPLE). The bound is on this wait, not on one request.
void MpiLink::wait(std::span<MPI_Request> requests, const std::function<std::string()>& what) {
  if (requests.empty()) return;
  check_failure();
  const Clock::time_point deadline = Clock::now() + timeout_;
  // MPI makes progress only inside its calls. Short sleeps at first, then longer ones, to leave the cores to
  // computing threads. 10, 20, 40 ... 300 microseconds: the delay of a wait's end stays proportional to its
  // length.
  std::int64_t nap_ns = 10'000;
  for (;;) {
    int done = 0;
    check_mpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
    if (done != 0) return;
    check_failure();
    if (Clock::now() >= deadline) {
      // Sent before the exception, so that the other ranks end with this text instead of their own time-outs.
      fail(what() + " was not joined by every rank within " + std::to_string(timeout_.count()) +
           " ms; a rank is gone, much slower, or runs other modules");
      throw BackendError("collective", 0, first_failure(), "rank " + std::to_string(rank_));
    }
    nap(nap_ns);
    nap_ns = std::min<std::int64_t>(nap_ns * 2, 300'000);
  }
}

void MpiLink::check_failure() {
  if (!failed()) {
    int there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    // A matched probe: several threads may probe, one receives.
    check_mpi(MPI_Improbe(MPI_ANY_SOURCE, kFailureTag, failures_, &there, &message, &status), "MPI_Improbe");
    if (there == 0) return;
    int length = 0;
    // The text has no terminating zero; its length is the message's.
    MPI_Get_count(&status, MPI_CHAR, &length);
    std::string text(static_cast<std::size_t>(length), '\0');
    MPI_Mrecv(text.data(), length, MPI_CHAR, &message, &status);
    record(text);
  }
  throw BackendError("collective", 0, first_failure(), "rank " + std::to_string(rank_));
}

void MpiLink::abandon() noexcept {
  if (failed()) return;  // reported already, perhaps by another communicator of this rank
  const std::string text =
      "rank " + std::to_string(rank_) + " failed: it was left by an exception, see its own message";
  // Another thread may have recorded a failure since the check above: only one of them sends.
  if (!record(text)) return;
  {
    const std::lock_guard lock(mutex_);
    provisional_ = true;
  }
  send_to_all(text);
}

/// The text is written before `failed_` is stored with release, both under the mutex: a thread that finds
/// failed() set finds a text in first_failure().
bool MpiLink::record(const std::string& text) noexcept {
  const std::lock_guard lock(mutex_);
  if (failed_.load()) {
    // The reason that follows abandon(), for this process only: the other ranks have received it already.
    if (std::exchange(provisional_, false)) first_failure_ = text;
    return false;
  }
  first_failure_ = text;
  failed_.store(true, std::memory_order_release);
  return true;
}

void MpiLink::fail(const std::string& message) noexcept {
  const std::string text = "rank " + std::to_string(rank_) + " failed: " + message.substr(0, kLongestText);
  if (record(text)) send_to_all(text);
}

void MpiLink::send_to_all(const std::string& text) noexcept {
  std::vector<MPI_Request> sends;
  for (std::uint32_t r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    sends.emplace_back();
    // `text` is the caller's and outlives the loop below. A send that is then incomplete is abandoned: its
    // memory is freed, so no MPI call may follow.
    MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_CHAR, static_cast<int>(r), kFailureTag,
              failures_, &sends.back());
  }
  // One second at most: a failed rank receives nothing.
  int done = 0;
  for (int i = 0; i < 1000 && done == 0; ++i) {
    if (MPI_Testall(static_cast<int>(sends.size()), sends.data(), &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
      return;
    if (done == 0) nap(1'000'000);
  }
}

std::string MpiLink::first_failure() const {
  const std::lock_guard lock(mutex_);
  return first_failure_;
}

}  // namespace shardscope::comm
