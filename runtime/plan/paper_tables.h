// The tables of the ZeRO and ZeRO-Infinity papers, computed from the closed forms of memory_model.h
// (docs/zero.md V8).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/memory_model.h"

namespace shardscope::plan {

/// ZeRO, Table 1: model states per GPU in GB (10^9 bytes), mixed precision with Adam, by degree of data
/// parallelism and model size. `bytes` are those of stages 1 (os), 2 (os+g) and 3 (os+g+p).
struct ZeroTable1Row {
  std::int64_t ranks = 1;
  std::vector<std::array<double, 3>> bytes;  ///< by model
};
struct ZeroTable1 {
  std::vector<double> params;  ///< by model
  std::vector<ZeroTable1Row> rows;
};
/// Throws std::invalid_argument on a size or degree below 1.
[[nodiscard]] ZeroTable1 zero_table1(const std::vector<double>& params = {7.5e9, 128e9, 1e12},
                                     const std::vector<std::int64_t>& ranks = {1, 4, 16, 64, 256, 1024});

/// ZeRO, Table 2, theory: the largest model by stage when `gpus` GPUs of `memory_bytes` are divided into
/// model-parallel groups of `model_parallel` with 64-way data parallelism. Parameters, stages 0 to 3.
struct ZeroTable2Row {
  std::int64_t model_parallel = 1;
  std::int64_t gpus = 64;
  std::array<double, 4> params{};
};
[[nodiscard]] std::vector<ZeroTable2Row> zero_table2(double memory_bytes = 32e9,
                                                     std::int64_t data_parallel = 64);

/// A figure of Table 2 in billions as the paper prints it: the figure of one model-parallel group rounded to
/// one decimal, times the groups ("121.6" where the exact product is 122.3).
[[nodiscard]] std::string as_in_table2(double params, std::int64_t model_parallel);
/// A figure as Table 1 prints it: whole GB without rounding from 100 on, else rounded to one decimal from 2
/// on and to two below, trailing zeros dropped ("4187" for 4187.5, "41.3" for 41.25, "1.88" for 1.875).
[[nodiscard]] std::string as_in_table1(double gigabytes);
/// Rounded half up, as the papers do and printf does not where the half is exact ("1.63" for 1.625).
[[nodiscard]] std::string rounded_half_up(double value, int decimals);

/// ZeRO-Infinity, Figure 2a: memory of transformers of 0.1 to 100 trillion parameters.
struct InfinityRow {
  TransformerShape shape;
  double params = 0;
  double state_bytes = 0;                ///< of the whole model
  double checkpoint_bytes_per_node = 0;  ///< activation checkpoints
  double model_state_working_bytes = 0;  ///< MSWM, per GPU
  double activation_working_bytes = 0;   ///< AWM, per GPU
};
[[nodiscard]] InfinityRow infinity_row(const TransformerShape& shape) noexcept;
[[nodiscard]] std::vector<InfinityRow> infinity_table();

}  // namespace shardscope::plan
