// A finite set of samples that can be read in any order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/data/stream.h"

namespace shardscope::data {

class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::int64_t samples() const = 0;
  /// Tokens of a sample; 1 for vectors.
  [[nodiscard]] virtual std::int64_t length(std::int64_t index) const = 0;
  /// Writes sample `index` to row `row` of a batch whose vectors have their final size. A longer sample is
  /// cut to T tokens, a shorter one padded with 0 and kIgnoredTarget.
  virtual void read(std::int64_t index, std::int64_t row, HostBatch& batch) const = 0;
  [[nodiscard]] virtual std::string describe() const = 0;
  [[nodiscard]] virtual std::uint64_t fingerprint() const = 0;
};

/// Windows of T inputs and the T tokens that follow each, without overlap of targets: window w is tokens
/// [w*T, w*T + T]. Throws DataError.
[[nodiscard]] std::unique_ptr<Dataset> open_token_windows(const std::string& path, std::int64_t T,
                                                          std::int64_t vocabulary);

/// Documents of a text or of token ids, one per sample (`padded`) or as many as fit in a sample of T tokens
/// (`packed`). A document ends with its separator, and with its file; of its n tokens n - 1 are inputs, each
/// with the next one as its target. One longer than T is divided into samples of T. Packed documents are
/// contiguous as in the file: the last token of a document has the first of the next one as its target, and
/// attention crosses from one into the other. Throws DataError.
[[nodiscard]] std::unique_ptr<Dataset> open_documents(const std::string& path, std::int64_t T,
                                                      std::int64_t vocabulary,
                                                      const plan::MicroBatches& micro_batches);

/// Rows of two .npy arrays. Checks this rank's share of the rows for NaN and infinity. Throws DataError.
[[nodiscard]] std::unique_ptr<Dataset> open_vectors(const std::string& path, std::int64_t input_width,
                                                    std::int64_t output_width, const StreamOptions& options);

/// 4,096 samples of a linear map: inputs uniform in [-1, 1), label k = sum over j of W[k, j] x[j] /
/// sqrt(input_width) with W uniform in [-1, 1); the same on every machine. Default data of vector models.
[[nodiscard]] std::unique_ptr<Dataset> make_linear_map(std::int64_t input_width, std::int64_t output_width);

/// The samples before the held-out ones, or the held-out ones: the last `fraction` of `whole`, at least one.
/// Throws DataError if no training data would be left.
[[nodiscard]] std::unique_ptr<Dataset> make_part(std::unique_ptr<Dataset> whole, Part part, double fraction);

/// The generated streams of the recorded DeepSpeed runs. Throws DataError on an unknown name.
[[nodiscard]] std::unique_ptr<BatchStream> make_golden_stream(const std::string& name,
                                                              const plan::ModelSpec& model,
                                                              const StreamOptions& options);

}  // namespace shardscope::data
