#include "runtime/comm/mpi/mpi_transport.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/ops.h"
#include "runtime/comm/mpi/session.h"
#include "runtime/device/error.h"

namespace shardscope::comm {
namespace {

using instrumentation::CollectiveOp;

/// Bytes held while other ranks' values wait to be summed, all ranks together.
constexpr std::size_t kScratchBytes = std::size_t{4} << 20;
/// Maximum of in-place gathers in flight: enough to fill the network, few enough for MPI's matching queues.
constexpr std::size_t kGathersAtOnce = 32;

/// Compared by the ranks before a host call; contains small values inline.
struct HostHead {
  std::array<char, 24> what{};  ///< zero-terminated; compared whole
  std::uint64_t bytes = 0;
  std::array<std::byte, 224> inline_data{};  ///< room for 28 doubles; the head is 256 bytes
};
static_assert(sizeof(HostHead) == 256);

MPI_Datatype mpi_type(kernels::DType type) {
  // MPI only moves these values and never computes with them, so the size decides: no datatype for bf16 or
  // f16 is needed.
  switch (kernels::size_of(type)) {
    case 4:
      return MPI_UINT32_T;
    case 2:
      return MPI_UINT16_T;
    default:
      return MPI_BYTE;
  }
}

/// MPI's counts and offsets are int. Throws BackendError for more.
int count(std::int64_t elems) {
  if (elems > std::numeric_limits<int>::max()) {
    throw BackendError("MPI", 0,
                       "a part of " + std::to_string(elems) +
                           " elements is more than MPI counts (2147483647); use "
                           "smaller buckets",
                       "comm/mpi");
  }
  return static_cast<int>(elems);
}

/// Start of a range that may lie beyond the last element.
std::int64_t within(std::int64_t elems, std::int64_t at) { return std::min(elems, at); }

}  // namespace

// Requests of a wait that threw still point here, so it is then leaked until the process ends.
struct MpiTransport::Scratch {
  std::vector<Signature> signatures;
  Signature signature;
  std::vector<std::byte> values;
  std::vector<const void*> inputs;
  std::vector<int> send_counts, send_offsets, receive_counts, receive_offsets;
  HostHead head;
  std::vector<HostHead> heads;
  std::vector<std::byte> host_in, host_out;
};

MpiTransport::MpiTransport(MpiLink& link, std::string name, std::vector<std::uint32_t> members)
    : link_(link),
      name_(std::move(name)),
      members_(std::move(members)),
      rank_(static_cast<std::uint32_t>(std::find(members_.begin(), members_.end(), link.rank()) -
                                       members_.begin())),
      scratch_(std::make_unique<Scratch>()) {
  // Two communicators: the host thread and the stream's worker issue collectives at the same time, and MPI
  // matches those of one communicator by their order.
  for (MPI_Comm* comm : {&stream_comm_, &host_comm_}) {
    // The first member names the group; ascending members keep their order.
    check_mpi(
        MPI_Comm_split(MPI_COMM_WORLD, static_cast<int>(members_.front()), static_cast<int>(rank_), comm),
        "MPI_Comm_split");
    MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
  }
  const std::size_t n = members_.size();
  scratch_->signatures.resize(n);
  scratch_->inputs.resize(n);
  scratch_->heads.resize(n);
  for (auto* counts : {&scratch_->send_counts, &scratch_->send_offsets, &scratch_->receive_counts,
                       &scratch_->receive_offsets}) {
    counts->resize(n);
  }
}

MpiTransport::~MpiTransport() {
  if (link_.failed()) {  // [Note: no MPI after a failure]
    static_cast<void>(scratch_.release());
    return;
  }
  MPI_Comm_free(&stream_comm_);
  MPI_Comm_free(&host_comm_);
}

void MpiTransport::wait(MPI_Request& request, const Collective& collective) {
  link_.wait({&request, 1}, [&] {
    return comm::describe(signature_of(collective, calls_ - 1)) + " on communicator '" + name_ + "'";
  });
}

/// Returns when all ranks have arrived: the all-gather of signatures completes only then.
void MpiTransport::enter(const Collective& collective) {
  // In scratch_ and not on the stack: after a wait that threw, MPI may still read it.
  scratch_->signature = signature_of(collective, calls_++);
  MPI_Request request = MPI_REQUEST_NULL;
  constexpr int kBytes = sizeof(Signature);
  check_mpi(MPI_Iallgather(&scratch_->signature, kBytes, MPI_BYTE, scratch_->signatures.data(), kBytes,
                           MPI_BYTE, stream_comm_, &request),
            "MPI_Iallgather");
  wait(request, collective);
  for (std::uint32_t r = 1; r < world(); ++r) {
    // Before any data moves: with other counts on some rank MPI would truncate, abort or wait.
    if (same(scratch_->signatures[0], scratch_->signatures[r])) continue;
    const std::string text =
        mismatch_text(name_, members_[0], scratch_->signatures[0], members_[r], scratch_->signatures[r]);
    link_.fail(text);
    throw BackendError(name_of(collective.op), 0, text, "rank " + std::to_string(link_.rank()));
  }
}

/// Between enter() and leave() the ranks are ordered by MPI's own matching: every rank makes the same calls
/// on stream_comm_ in the order of parts, and a wait ends when this rank's memory may be read and written
/// again.
void MpiTransport::move(const Collective& collective, const kernels::Exec& exec) {
  switch (collective.op) {
    case CollectiveOp::all_gather:
      all_gather(collective);
      break;
    case CollectiveOp::reduce_scatter:
      for (const Part& part : collective.parts) {
        reduce_scatter(collective, part, part.target, exec);
        // Elements of this rank's range that exist; the rest of the target, up to extent, is padding.
        const std::int64_t filled =
            within(part.elems, part.extent * (rank_ + 1)) - within(part.elems, part.extent * rank_);
        const std::size_t size = kernels::size_of(collective.type);
        std::memset(static_cast<std::byte*>(part.target) + static_cast<std::size_t>(filled) * size, 0,
                    static_cast<std::size_t>(part.extent - filled) * size);
      }
      break;
    case CollectiveOp::reduce:
      for (const Part& part : collective.parts) reduce(collective, part, exec);
      break;
    case CollectiveOp::all_reduce:
      for (const Part& part : collective.parts) all_reduce(collective, part, exec);
      break;
    case CollectiveOp::all_to_all:
      all_to_all(collective);
      break;
    case CollectiveOp::broadcast:
    case CollectiveOp::barrier:
    case CollectiveOp::send:
    case CollectiveOp::receive:
    case CollectiveOp::gather:
    case CollectiveOp::scatter:
      break;
  }
}

void MpiTransport::all_gather(const Collective& collective) {
  const MPI_Datatype type = mpi_type(collective.type);
  const std::size_t size = kernels::size_of(collective.type);
  // Gathers need no sum and no scratch, so several are in flight. All ranks issue them in the order of parts.
  std::vector<MPI_Request> requests;
  const auto wait_all = [&] {
    link_.wait(requests, [&] {
      return comm::describe(signature_of(collective, calls_ - 1)) + " on communicator '" + name_ + "'";
    });
    requests.clear();
  };
  for (const Part& part : collective.parts) {
    const int n = count(part.extent);
    if (n == 0) continue;
    // This rank's row of target (world, extent). A shard that is already there is not copied.
    const auto* place =
        static_cast<std::byte*>(part.target) + static_cast<std::size_t>(part.extent) * size * rank_;
    requests.push_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Iallgather(part.source == place ? MPI_IN_PLACE : part.source, n, type, part.target, n, type,
                             stream_comm_, &requests.back()),
              "MPI_Iallgather");
    if (requests.size() == kGathersAtOnce) wait_all();
  }
  wait_all();
}

