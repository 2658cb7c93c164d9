#include "app/collector/item_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace shardscope::collector {

using instrumentation::wire::ViewItem;

namespace {

constexpr std::uint64_t kPunchEvery = 16U << 20;

bool write_all(int file, const std::uint8_t* data, std::size_t bytes, std::uint64_t offset) {
  while (bytes != 0) {
    const ssize_t done = pwrite(file, data, bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    data += done;
    offset += static_cast<std::uint64_t>(done);
    bytes -= static_cast<std::size_t>(done);
  }
  return true;
}

bool read_all(int file, std::uint8_t* data, std::size_t bytes, std::uint64_t offset) {
  while (bytes != 0) {
    const ssize_t done = pread(file, data, bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    data += done;
    offset += static_cast<std::uint64_t>(done);
    bytes -= static_cast<std::size_t>(done);
  }
  return true;
}

/// Header of an item in the file; its text and its payload follow.
struct Head {
  std::int64_t at_ns;
  std::uint32_t rank, id, text_bytes, data_bytes;
  std::uint8_t kind, severity;
  std::array<std::uint8_t, 6> unused;
};
static_assert(sizeof(Head) == ItemLog::kItemHead);

std::vector<std::uint8_t> packed(const ViewItem& item) {
  const Head head{item.at_ns,
                  item.rank,
                  item.id,
                  static_cast<std::uint32_t>(item.text.size()),
                  static_cast<std::uint32_t>(item.data.size()),
                  static_cast<std::uint8_t>(item.kind),
                  static_cast<std::uint8_t>(item.severity),
                  {}};
  std::vector<std::uint8_t> bytes(sizeof head);
  std::memcpy(bytes.data(), &head, sizeof head);
  bytes.insert(bytes.end(), item.text.begin(), item.text.end());
  bytes.insert(bytes.end(), item.data.begin(), item.data.end());
  return bytes;
}

/// Decodes the bytes that packed() made.
ViewItem unpacked(const std::vector<std::uint8_t>& bytes) {
  Head head{};
  std::memcpy(&head, bytes.data(), sizeof head);
  ViewItem item;
  item.at_ns = head.at_ns;
  item.rank = head.rank;
  item.id = head.id;
  item.kind = static_cast<ViewItem::Kind>(head.kind);
  item.severity = static_cast<instrumentation::Severity>(head.severity);
  const auto text = bytes.begin() + sizeof head;
  const auto data = text + head.text_bytes;
  item.text.assign(text, data);
  item.data.assign(data, bytes.end());
  return item;
}

}  // namespace

ItemLog::ItemLog(std::string folder, Limits limits) : folder_(std::move(folder)), limits_(limits) {
  if (folder_.empty()) {
    const char* tmp = std::getenv("TMPDIR");
    folder_ = tmp != nullptr && *tmp != 0 ? tmp : "/tmp";
  }
}

ItemLog::~ItemLog() {
  if (file_ >= 0) close(file_);
}

bool ItemLog::open_file() {
  if (file_ >= 0) return true;
  if (file_failed_) return false;
  std::string path = folder_ + "/shardscope-XXXXXX";
  file_ = mkostemp(path.data(), O_CLOEXEC);
  if (file_ < 0) {
    file_failed_ = true;
    return false;
  }
  unlink(path.c_str());  // the kernel deletes it with the process, however that ends
  return true;
}

void ItemLog::append(ViewItem item) {
  memory_ += size_of(item);
  items_.push_back(std::move(item));
  if (memory_ > limits_.memory_bytes) spill();
}

void ItemLog::spill() {
  while (memory_ > limits_.memory_bytes && !items_.empty()) {
    const std::vector<std::uint8_t> bytes = packed(items_.front());
    if (!open_file() || !write_all(file_, bytes.data(), bytes.size(), file_end_)) {
      // No disk left: keep the newest part only.
      file_failed_ = true;
      forget_oldest();
      continue;
    }
    places_.push_back({file_end_, static_cast<std::uint32_t>(bytes.size())});
    file_end_ += bytes.size();
    memory_ -= size_of(items_.front());
    items_.pop_front();
  }
  while (!places_.empty() && (file_bytes() > limits_.file_bytes || places_.size() > limits_.items)) {
    forget_oldest();
  }
}

void ItemLog::forget_oldest() {
  if (!places_.empty()) {
    const std::uint64_t upto = places_.front().offset + places_.front().bytes;
    // Frees disk space in large pieces; offsets in the file stay the same.
    if (upto / kPunchEvery != file_begin_ / kPunchEvery) {
      (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                      static_cast<off_t>(upto / kPunchEvery * kPunchEvery));
    }
    file_begin_ = upto;
    places_.pop_front();
  } else if (!items_.empty()) {
    memory_ -= size_of(items_.front());
    items_.pop_front();
  } else {
    return;
  }
  ++begin_;
}

ViewItem ItemLog::get(std::uint64_t number) const {
  const std::uint64_t index = number - begin_;
  if (index >= places_.size()) return items_[index - places_.size()];
  const Place& place = places_[index];
  std::vector<std::uint8_t> bytes(place.bytes);
  if (read_all(file_, bytes.data(), bytes.size(), place.offset)) return unpacked(bytes);
  ViewItem sorry;
  sorry.kind = ViewItem::Kind::message;
  sorry.severity = instrumentation::Severity::error;
  sorry.text = "the collector could not read back an older part of the run from its temporary file";
  return sorry;
}

}  // namespace shardscope::collector
