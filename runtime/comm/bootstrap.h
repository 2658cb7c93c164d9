// The exchange through which ranks find each other before they share memory: small and blocking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardscope::comm {

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  [[nodiscard]] virtual std::uint32_t rank() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t size() const noexcept = 0;
  /// all[k*mine.size() ...) = mine of rank k. Every rank passes the same size.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
};

/// A world of one.
class SoloBootstrap final : public Bootstrap {
 public:
  [[nodiscard]] std::uint32_t rank() const noexcept override { return 0; }
  [[nodiscard]] std::uint32_t size() const noexcept override { return 1; }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    for (std::size_t i = 0; i < mine.size(); ++i) all[i] = mine[i];
  }
};

}  // namespace shardscope::comm
