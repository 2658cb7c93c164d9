#include "runtime/comm/mpi/session.h"

#include <array>
#include <cstdlib>

#include "runtime/device/error.h"

namespace shardscope::comm {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw BackendError(call, code, std::string(text.data(), static_cast<std::size_t>(length)), "comm/mpi");
}

/// Checks environment variables of launchers, since asking MPI would initialise it.
bool launched_by_mpi() noexcept {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "MV2_COMM_WORLD_RANK",
                           "MPI_LOCALNRANKS", "SLURM_STEP_ID"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

MpiSession& MpiSession::instance(int* argc, char*** argv) {
  // Destroyed at the end of the process, after main has returned.
  static MpiSession session(argc, argv);
  return session;
}

MpiSession::MpiSession(int* argc, char*** argv) {
  int initialised = 0;
  MPI_Initialized(&initialised);
  int provided = MPI_THREAD_SINGLE;
  // If MPI was initialised outside this class it is used, but not finalized.
  if (initialised == 0) {
    check_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    owns_ = true;
  } else {
    MPI_Query_thread(&provided);
  }
  // Each stream's worker and the host thread are inside MPI at the same time.
  if (provided < MPI_THREAD_MULTIPLE) {
    throw BackendError(
        "MPI_Init_thread", provided,
        "this MPI does not allow calls from several threads at once (MPI_THREAD_MULTIPLE), which "
        "overlapped communication needs; use a build with thread support",
        "comm/mpi");
  }
  // The default handler ends the process; with this one calls return a code, which check_mpi() throws.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0;
  int size = 1;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  rank_ = static_cast<std::uint32_t>(rank);
  size_ = static_cast<std::uint32_t>(size);
  MPI_Comm node = MPI_COMM_NULL;
  // Ranks that can share memory: one communicator per node.
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node),
            "MPI_Comm_split_type");
  int local = 1;
  MPI_Comm_size(node, &local);
  MPI_Comm_free(&node);
  // The smallest node decides: every rank must choose the same transport.
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &local, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
  ranks_per_node_ = static_cast<std::uint32_t>(local);
}

MpiSession::~MpiSession() {
  int finalised = 0;
  MPI_Finalized(&finalised);
  // Without MPI_Finalize the launcher sees this process end and ends the others.
  if (owns_ && finalised == 0 && !abandoned_) MPI_Finalize();
}

/// Blocks without a bound; used only before there is a link to bound it.
void MpiBootstrap::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const int bytes = static_cast<int>(mine.size());
  check_mpi(MPI_Allgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, MPI_COMM_WORLD),
            "MPI_Allgather");
}

}  // namespace shardscope::comm
