#include "app/store/run_tables_codec.h"

#include <bit>
#include <stdexcept>
#include <type_traits>

#include "app/store/bytes.h"
#include "instrumentation/table_checks.h"

namespace shardscope::store {
namespace {

namespace ev = shardscope::instrumentation;
constexpr std::uint8_t kVersion = 2;

// One description of the fields serves both directions: `io` is a TablesWriter or a TablesReader.
class TablesWriter {
 public:
  explicit TablesWriter(std::vector<std::byte>& out) : writer_(out), out_(out) {}
  // Doubles as their eight bytes, bit for bit; signed integers zigzag, others (bool and enumerations' numbers
  // too) as varints.
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
  // Number of items, then what `each` writes of every one.
  template <typename T, typename Each>
  void list(const std::vector<T>& items, Each each) {
    writer_.varint(items.size());
    for (const T& item : items) each(item);
  }
  // Nothing at all for an empty list; so only the last list of all may be written so.
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
  // Names as TablesWriter's, so that one template describes the fields for both.
  TablesReader(const std::byte* data, std::size_t bytes) : reader_(data, bytes, "static tables") {}
  template <typename T>
  void value(T& v) {
    if constexpr (std::is_same_v<T, double>) {
      v = std::bit_cast<double>(reader_.fixed<std::uint64_t>());
    } else if constexpr (std::is_signed_v<T>) {
      v = static_cast<T>(unzigzag(reader_.varint()));
    } else {
      // Narrowed without a check: what must not be wrong is looked at by what_is_wrong().
      v = static_cast<T>(reader_.varint());
    }
  }
  void value(std::string& text) {
    const std::uint64_t size = reader_.varint();
    if (size > reader_.left()) reader_.fail("end too early");
    text.resize(size);
    // The size was compared with the bytes that are left, so resize() asks for no more than there are.
    for (char& c : text) c = static_cast<char>(reader_.fixed<std::uint8_t>());
  }
  template <typename T, typename Each>
  void list(std::vector<T>& items, Each each) {
    const std::uint64_t size = reader_.varint();
    if (size > reader_.left()) reader_.fail("end too early");  // an item takes at least a byte
    // One by one: an item takes more memory than bytes, and a false size must not be paid for at once.
    items.clear();
    for (std::uint64_t i = 0; i < size; ++i) each(items.emplace_back());
  }
  /// Of a list that came later: runs without it have no bytes for it.
  template <typename T, typename Each>
  void list_at_end(std::vector<T>& items, Each each) {
    if (reader_.left() != 0) list(items, each);
  }
  // Without it a field that a newer program wrote at the end would be dropped without a word.
  void expect_end() const {
    if (reader_.left() != 0) reader_.fail("are followed by other bytes");
  }

 private:
  ByteReader reader_;
};

/// An enumeration as one byte.
/// The writer's field is const: only the reader assigns. what_is_wrong() looks at the values.
template <typename Io, typename Enum>
void enumeration(Io& io, Enum& field) {
  auto number = static_cast<std::uint8_t>(field);
  io.value(number);
  if constexpr (!std::is_const_v<Enum>) field = static_cast<Enum>(number);
}

/// One by one as they are in the lists above: which model each module is of, how far a slice's pieces lie
/// apart.
template <typename Io, typename Tables>
void later_fields(Io& io, Tables& t) {
  io.value(t.framework);
  io.value(t.records);
  io.list(t.not_recorded, [&](auto& lack) {
    io.value(lack.what);
    io.value(lack.why);
  });
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
  // As many as the lists above have; no number of its own.
  for (auto& m : t.modules) io.value(m.model);
  for (auto& s : t.slices) {
    io.value(s.block_elems);
    io.value(s.stride_elems);
  }
  // Runs without parameter groups end before it.
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

/// The order is the format: a field that is added raises the version, unless it is a list at the very end
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
  // Which ids these may name is checked when all is read.
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
    // One byte for both; the writer's `p` is const, and only the reader takes the bits apart again.
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
  // After every list that it adds fields to: it counts on their sizes.
  later_fields(io, t);
}

}  // namespace

/// Version, then the fields. The row of the recording has a checksum; there is none in the bytes.
std::vector<std::byte> encode_tables(const ev::RunTables& tables) {
  std::vector<std::byte> out;
  TablesWriter writer(out);
  writer.value(kVersion);
  all_fields(writer, tables);
  return out;
}

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
  // Bytes that are left over are of a format that this program does not know, or damaged.
  reader.expect_end();
  // Ids and counts that refer to each other, enumerations: the decoder looks at none of these.
  if (const char* wrong = ev::what_is_wrong(tables))
    throw std::runtime_error(std::string("static tables: ") + wrong);
  return tables;
}

}  // namespace shardscope::store
