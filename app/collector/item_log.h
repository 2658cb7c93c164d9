// The log that viewers read: items in order of arrival, addressed by number. The newest are in memory, older
// ones in an unlinked temporary file with an index of 16 bytes an item in memory. When the file is full, or
// cannot be written, the oldest items are discarded (the recording, if there is one, contains them).
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
  /// Bytes in the file before an item's text and payload.
  static constexpr std::size_t kItemHead = 32;
  /// `folder`: where the temporary file is created when needed; empty: $TMPDIR or /tmp.
  explicit ItemLog(std::string folder, Limits limits = {});
  ~ItemLog();
  ItemLog(const ItemLog&) = delete;
  ItemLog& operator=(const ItemLog&) = delete;

  void append(instrumentation::wire::ViewItem item);
  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }  ///< first number still kept
  [[nodiscard]] std::uint64_t end() const noexcept { return begin_ + places_.size() + items_.size(); }
  /// Item `number`, begin() <= number < end(). An item whose payload cannot be read back is returned as a
  /// message that reports it.
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
  std::deque<instrumentation::wire::ViewItem> items_;  ///< in memory, newer than `places_`
  std::uint64_t begin_ = 0;
  std::size_t memory_ = 0;
  int file_ = -1;
  bool file_failed_ = false;
  std::uint64_t file_begin_ = 0, file_end_ = 0;
};

}  // namespace shardscope::collector
