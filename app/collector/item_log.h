// Everything viewers may ask for, in order of arrival and addressed by number. The newest part lies in
// memory; older items go to an unlinked temporary file, of which 16 bytes an item stay, and when either
// has reached its bound the oldest are forgotten (the recording, if there is one, has them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "app/collector/collector.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

class ItemLog {
 public:
  using Limits = ViewLogLimits;
  /// In the file before an item's text and payload.
  static constexpr std::size_t kItemHead = 32;
  /// `folder`: where the temporary file is made when it is needed; empty: $TMPDIR or /tmp.
  explicit ItemLog(std::string folder, Limits limits = {});
  ~ItemLog();
  ItemLog(const ItemLog&) = delete;
  ItemLog& operator=(const ItemLog&) = delete;

  void append(instrumentation::wire::ViewItem item);
  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }  ///< first number still kept
  [[nodiscard]] std::uint64_t end() const noexcept { return begin_ + places_.size() + items_.size(); }
  /// Item `number`, begin() <= number < end(). An item whose payload cannot be read back is returned as a
  /// message about that.
  [[nodiscard]] instrumentation::wire::ViewItem get(std::uint64_t number) const;
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return memory_; }
  [[nodiscard]] std::uint64_t file_bytes() const noexcept { return file_end_ - file_begin_; }

 private:
  struct Place {
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
  };
  [[nodiscard]] static std::size_t size_of(const instrumentation::wire::ViewItem& item) noexcept {
    return item.data.size() + item.text.size();
  }
  void spill();
  void forget_oldest();
  bool open_file();

  std::string folder_;
  Limits limits_;
  std::deque<Place> places_;                           ///< in the file
  std::deque<instrumentation::wire::ViewItem> items_;  ///< in memory, those after them
  std::uint64_t begin_ = 0;
  std::size_t memory_ = 0;
  int file_ = -1;
  bool file_failed_ = false;
  std::uint64_t file_begin_ = 0, file_end_ = 0;
};

}  // namespace shardscope::collector
