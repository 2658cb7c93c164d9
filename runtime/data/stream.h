// Training data as an endless, resumable stream of one rank's micro-batches.
//
// [Note: sampling]
// A data set is N samples (windows of T+1 tokens, documents, or rows). Epoch e visits them in an order that
// is a permutation drawn from (seed, e). The global stream is epoch 0, epoch 1, ... without a gap; sample g
// of it goes to micro-batch g / (B * world), rank (g / B) % world. So every sample is used exactly once per
// epoch over all ranks whatever N, B and world are (a batch may straddle two epochs), the order does not
// depend on the number of ranks, and the position is one number. If shapes give each rank and micro-step its
// own B, each rank in order takes that many samples.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/plan/micro_batches.h"
#include "runtime/plan/model_spec.h"

namespace shardscope::data {

/// Data that cannot be used. The message contains the problem, the value and what to do.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Target of a position without a loss, as torch's ignore_index; the loss ignores any target below 0.
constexpr std::int32_t kIgnoredTarget = -100;

/// One micro-batch of one rank in host memory; same layout as model::Batch.
struct HostBatch {
  std::int64_t B = 0;
  std::int64_t T = 0;                 ///< 1 for vectors
  std::vector<std::int32_t> tokens;   ///< [B,T]; 0 after the end of a sample
  std::vector<std::int32_t> targets;  ///< [B,T]; kIgnoredTarget after the end of a sample
  std::vector<float> inputs;          ///< [B,input_width]
  std::vector<float> labels;          ///< [B,output_width]
};

/// Position of the stream: the next sample is number `position` of `epoch`, counted over all ranks.
struct StreamState {
  std::int64_t epoch = 0;
  std::int64_t position = 0;
  std::int64_t micro_step = 0;  ///< micro-batches read by each rank; selects the shape
};

class BatchStream {
 public:
  virtual ~BatchStream() = default;
  /// Fills the next micro-batch of this rank. Vectors in `batch` are reused.
  virtual void next(HostBatch& batch) = 0;
  [[nodiscard]] virtual StreamState state() const = 0;
  /// Continues at a state taken between two micro-batches, with any number of ranks. Throws DataError if the
  /// state does not belong to this data.
  virtual void restore(StreamState state) = 0;
  /// Samples per epoch; 0: generated data without an end.
  [[nodiscard]] virtual std::int64_t samples() const = 0;
  /// For the run's tables: "1234567 byte tokens of 211 files in /path, 9645 windows of 128".
  [[nodiscard]] virtual std::string describe() const = 0;
  /// Equal on two ranks exactly when they read the same data (names and sizes, not every byte).
  [[nodiscard]] virtual std::uint64_t fingerprint() const = 0;
  /// Checksum of some samples spread over the data: distinguishes most files of the same names and sizes.
  [[nodiscard]] virtual std::uint64_t sample_checksum() const { return fingerprint(); }
};

/// Part of a data set whose end is held out for evaluation.
enum class Part : std::uint8_t { all, training, held_out };

struct StreamOptions {
  /// Token models: a text file or a folder (bytes as tokens), or a .bin file of 16-bit tokens (with or
  /// without llm.c's header). Vector models: "x.npy,y.npy" or a folder holding both. Generated: "golden:mlp",
  /// "golden:gpt" (tests/golden/losses.json, "data mlp" and "data gpt"), and for vector models an empty path
  /// (make_linear_map).
  std::string path;
  std::int64_t micro_batch = 1;  ///< samples per rank
  std::int64_t context = 0;      ///< T, the longest sequence; 0: the model's
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::uint64_t seed = 1;
  Part part = Part::all;
  double held_out = 0;  ///< fraction of the samples at the end, at least one; unused for Part::all
  plan::MicroBatches micro_batches{};
};

/// Opens data for a model. Throws DataError: missing path, too little data, a token outside the vocabulary,
/// an odd number of bytes, another width than the model's, or a part of endless data.
[[nodiscard]] std::unique_ptr<BatchStream> open_stream(const plan::ModelSpec& model,
                                                       const StreamOptions& options);

}  // namespace shardscope::data
