#include "app/collector/item_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
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
  unlink(path.c_str());  // gone with the process, however it ends
  return true;
}

void ItemLog::append(ViewItem item) {
  Entry entry;
  entry.bytes = static_cast<std::uint32_t>(item.data.size());
  memory_ += entry.bytes;
  entry.item = std::move(item);
  entries_.push_back(std::move(entry));
  if (memory_ > limits_.memory_bytes) spill();
}

void ItemLog::spill() {
  while (memory_ > limits_.memory_bytes && first_in_memory_ < end()) {
    Entry& entry = entries_[first_in_memory_ - begin_];
    if (entry.bytes != 0) {
      if (!open_file() || !write_all(file_, entry.item.data.data(), entry.bytes, file_end_)) {
        // No disk left: keep the newest part only.
        file_failed_ = true;
        forget_oldest();
        continue;
      }
      entry.offset = file_end_;
      entry.in_file = true;
      file_end_ += entry.bytes;
      memory_ -= entry.bytes;
      entry.item.data = {};
    }
    ++first_in_memory_;
  }
  while (file_bytes() > limits_.file_bytes) forget_oldest();
}

void ItemLog::forget_oldest() {
  if (entries_.empty()) return;
  const Entry& oldest = entries_.front();
  if (oldest.in_file) {
    const std::uint64_t upto = oldest.offset + oldest.bytes;
    // Gives the disk back in large pieces; the file's length is only an address.
    if (upto / kPunchEvery != file_begin_ / kPunchEvery) {
      (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                      static_cast<off_t>(upto / kPunchEvery * kPunchEvery));
    }
    file_begin_ = upto;
  } else {
    memory_ -= oldest.bytes;
  }
  entries_.pop_front();
  ++begin_;
  if (first_in_memory_ < begin_) first_in_memory_ = begin_;
}

ViewItem ItemLog::get(std::uint64_t number) const {
  const Entry& entry = entries_[number - begin_];
  ViewItem item = entry.item;
  if (!entry.in_file) return item;
  item.data.resize(entry.bytes);
  if (read_all(file_, item.data.data(), entry.bytes, entry.offset)) return item;
  ViewItem sorry;
  sorry.kind = ViewItem::Kind::message;
  sorry.rank = item.rank;
  sorry.severity = instrumentation::Severity::error;
  sorry.text =
      "the collector could not read back an older part of this rank's events from its temporary file";
  return sorry;
}

}  // namespace shardscope::collector
