#include "runtime/base/hash.h"
#include "runtime/data/dataset.h"
#include "runtime/data/token_files.h"
#include "runtime/data/token_rows.h"

namespace shardscope::data {
namespace {

class TokenWindows final : public Dataset {
 public:
  TokenWindows(const std::string& path, std::int64_t T, std::int64_t vocabulary)
      : tokens_(path, vocabulary), T_(T), windows_((tokens_.size() - 1) / T) {
    if (windows_ > 0) return;
    throw DataError("data: " + path + ": holds " + std::to_string(tokens_.size()) +
                    " tokens, but one window takes " + std::to_string(T + 1) +
                    "; give more data or a model with a shorter context");
  }

  [[nodiscard]] std::int64_t samples() const override { return windows_; }
  [[nodiscard]] std::int64_t length(std::int64_t /*index*/) const override { return T_; }
  void read(std::int64_t index, std::int64_t row, HostBatch& batch) const override {
    read_row(tokens_, index * T_, T_, row, batch);
  }
  [[nodiscard]] std::string describe() const override {
    return tokens_.describe() + ", " + std::to_string(windows_) + " windows of " + std::to_string(T_);
  }
  [[nodiscard]] std::uint64_t fingerprint() const override {
    return base::hash64(tokens_.fingerprint() ^ static_cast<std::uint64_t>(T_));
  }

 private:
  TokenFiles tokens_;
  std::int64_t T_;
  std::int64_t windows_;
};

}  // namespace

std::unique_ptr<Dataset> open_token_windows(const std::string& path, std::int64_t T,
                                            std::int64_t vocabulary) {
  return std::make_unique<TokenWindows>(path, T, vocabulary);
}

}  // namespace shardscope::data
