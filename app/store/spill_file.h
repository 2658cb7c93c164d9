// An unnamed temporary file for data that a store does not keep in memory: removed when the process ends,
// however it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shardscope::store {

class SpillFile {
 public:
  struct Place {
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;  ///< 0: empty
  };
  /// `folder`: created in it on first use; empty: $TMPDIR or /tmp.
  explicit SpillFile(std::string folder = {});
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// nullopt when it cannot be written: no folder, no disk space.
  [[nodiscard]] std::optional<Place> put(std::span<const std::byte> bytes);
  /// Throws std::runtime_error when it cannot be read back.
  [[nodiscard]] std::vector<std::byte> get(const Place& place) const;
  /// Frees the place. Disk space is freed in pieces of kPiece.
  void drop(const Place& place);
  [[nodiscard]] std::uint64_t bytes() const noexcept { return held_; }  ///< not dropped yet

  static constexpr std::uint64_t kPiece = std::uint64_t{16} << 20;

 private:
  bool open();
  /// Calls change(bytes held, bytes of `place`) for each piece that `place` overlaps.
  template <typename Change>
  void count(const Place& place, Change change);

  std::string folder_;
  int file_ = -1;
  std::uint64_t end_ = 0, held_ = 0;
  std::map<std::uint64_t, std::uint64_t> pieces_;  ///< bytes held, by number of the piece
};

}  // namespace shardscope::store
