// Launchers that meant several ranks where one was found (docs/zero.md P2).
#include "runtime/comm/launch_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace shardscope::comm {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string problem(const std::map<std::string, std::string>& variables, std::uint32_t found = 1) {
  const auto environment = [&](const char* name) -> const char* {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  };
  return launch_problem(environment, found).value_or("");
}

TEST(UnmetLaunch, NamesTheLauncherAndWhatToDo) {
  EXPECT_THAT(problem({{"OMPI_COMM_WORLD_SIZE", "4"}}),
              StartsWith("mpirun started this process as one of 4 ranks (OMPI_COMM_WORLD_SIZE=4), but"));
  EXPECT_THAT(problem({{"PMI_SIZE", "2"}}), HasSubstr("use Open MPI's own mpirun"));
  EXPECT_THAT(problem({{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "8"}}),
              StartsWith("srun started this process as one of 8 ranks (SLURM_NTASKS=8)"));
  EXPECT_THAT(problem({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_NTASKS", "8"}}),
              HasSubstr("SLURM_STEP_NUM_TASKS=3"));
  EXPECT_THAT(problem({{"WORLD_SIZE", "2"}}), HasSubstr("unset WORLD_SIZE"));
  EXPECT_THAT(problem({{"OMPI_COMM_WORLD_SIZE", "1"}, {"WORLD_SIZE", "2"}}), HasSubstr("torchrun"));
}

TEST(UnmetLaunch, IsNoneWhereOneRankIsMeantOrSeveralAreFound) {
  EXPECT_EQ(problem({}), "");
  EXPECT_EQ(problem({{"WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_SIZE", "1"}}), "");
  EXPECT_EQ(problem({{"WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, 4), "");
  EXPECT_EQ(problem({{"SLURM_NTASKS", "8"}}), "") << "an allocation, but no srun";
  EXPECT_EQ(problem({{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "1"}}), "");
  EXPECT_EQ(problem({{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "8"}, {"OMPI_COMM_WORLD_SIZE", "1"}}), "")
      << "mpirun -n 1 inside a step";
  for (const char* odd : {"", "four", "4x", "-4"}) EXPECT_EQ(problem({{"WORLD_SIZE", odd}}), "");
}

}  // namespace
}  // namespace shardscope::comm