/// source and target (world, extent); they do not overlap.
void MpiTransport::all_to_all(const Collective& collective) {
  const MPI_Datatype type = mpi_type(collective.type);
  for (const Part& part : collective.parts) {
    const int n = count(part.extent);
    if (n == 0) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ialltoall(part.source, n, type, part.target, n, type, stream_comm_, &request),
              "MPI_Ialltoall");
    wait(request, collective);
  }
}

/// out[i] = factor * sum over r of values[r * stride + i], i < elems: values (world, stride), rows in the
/// order of ranks.
void MpiTransport::sum(const Collective& collective, void* out, std::int64_t elems, std::int64_t stride,
                       const kernels::Exec& exec) {
  for (std::uint32_t r = 0; r < world(); ++r) {
    scratch_->inputs[r] =
        scratch_->values.data() + static_cast<std::size_t>(stride * r) * kernels::size_of(collective.type);
  }
  kernels::reduce_sum(exec, {out, collective.type}, scratch_->inputs.data(), world(), collective.type, elems,
                      collective.factor);
}

/// Chunk by chunk, so that scratch memory stays at kScratchBytes: every rank sends each owner its piece of
/// the chunk (MPI_Ialltoallv) and sums the `world` pieces that it receives, in the order of ranks. The sum is
/// ours and not MPI_Reduce_scatter's, whose order is not fixed. values [world, stride], row r from rank r.
void MpiTransport::reduce_scatter(const Collective& collective, const Part& part, void* out,
                                  const kernels::Exec& exec) {
  const MPI_Datatype type = mpi_type(collective.type);
  const std::size_t size = kernels::size_of(collective.type);
  const std::int64_t n = world();
  // Called for its exception: a part of more than 2^31 - 1 elements throws on every rank.
  static_cast<void>(count(part.elems));  // offsets below are counted in elements too
  const std::int64_t chunk = std::max<std::int64_t>(static_cast<std::int64_t>(kScratchBytes / size) / n, 1);
  scratch_->values.resize(static_cast<std::size_t>(std::min(chunk, part.extent) * n) * size);
  // Constant over the chunks, so rows of a short last chunk begin where those of the others did.
  const std::int64_t stride = std::min(chunk, part.extent);
  // Elements of this rank's range that exist. `mine` below is that of the chunk, and 0 where it is all
  // padding.
  const std::int64_t own =
      within(part.elems, part.extent * (rank_ + 1)) - within(part.elems, part.extent * rank_);
  // Every rank makes the same number of exchanges, also those that receive nothing: they are collective.
  // `out` may be this rank's row of the source: row [at, at + chunk) of it has been sent when its sum is
  // stored, and no later chunk reads it.
  for (std::int64_t at = 0; at < part.extent; at += chunk) {
    const int mine = count(std::clamp<std::int64_t>(own - at, 0, chunk));
    for (std::int64_t r = 0; r < n; ++r) {
      const auto i = static_cast<std::size_t>(r);
      const std::int64_t begin = within(part.elems, part.extent * r + at);
      // Elements [begin, end) of the source: rank r's part of this chunk, not beyond its range nor the last
      // element.
      const std::int64_t end =
          within(part.elems, std::min(part.extent * (r + 1), part.extent * r + at + chunk));
      // Sent straight from the source; only what is received needs scratch.
      scratch_->send_counts[i] = count(end - begin);
      scratch_->send_offsets[i] = count(begin);
      scratch_->receive_counts[i] = mine;
      scratch_->receive_offsets[i] = count(stride * r);
    }
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ialltoallv(part.source, scratch_->send_counts.data(), scratch_->send_offsets.data(), type,
                             scratch_->values.data(), scratch_->receive_counts.data(),
                             scratch_->receive_offsets.data(), type, stream_comm_, &request),
              "MPI_Ialltoallv");
    wait(request, collective);
    if (mine > 0) {
      sum(collective, static_cast<std::byte*>(out) + static_cast<std::size_t>(at) * size, mine, stride, exec);
    }
  }
}

