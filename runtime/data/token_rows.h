// A sample of tokens as a row of a micro-batch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/data/stream.h"
#include "runtime/data/token_files.h"

namespace shardscope::data {

/// Inputs [first, first + length) of `tokens`, with targets shifted by one. The caller ensures that the last
/// target is within tokens.size(); length > 0.
inline void read_row(const TokenFiles& tokens, std::int64_t first, std::int64_t length, std::int64_t row,
                     HostBatch& batch) {
  const std::int64_t count = std::min(length, batch.T);
  std::int32_t* const inputs = batch.tokens.data() + row * batch.T;
  std::int32_t* const targets = batch.targets.data() + row * batch.T;
  // Reads the inputs once: all targets but the last are among them.
  tokens.read(first, count, inputs);
  std::copy_n(inputs + 1, count - 1, targets);
  tokens.read(first + count, 1, targets + count - 1);
  std::fill(inputs + count, inputs + batch.T, 0);
  std::fill(targets + count, targets + batch.T, kIgnoredTarget);
}

}  // namespace shardscope::data
