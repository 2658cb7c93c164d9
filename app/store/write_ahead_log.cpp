#include "app/store/write_ahead_log.h"

#include <array>
#include <fstream>
#include <optional>
#include <span>
#include <vector>

namespace shardscope::store {
namespace {

// The log is a header of 32 bytes, then frames of 24 bytes and a database page each. All numbers are
// big-endian words of 4 bytes, independent of the byte order of the checksums.
//   header: 0 magic, 4 version, 8 bytes of a page, 12 checkpoint number, 16 salt 1, 20 salt 2,
//           24 checksum of bytes 0 to 23
//   frame:  0 page number, 4 pages of the database after a commit (0: the frame ends no commit),
//           8 salt 1, 12 salt 2, 16 checksum of the header, of every frame before, of bytes 0 to 7 of this
//           one and of its page
constexpr std::size_t kLogHeaderBytes = 32, kFrameHeaderBytes = 24;
constexpr std::uint32_t kMagic = 0x377F0682U;  ///< the last bit: checksums use big-endian words
constexpr std::uint32_t kVersion = 3007000;
constexpr std::uint32_t kLeastPage = 512, kMostPage = 65536;

using Bytes = std::span<const unsigned char>;

std::uint32_t big_endian(Bytes bytes, std::size_t at) {
  return static_cast<std::uint32_t>(bytes[at]) << 24 | static_cast<std::uint32_t>(bytes[at + 1]) << 16 |
         static_cast<std::uint32_t>(bytes[at + 2]) << 8 | static_cast<std::uint32_t>(bytes[at + 3]);
}

std::uint32_t little_endian(Bytes bytes, std::size_t at) {
  return static_cast<std::uint32_t>(bytes[at + 3]) << 24 | static_cast<std::uint32_t>(bytes[at + 2]) << 16 |
         static_cast<std::uint32_t>(bytes[at + 1]) << 8 | static_cast<std::uint32_t>(bytes[at]);
}

/// SQLite's checksum: two sums over pairs of words, modulo 2^32. It is cumulative over the log, so a frame
/// is valid only where all frames before it are.
struct Checksum {
  std::uint32_t first = 0, second = 0;
  /// Adds a multiple of 8 bytes.
  void add(Bytes bytes, bool big) {
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      first += (big ? big_endian(bytes, at) : little_endian(bytes, at)) + second;
      second += (big ? big_endian(bytes, at + 4) : little_endian(bytes, at + 4)) + first;
    }
  }
  [[nodiscard]] bool is(Bytes bytes, std::size_t at) const {
    return first == big_endian(bytes, at) && second == big_endian(bytes, at + 4);
  }
};

struct Header {
  bool big = false;                                ///< `page`: bytes, a power of two
  std::uint32_t page = 0, salt_1 = 0, salt_2 = 0;  ///< `page`: bytes, a power of two
  Checksum checksum;                               ///< up to here: frames continue it
};

std::optional<Header> header_of(Bytes bytes) {
  Header out;
  const std::uint32_t magic = big_endian(bytes, 0);
  out.big = (magic & 1U) != 0;
  out.page = big_endian(bytes, 8);
  out.salt_1 = big_endian(bytes, 16);
  out.salt_2 = big_endian(bytes, 20);
  out.checksum.add(bytes.first(24), out.big);
  const bool page_possible =
      out.page >= kLeastPage && out.page <= kMostPage && (out.page & (out.page - 1)) == 0;
  if ((magic & ~1U) != kMagic || big_endian(bytes, 4) != kVersion || !page_possible ||
      !out.checksum.is(bytes, 24)) {
    return std::nullopt;
  }
  return out;
}

/// False at the end, also where a part of the bytes is left.
bool fill(std::istream& in, std::span<unsigned char> bytes) {
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return static_cast<std::size_t>(in.gcount()) == bytes.size();
}

std::string frames_text(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " frame" : " frames");
}

}  // namespace

LogScan scan_log(std::istream& log) {
  using State = LogScan::State;
  LogScan out;
  out.state = State::empty;
  std::array<unsigned char, kLogHeaderBytes> head{};
  if (!fill(log, head)) return out;
  std::optional<Header> header = header_of(head);
  if (!header) {
    out.state = State::header_damaged;
    return out;
  }
  std::vector<unsigned char> frame(kFrameHeaderBytes + header->page);
  std::uint64_t number = 0, last_commit = 0;
  while (fill(log, frame)) {
    ++number;
    // Salts identify the generation of a log: a frame with others was written before the log was restarted.
    const bool own = big_endian(frame, 8) == header->salt_1 && big_endian(frame, 12) == header->salt_2;
    if (out.damaged_at == 0) {
      header->checksum.add(Bytes(frame).first(8), header->big);
      header->checksum.add(Bytes(frame).subspan(kFrameHeaderBytes), header->big);
      if (own && header->checksum.is(frame, 16)) {
        ++out.frames;
        continue;
      }
      out.damaged_at = number;
    }
    // After damage no checksum can be valid any more (it is cumulative), so only the salts
    // show whether SQLite skips data of this generation.
    if (own && big_endian(frame, 4) != 0) {
      ++out.commits;
      last_commit = number;
    }
  }
  out.state = out.commits != 0 ? State::damaged : State::whole;
  if (out.commits != 0) {
    out.behind = last_commit - out.damaged_at;
  } else {
    out.damaged_at = 0;
  }
  return out;
}

LogScan scan_log_of(const std::string& path) {
  const auto scan = [&] {
    std::ifstream log(path + "-wal", std::ios::binary);
    return log ? scan_log(log) : LogScan();
  };
  // A frame that is being written looks damaged once; the same result twice is damage.
  const LogScan once = scan();
  if (once.state != LogScan::State::damaged && once.state != LogScan::State::header_damaged) return once;
  const LogScan again = scan();
  if (again == once) return once;
  LogScan written;  // changed while it was read
  written.state = LogScan::State::whole;
  return written;
}

bool wants_log(const std::string& path) {
  constexpr std::size_t kReadVersion = 19;  // in the file's header: 2 in WAL mode
  std::array<unsigned char, kReadVersion + 1> head{};
  std::ifstream file(path, std::ios::binary);
  return fill(file, head) && head[kReadVersion] == 2;
}

std::string problem_of(const LogScan& scan, const std::string& path) {
  const std::string log = "its write-ahead log " + path + "-wal";
  switch (scan.state) {
    case LogScan::State::whole:
      return {};
    case LogScan::State::missing:
    case LogScan::State::empty:
      return log + (scan.state == LogScan::State::missing ? " is missing" : " is empty") +
             ": in a copy all is missing that was not in the file itself yet; copy FILE-wal together with "
             "FILE "
             "(where a program that writes SQLite files has opened the recording, the log is in the file)";
    case LogScan::State::header_damaged:
      return log + " is damaged at its beginning: nothing in it was read";
    case LogScan::State::damaged:
      return log + " is damaged at frame " + std::to_string(scan.damaged_at) + ": this one and " +
             frames_text(scan.behind) + " behind it were not read (" + std::to_string(scan.commits) +
             (scan.commits == 1 ? " commit" : " commits") + " of about half a second each)";
  }
  return {};
}

}  // namespace shardscope::store