/// Like reduce_scatter with one owner. values [world, elems] at the root.
void MpiTransport::reduce(const Collective& collective, const Part& part, const kernels::Exec& exec) {
  const MPI_Datatype type = mpi_type(collective.type);
  const std::size_t size = kernels::size_of(collective.type);
  const std::int64_t n = world();
  const std::int64_t chunk = std::max<std::int64_t>(static_cast<std::int64_t>(kScratchBytes / size) / n, 1);
  // Only the root holds and sums; the others send their chunk and go on to the next.
  const bool is_root = part.root == rank_;
  const std::int64_t stride = std::min(chunk, part.elems);
  // kScratchBytes of all ranks together, at the root; at least one element of each.
  if (is_root) scratch_->values.resize(static_cast<std::size_t>(stride * n) * size);
  for (std::int64_t at = 0; at < part.elems; at += chunk) {
    const std::int64_t elems = std::min(chunk, part.elems - at);
    const std::size_t offset = static_cast<std::size_t>(at) * size;
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Igather(static_cast<const std::byte*>(part.source) + offset, count(elems), type,
                          scratch_->values.data(), count(elems), type, static_cast<int>(part.root),
                          stream_comm_, &request),
              "MPI_Igather");
    wait(request, collective);
    // Rows are `elems` long here: MPI_Igather packs them. target may be source, whose piece has been sent by
    // now.
    if (is_root) sum(collective, static_cast<std::byte*>(part.target) + offset, elems, elems, exec);
  }
}

