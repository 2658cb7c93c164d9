// Checksums of the initial weights of the ranks of a run.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/comm/communicator.h"
#include "runtime/plan/ownership.h"

namespace shardscope::train {

/// Compares copies: if several ranks own the same elements, each creates or reads them itself, and they must
/// be equal.
class WeightSums {
 public:
  explicit WeightSums(const plan::Ownership& ownership) : ownership_(ownership) {}
  /// Adds initial values of this rank; call in the same order on every rank.
  void add(plan::ParamId param, const float* values, std::int64_t elems);
  /// Throws std::runtime_error, with the same text on every rank, where copies differ: in stage 0, and of
  /// frozen parameters below stage 3, those of all ranks; with MiCS those of ranks with the same rank in
  /// their groups. Collective.
  void check(comm::Communicator& control) const;

 private:
  const plan::Ownership& ownership_;
  std::uint64_t whole_ = 0;    ///< of parameters that every rank holds whole
  std::uint64_t sharded_ = 0;  ///< of this rank's part of the others
};

}  // namespace shardscope::train
