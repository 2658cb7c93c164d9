#include "app/store/run_tables_codec.h"

#include <bit>
#include <stdexcept>
#include <type_traits>

#include "app/store/bytes.h"
#include "instrumentation/table_checks.h"

namespace shardscope::store {
namespace {

namespace ev = shardscope::instrumentation;
// Of this encoding alone; the recording has a version of its own.
constexpr std::uint8_t kVersion = 2;

// One description of the fields serves both directions: `io` is a TablesWriter or a TablesReader.
class TablesWriter {
 public:
  explicit TablesWriter(std::vector<std::byte>& out) : writer_(out), out_(out) {}
  // Doubles as their eight bytes; signed integers zigzag, others (bool and enumerations too) as
  // varints.
  template <typename T>
  void value(const T& v) {
    if constexpr (std::is_same_v<T, double>) {
      writer_.fixed(std::bit_cast<std::uint64_t>(v));
    } else if constexpr (std::is_signed_v<T>) {
      writer_.varint(zigzag(v));
    } else {
      writer_.varint(static_cast<std::uint64_t>(v));
    }
  }
  // Length in bytes, then the bytes; any bytes, no terminating zero.
  void value(const std::string& text) {
    writer_.varint(text.size());
    for (const char c : text) out_.push_back(static_cast<std::byte>(c));
  }
  // Number of items, then the output of `each` for every one.
  template <typename T, typename Each>
  void list(const std::vector<T>& items, Each each) {
    writer_.varint(items.size());
    for (const T& item : items) each(item);
  }
  // Nothing for an empty list; so only the very last list may be written like this.
  template <typename T, typename Each>
  void list_at_end(const std::vector<T>& items, Each each) {
    if (!items.empty()) list(items, each);
  }

 private:
  ByteWriter writer_;
  std::vector<std::byte>& out_;
};

class TablesReader {
 public:
  // Function names as in TablesWriter, so that one template describes the fields for both.
  TablesReader(const std::byte* data, std::size_t bytes) : reader_(data, bytes, "static tables") {}
  template <typename T>
  void value(T& v) {
    if constexpr (std::is_same_v<T, double>) {
      v = std::bit_cast<double>(reader_.fixed<std::uint64_t>());
    } else if constexpr (std::is_signed_v<T>) {
      v = static_cast<T>(unzigzag(reader_.varint()));
    } else {
      // Narrowed without a check: instrumentation::validate() checks the value.
      v = static_cast<T>(reader_.varint());
    }
  }
  void value(std::string& text) {
    const std::uint64_t size = reader_.varint();
    if (size > reader_.left()) reader_.fail("end too early");
    text.resize(size);
    // The size is at most the remaining bytes, so resize() allocates no more than that.
    for (char& c : text) c = static_cast<char>(reader_.fixed<std::uint8_t>());
  }
  template <typename T, typename Each>
  void list(std::vector<T>& items, Each each) {
    const std::uint64_t size = reader_.varint();
    if (size > reader_.left()) reader_.fail("end too early");  // an item takes at least a byte
    // One by one: an item takes more memory than its encoding, and a wrong size must not allocate it at once.
    items.clear();
    for (std::uint64_t i = 0; i < size; ++i) each(items.emplace_back());
  }
  /// A list added later: runs without it have no bytes for it.
  template <typename T, typename Each>
  void list_at_end(std::vector<T>& items, Each each) {
    if (reader_.left() != 0) list(items, each);
  }
  // Without it a field added at the end by a newer program would be dropped silently.
  void expect_end() const {
    if (reader_.left() != 0) reader_.fail("are followed by other bytes");
  }

