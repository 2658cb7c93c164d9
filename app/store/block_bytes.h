// Integer encodings of blocks, pages and statuses; docs/recording.md, "Blocks".
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/store/bytes.h"
#include "app/store/lane.h"
#include "instrumentation/possible_time.h"

namespace shardscope::store {

/// Writes times as differences from one time of the block. Two values are special: never, and open.
class BlockWriter : public ByteWriter {
 public:
  BlockWriter(std::vector<std::byte>& out, std::int64_t base_ns) : ByteWriter(out), base_ns_(base_ns) {}
  void time(std::int64_t ns) {
    if (ns == Lane::kNever) return varint(0);
    if (ns == kOpen) return varint(1);
    // Times are below 2^62, so that neither the difference nor the sum overflows.
    varint(zigzag(ns - base_ns_) + 2);
  }
  void id(std::uint32_t value) { varint(value + 1U); }  // kNoId becomes 0
  void number(std::int64_t value) { varint(zigzag(value)); }

 private:
  std::int64_t base_ns_;
};

/// Reads what BlockWriter wrote. Throws as ByteReader does.
class BlockReader : public ByteReader {
 public:
  using ByteReader::ByteReader;
  void set_base(std::int64_t ns) { base_ns_ = ns; }
  std::int64_t time() {
    const std::uint64_t value = varint();
    if (value == 0) return Lane::kNever;
    if (value == 1) return kOpen;
    return after(base_ns_, unzigzag(value - 2));
  }
  /// Fails where the sum exceeds the range of written times: differences of such times could overflow.
  std::int64_t after(std::int64_t base_ns, std::int64_t ns) {
    const auto sum =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(base_ns) + static_cast<std::uint64_t>(ns));
    if (!instrumentation::is_time(sum)) fail("has a time that cannot be");
    return sum;
  }
  std::uint32_t id() { return static_cast<std::uint32_t>(varint()) - 1U; }
  std::int64_t number() { return unzigzag(varint()); }
  template <typename T>
  T small() {
    return static_cast<T>(varint());
  }
  /// Skips `count` integers. Times that must be valid are read with time() instead.
  void skip(std::size_t count) {
    varints(count, [](std::uint64_t) {});
  }
  /// A number of elements of at least one byte each.
  std::size_t count() {
    const std::uint64_t value = varint();
    if (value > left()) fail("names more than it holds");
    return value;
  }
  void version(std::uint8_t known) {
    if (fixed<std::uint8_t>() != known) fail("has a version that this program does not know");
  }
  /// A number of lanes. Fails on more lanes than this program has (a newer program's file).
  std::size_t lane_count() {
    const std::uint64_t lanes = varint();
    if (lanes > instrumentation::kStreamCount) fail("has lanes that this program does not know");
    return lanes;
  }

 private:
  std::int64_t base_ns_ = 0;
};

}  // namespace shardscope::store
