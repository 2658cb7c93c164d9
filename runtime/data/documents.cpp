#include <algorithm>
#include <string>
#include <vector>

#include "runtime/base/hash.h"
#include "runtime/data/dataset.h"
#include "runtime/data/input_file.h"
#include "runtime/data/token_files.h"
#include "runtime/data/token_rows.h"

namespace shardscope::data {
namespace {

using plan::Packing;

std::vector<std::int32_t> separator_of(const TokenFiles& tokens, const plan::MicroBatches& settings,
                                       const std::string& path) {
  if (settings.separator_token >= 0) {
    if (tokens.holds_bytes() && settings.separator_token > 255) {
      fail_file(path, "holds bytes, and " + std::to_string(settings.separator_token) +
                          " is none; give shardscope.micro_batches.separator as text");
    }
    return {static_cast<std::int32_t>(settings.separator_token)};
  }
  if (!tokens.holds_bytes()) {
    fail_file(path,
              "holds 16-bit tokens; give the token that separates documents as a number in "
              "shardscope.micro_batches.separator (50256 in GPT-2's vocabulary)");
  }
  std::vector<std::int32_t> bytes;
  for (const char c : settings.separator) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

class Documents final : public Dataset {
 public:
  Documents(const std::string& path, std::int64_t T, std::int64_t vocabulary,
            const plan::MicroBatches& settings)
      : tokens_(path, vocabulary), T_(T), packing_(settings.packing) {
    const std::vector<std::int64_t> ends = tokens_.document_ends(separator_of(tokens_, settings, path));
    documents_ = ends.size();
    packing_ == Packing::packed ? pack(ends) : cut(ends);
    if (samples_.empty()) fail_file(path, "holds no document of two tokens or more");
    for (const Sample& sample : samples_) {
      shortest_ = std::min(shortest_, sample.length);
      longest_ = std::max(longest_, sample.length);
    }
  }

  [[nodiscard]] std::int64_t samples() const override { return static_cast<std::int64_t>(samples_.size()); }
  [[nodiscard]] std::int64_t length(std::int64_t index) const override { return at(index).length; }
  void read(std::int64_t index, std::int64_t row, HostBatch& batch) const override {
    read_row(tokens_, at(index).first, at(index).length, row, batch);
  }
  [[nodiscard]] std::string describe() const override {
    return tokens_.describe() + ", " + std::to_string(documents_) + " documents " +
           (packing_ == Packing::packed ? "packed into " : "as ") + std::to_string(samples()) +
           " samples of " + std::to_string(shortest_) + " to " + std::to_string(longest_) + " tokens";
  }
  [[nodiscard]] std::uint64_t fingerprint() const override {
    std::uint64_t hash = base::hash64(tokens_.fingerprint() ^ static_cast<std::uint64_t>(T_));
    for (const std::uint64_t part :
         {static_cast<std::uint64_t>(packing_), documents_, static_cast<std::uint64_t>(samples())}) {
      hash = base::hash64(hash ^ part);
    }
    return hash;
  }

 private:
  struct Sample {
    std::int64_t first = 0;   ///< token
    std::int64_t length = 0;  ///< inputs; the target of the last is the token after it
  };
  [[nodiscard]] const Sample& at(std::int64_t index) const {
    return samples_[static_cast<std::size_t>(index)];
  }
  /// Tokens [begin, end), of which the last one is only a target.
  void add(std::int64_t begin, std::int64_t end) {
    for (; begin + 1 < end; begin += T_) samples_.push_back({begin, std::min(T_, end - 1 - begin)});
  }
  void cut(const std::vector<std::int64_t>& ends) {
    std::int64_t begin = 0;
    for (const std::int64_t end : ends) {
      add(begin, end);
      begin = end;
    }
  }
  /// In order, so that a sample is a range of the file.
  void pack(const std::vector<std::int64_t>& ends) {
    std::int64_t first = 0;  // of the sample that is being filled
    std::int64_t begin = 0;  // of the document
    for (const std::int64_t end : ends) {
      if (end - 1 - first > T_) {
        add(first, begin);
        // The remainder of a long document after its full samples shares a sample with later documents.
        for (first = begin; end - 1 - first > T_; first += T_) samples_.push_back({first, T_});
      }
      begin = end;
    }
    add(first, begin);
  }

  TokenFiles tokens_;
  std::int64_t T_;
  Packing packing_;
  std::uint64_t documents_ = 0;
  std::vector<Sample> samples_;
  std::int64_t shortest_ = INT64_MAX, longest_ = 0;
};

}  // namespace

std::unique_ptr<Dataset> open_documents(const std::string& path, std::int64_t T, std::int64_t vocabulary,
                                        const plan::MicroBatches& micro_batches) {
  return std::make_unique<Documents>(path, T, vocabulary, micro_batches);
}

}  // namespace shardscope::data