/// Reduce-scatter into this rank's range of `data`, then an in-place all-gather of the ranges; the last may
/// be shorter.
void MpiTransport::all_reduce(const Collective& collective, const Part& part, const kernels::Exec& exec) {
  const std::size_t size = kernels::size_of(collective.type);
  auto* data = static_cast<std::byte*>(part.target);
  const auto begin_of = [&](std::int64_t r) { return within(part.elems, part.extent * r); };
  reduce_scatter(collective, part, data + static_cast<std::size_t>(begin_of(rank_)) * size, exec);
  for (std::int64_t r = 0; r < world(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    // Ranges beyond the last element are empty, with their offset at its end.
    scratch_->receive_offsets[i] = count(begin_of(r));
    scratch_->receive_counts[i] = count(begin_of(r + 1) - begin_of(r));
  }
  MPI_Request request = MPI_REQUEST_NULL;
  const MPI_Datatype type = mpi_type(collective.type);
  // Only sums are passed on, as bits: all ranks hold the same ones.
  check_mpi(MPI_Iallgatherv(MPI_IN_PLACE, 0, type, data, scratch_->receive_counts.data(),
                            scratch_->receive_offsets.data(), type, stream_comm_, &request),
            "MPI_Iallgatherv");
  wait(request, collective);
}

// ---- host side -------------------------------------------------------------------------------------------

void MpiTransport::wait_host(MPI_Request& request, const char* what) {
  link_.wait({&request, 1}, [&] { return std::string(what) + " on communicator '" + name_ + "'"; });
}

/// all (world, mine.size()) bytes, row r from member r. Everything that MPI reads or writes is in scratch_,
/// never the caller's memory: a wait that throws leaves its requests behind.
void MpiTransport::host_all_gather(const char* what, std::span<const std::byte> mine,
                                   std::span<std::byte> all) {
  Scratch& s = *scratch_;
  link_.check_failure();
  // Zeroes the inline bytes that no value fills, so that no old value is sent.
  s.head = HostHead{};
  std::strncpy(s.head.what.data(), what, s.head.what.size() - 1);
  s.head.bytes = mine.size();
  // Small values are sent with the compared lengths: one exchange instead of two.
  const bool fits = mine.size() <= s.head.inline_data.size();
  if (fits) std::copy(mine.begin(), mine.end(), s.head.inline_data.begin());
  MPI_Request request = MPI_REQUEST_NULL;
  constexpr int kBytes = sizeof(HostHead);
  check_mpi(MPI_Iallgather(&s.head, kBytes, MPI_BYTE, s.heads.data(), kBytes, MPI_BYTE, host_comm_, &request),
            "MPI_Iallgather");
  wait_host(request, what);
  for (std::uint32_t r = 1; r < world(); ++r) {
    // Compared before the second exchange, whose counts must agree on all ranks.
    if (s.heads[r].what == s.heads[0].what && s.heads[r].bytes == s.heads[0].bytes) continue;
    const std::string text = host_mismatch_text(name_, members_[0], s.heads[0].what.data(), s.heads[0].bytes,
                                                members_[r], s.heads[r].what.data(), s.heads[r].bytes);
    link_.fail(text);
    throw BackendError(what, 0, text, "rank " + std::to_string(link_.rank()));
  }
  if (fits) {
    for (std::uint32_t r = 0; r < world(); ++r) {
      std::copy_n(s.heads[r].inline_data.begin(), mine.size(),
                  all.begin() + static_cast<std::ptrdiff_t>(r * mine.size()));
    }
    return;
  }
  s.host_out.assign(mine.begin(), mine.end());
  s.host_in.resize(all.size());
  const int bytes = count(static_cast<std::int64_t>(mine.size()));
  check_mpi(MPI_Iallgather(s.host_out.data(), bytes, MPI_BYTE, s.host_in.data(), bytes, MPI_BYTE, host_comm_,
                           &request),
            "MPI_Iallgather");
  wait_host(request, what);
  std::copy(s.host_in.begin(), s.host_in.end(), all.begin());
}

void MpiTransport::host_broadcast(std::span<std::byte> bytes, std::uint32_t root) {
  // A separate exchange compares the length; the values are not used.
  const std::string what = "broadcast from " + std::to_string(root);
  const std::uint64_t size = bytes.size();
  std::vector<std::uint64_t> sizes(world());
  host_all_gather(what.c_str(), std::as_bytes(std::span(&size, 1)), std::as_writable_bytes(std::span(sizes)));
  for (std::uint32_t r = 1; r < world(); ++r) {
    if (sizes[r] == sizes[0]) continue;
    const std::string text =
        host_mismatch_text(name_, members_[0], what.c_str(), sizes[0], members_[r], what.c_str(), sizes[r]);
    link_.fail(text);
    throw BackendError(what, 0, text, "rank " + std::to_string(link_.rank()));
  }
  Scratch& s = *scratch_;
  // The data on the root; on the others a buffer of that size.
  s.host_in.assign(bytes.begin(), bytes.end());
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibcast(s.host_in.data(), count(static_cast<std::int64_t>(bytes.size())), MPI_BYTE,
                       static_cast<int>(root), host_comm_, &request),
            "MPI_Ibcast");
  wait_host(request, what.c_str());
  std::copy(s.host_in.begin(), s.host_in.end(), bytes.begin());
}

}  // namespace shardscope::comm
