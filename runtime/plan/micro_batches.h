// Sizes of micro-batches: all equal, or as long as the documents in them. Shared by the engine and the
// simulator, so that all ranks compute the same sizes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/model_spec.h"

namespace shardscope::plan {

/// `fixed`: windows of T tokens. `padded`: each document is a sample of its own length, and a micro-batch is
/// as long as its longest sample. `packed`: a sample is as many whole documents as fit in T tokens.
enum class Packing : std::uint8_t { fixed, padded, packed };

struct MicroBatchShape {
  std::int64_t samples = 0;
  std::int64_t tokens = 0;  ///< of each; 1 for vectors
  friend bool operator==(const MicroBatchShape&, const MicroBatchShape&) = default;
};

/// `shardscope.micro_batches`.
struct MicroBatches {
  Packing packing = Packing::fixed;
  std::string separator = "\n\n";       ///< between documents of a text
  std::int64_t separator_token = -1;    ///< the same for a file of token ids; -1: none
  std::int64_t pad_to_multiple_of = 1;  ///< of a padded or packed micro-batch's length, up to the context
  /// Micro-step m of rank r has number (m + r) modulo their count, so that ranks differ too. Empty: every
  /// micro-batch has the configured size.
  std::vector<MicroBatchShape> shapes{};

  [[nodiscard]] const MicroBatchShape& shape(std::int64_t micro_step, std::uint32_t rank) const {
    const auto turn = static_cast<std::uint64_t>(micro_step) + rank;
    return shapes[static_cast<std::size_t>(turn % shapes.size())];
  }
  /// Maximum of samples per micro-batch and of tokens per sample; `configured` if there are no shapes.
  [[nodiscard]] MicroBatchShape largest(MicroBatchShape configured) const {
    if (shapes.empty()) return configured;
    MicroBatchShape most;
    for (const MicroBatchShape& one : shapes) {
      most = {std::max(most.samples, one.samples), std::max(most.tokens, one.tokens)};
    }
    return most;
  }
  /// Average number of samples in one micro-step of all `ranks`.
  [[nodiscard]] double samples_of_micro_step(std::int64_t configured, std::uint32_t ranks) const {
    double sum = 0;
    for (const MicroBatchShape& one : shapes) sum += static_cast<double>(one.samples);
    const double mean =
        shapes.empty() ? static_cast<double>(configured) : sum / static_cast<double>(shapes.size());
    return mean * ranks;
  }
};

/// Error message if the model cannot take micro-batches of these shapes, with sequences of at most `context`
/// tokens; else empty.
[[nodiscard]] std::string validate(const MicroBatches& sizes, const ModelSpec& model, std::int64_t context);

}  // namespace shardscope::plan
