// Checksums of the weights that the ranks of a run begin with.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/comm/communicator.h"
#include "runtime/plan/ownership.h"

namespace shardscope::train {

/// Compares copies: every element of a parameter comes from the rank that owns it, but where several ranks
/// own the same ones each makes or reads them for itself.
class WeightSums {
 public:
  explicit WeightSums(const plan::Ownership& ownership) : ownership_(ownership) {}
  /// What this rank was given, in the same order on every rank.
  void add(plan::ParamId param, const float* values, std::int64_t elems);
  /// Throws std::runtime_error, with the same text on every rank, where copies differ: in stage 0, and of
  /// frozen parameters below stage 3, those of all ranks; with MiCS those of ranks at the same place in their
  /// groups. Collective.
  void check(comm::Communicator& control) const;

 private:
  const plan::Ownership& ownership_;
  std::uint64_t whole_ = 0;    ///< of parameters that every rank holds whole
  std::uint64_t sharded_ = 0;  ///< of this rank's part of the others
};

}  // namespace shardscope::train