 private:
  ByteReader reader_;
};

/// An enumeration as one byte.
/// The writer's field is const: only the reader assigns. instrumentation::validate() checks the values.
template <typename Io, typename Enum>
void enumeration(Io& io, Enum& field) {
  auto number = static_cast<std::uint8_t>(field);
  io.value(number);
  if constexpr (!std::is_const_v<Enum>) field = static_cast<Enum>(number);
}

/// In the order of the lists above: the model of each module, the strides of a slice's
/// pieces. After the lists, whose lengths they need.
template <typename Io, typename Tables>
void later_fields(Io& io, Tables& t) {
  io.value(t.framework);
  io.value(t.records);
  io.list(t.not_recorded, [&](auto& lack) {
    io.value(lack.what);
    io.value(lack.why);
  });
  // Ids are written although they count from 0: validate() compares them with the places, which finds damage.
  io.list(t.models, [&](auto& m) {
    io.value(m.id);
    io.value(m.name);
    io.value(m.role);
  });
  io.list(t.groups, [&](auto& g) {
    io.value(g.id);
    io.value(g.name);
    enumeration(io, g.purpose);
    io.list(g.ranks, [&](auto& rank) { io.value(rank); });
  });
  io.list(t.lanes, [&](auto& lane) {
    enumeration(io, lane.lane);
    io.value(lane.name);
  });
  // As many as the lists above have, without a number of items.
  for (auto& m : t.modules) io.value(m.model);
  for (auto& s : t.slices) {
    io.value(s.block_elems);
    io.value(s.stride_elems);
  }
  // Absent in runs without parameter groups.
  io.list_at_end(t.param_groups, [&](auto& g) {
    io.value(g.name);
    io.value(g.lr);
    io.value(g.beta1);
    io.value(g.beta2);
    io.value(g.eps);
    io.value(g.weight_decay);
    io.list(g.params, [&](auto& param) { io.value(param); });
  });
}

/// The order is the format: an added field raises the version, unless it is a list at the very end
/// (list_at_end()).
template <typename Io, typename Tables>
void all_fields(Io& io, Tables& t) {
  const auto value = [&](auto& v) { io.value(v); };
  io.value(t.run_id);
  io.value(t.model);
  io.value(t.device);
  io.value(t.hardware);
  io.value(t.versions);
  io.value(t.config_json);
  // Numbers: varints, so that most take a byte. link_gbps and link_latency_us are doubles.
  io.value(t.rank);
  io.value(t.world);
  io.value(t.local_world);
  io.value(t.stage);
  io.value(t.pid);
  io.value(t.elems);
  io.value(t.param_bytes);
  io.value(t.grad_bytes);
  io.value(t.master_bytes);
  io.value(t.link_gbps);
  io.value(t.link_latency_us);
  io.value(t.simulated);
  io.value(t.host);
  // The ids in these are validated when all is read.
  io.list(t.modules, [&](auto& m) {
    io.value(m.id);
    io.value(m.parent);
    io.value(m.path);
    io.value(m.type);
    io.list(m.params, value);
    io.value(m.hooks);
  });
  io.list(t.params, [&](auto& p) {
    io.value(p.id);
    io.value(p.name);
    io.value(p.dtype);
    io.list(p.shape, value);
    io.value(p.elems);
    io.value(p.shard_elems);
    io.value(p.padding_elems);
    io.list(p.modules, value);
    // Bit 0 persistent, bit 1 frozen.
    // One byte for both; the writer's `p` is const, and only the reader assigns the bits.
    auto flags = static_cast<std::uint8_t>((p.persistent ? 1U : 0U) | (p.frozen ? 2U : 0U));
    io.value(flags);
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(p)>>) {
      p.persistent = (flags & 1U) != 0;
      p.frozen = (flags & 2U) != 0;
    }
  });
  io.list(t.slices, [&](auto& s) {
    io.value(s.param);
    io.value(s.rank);
    io.value(s.param_offset);
    io.value(s.shard_offset);
    io.value(s.elems);
    io.value(s.padding_elems);
  });
  // After every list that it adds fields to: it needs their sizes.
  later_fields(io, t);
}

}  // namespace

/// Version, then the fields. The recording's row has a checksum; the bytes have none.
std::vector<std::byte> encode_tables(const ev::RunTables& tables) {
  std::vector<std::byte> out;
  TablesWriter writer(out);
  writer.value(kVersion);
  all_fields(writer, tables);
  return out;
}

// Throws for every wrong input; never allocates more than a small multiple of `bytes`.
ev::RunTables decode_tables(const std::byte* data, std::size_t bytes) {
  TablesReader reader(data, bytes);
  std::uint8_t version = 0;
  reader.value(version);
  if (version != kVersion) {
    throw std::runtime_error("static tables: version " + std::to_string(version) +
                             ", this program reads version " + std::to_string(kVersion));
  }
  ev::RunTables tables;
  all_fields(reader, tables);
  // Remaining bytes are of a format that this program does not know, or damaged.
  reader.expect_end();
  // Validates ids and counts that refer to each other, and enumerations, which the decoder does not check.
  if (const char* wrong = ev::validate(tables))
    throw std::runtime_error(std::string("static tables: ") + wrong);
  return tables;
}

}  // namespace shardscope::store
