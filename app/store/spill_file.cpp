#include "app/store/spill_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace shardscope::store {

SpillFile::SpillFile(std::string folder) : folder_(std::move(folder)) {
  if (!folder_.empty()) return;
  const char* tmp = std::getenv("TMPDIR");
  folder_ = tmp != nullptr && *tmp != 0 ? tmp : "/tmp";
}

SpillFile::~SpillFile() {
  if (file_ >= 0) close(file_);
}

bool SpillFile::open() {
  if (file_ >= 0) return true;
  std::string path = folder_ + "/shardscope-XXXXXX";
  file_ = mkostemp(path.data(), O_CLOEXEC);
  if (file_ < 0) return false;
  unlink(path.c_str());
  return true;
}

template <typename Change>
void SpillFile::count(const Place& place, Change change) {
  for (std::uint64_t at = place.offset, end = at + place.bytes; at < end;) {
    const std::uint64_t next = std::min((at / kPiece + 1) * kPiece, end);
    change(pieces_[at / kPiece], next - at);
    at = next;
  }
}

std::optional<SpillFile::Place> SpillFile::put(std::span<const std::byte> bytes) {
  if (bytes.empty()) return Place{};
  if (bytes.size() > UINT32_MAX || !open()) return std::nullopt;
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t wrote =
        pwrite(file_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(end_ + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return std::nullopt;
    done += static_cast<std::size_t>(wrote);
  }
  const Place place{end_, static_cast<std::uint32_t>(bytes.size())};
  end_ += place.bytes;
  held_ += place.bytes;
  count(place, [](std::uint64_t& held, std::uint64_t more) { held += more; });
  return place;
}

std::vector<std::byte> SpillFile::get(const Place& place) const {
  std::vector<std::byte> bytes(place.bytes);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got =
        pread(file_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(place.offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw std::runtime_error("cannot be read back from the temporary file");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

void SpillFile::drop(const Place& place) {
  if (place.bytes == 0) return;
  held_ -= place.bytes;
  count(place, [](std::uint64_t& held, std::uint64_t less) { held -= less; });
  for (auto piece = pieces_.begin(); piece != pieces_.end();) {
    if (piece->second != 0 || piece->first == end_ / kPiece) {
      ++piece;
      continue;
    }
    (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(piece->first * kPiece), static_cast<off_t>(kPiece));
    piece = pieces_.erase(piece);
  }
}

}  // namespace shardscope::store
