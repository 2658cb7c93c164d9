// The JSON header of a safetensors file, checked against the file's size. The rules are the format's: offsets
// in order and without gaps or overlaps, sizes that match shape and type, nothing after the last tensor.
#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "runtime/checkpoint/safetensors.h"

namespace shardscope::checkpoint {
namespace {

// The reference implementation's own limit.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

struct TypeEntry {
  TensorType type;
  const char* name;
  std::size_t bytes;
};
// Also types that are not read: their size matters for the layout.
constexpr TypeEntry kTypes[] = {
    {TensorType::f64, "F64", 8},    {TensorType::f32, "F32", 4},       {TensorType::f16, "F16", 2},
    {TensorType::bf16, "BF16", 2},  {TensorType::i64, "I64", 8},       {TensorType::i32, "I32", 4},
    {TensorType::i16, "I16", 2},    {TensorType::i8, "I8", 1},         {TensorType::u8, "U8", 1},
    {TensorType::other, "U64", 8},  {TensorType::other, "U32", 4},     {TensorType::other, "U16", 2},
    {TensorType::other, "BOOL", 1}, {TensorType::other, "F8_E4M3", 1}, {TensorType::other, "F8_E5M2", 1},
};

// The caller that opened the file adds the path.
[[noreturn]] void fail(const std::string& text) {
  throw CheckpointError("not a valid safetensors file: " + text);
}

/// Product of the shape; fails on overflow.
std::int64_t count(const std::string& name, const std::vector<std::int64_t>& shape) {
  std::int64_t elems = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(elems, extent, &elems)) fail("tensor \"" + name + "\" has too many elements");
  }
  return elems;
}

std::size_t to_size(const std::string& name, const char* what, const nlohmann::json& value) {
  if (!value.is_number_unsigned())
    fail("tensor \"" + name + "\": " + what + " holds something else than a size");
  const auto number = value.get<std::uint64_t>();
  // Extents become signed numbers.
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    fail("tensor \"" + name + "\": " + what + " is too large");
  }
  return static_cast<std::size_t>(number);
}

TensorInfo read_tensor(const std::string& name, const nlohmann::json& entry, std::size_t data_bytes) {
  TensorInfo tensor;
  tensor.name = name;
  // Each key is looked up before its value is read: the parser's exception would not name the tensor.
  if (!entry.is_object()) fail("tensor \"" + name + "\" is not described by an object");
  const auto type = entry.find("dtype");
  const auto shape = entry.find("shape");
  const auto offsets = entry.find("data_offsets");
  if (type == entry.end() || !type->is_string()) fail("tensor \"" + name + "\" has no dtype");
  if (shape == entry.end() || !shape->is_array()) fail("tensor \"" + name + "\" has no shape");
  if (offsets == entry.end() || !offsets->is_array() || offsets->size() != 2) {
    fail("tensor \"" + name + "\" has no data_offsets");
  }
  tensor.type_name = type->get<std::string>();
  // An unlisted type has an unknown size: its bytes could not be checked.
  const auto* known = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const TypeEntry& t) { return tensor.type_name == t.name; });
  if (known == std::end(kTypes))
    fail("tensor \"" + name + "\" has the unknown dtype \"" + tensor.type_name + "\"");
  tensor.type = known->type;
  for (const nlohmann::json& extent : *shape) {
    tensor.shape.push_back(static_cast<std::int64_t>(to_size(name, "shape", extent)));
  }
  tensor.elems = count(name, tensor.shape);
  tensor.begin = to_size(name, "data_offsets", (*offsets)[0]);
  tensor.end = to_size(name, "data_offsets", (*offsets)[1]);
  // Untrusted numbers: check both bounds before computing a difference.
  if (tensor.begin > tensor.end || tensor.end > data_bytes) {
    fail("tensor \"" + name + "\" lies at bytes " + std::to_string(tensor.begin) + " to " +
         std::to_string(tensor.end) + " of " + std::to_string(data_bytes) + "; the file is cut or damaged");
  }
  std::int64_t bytes = 0;
  // The shape (elements) must match the offsets (bytes), or reads could be out of bounds.
  if (__builtin_mul_overflow(tensor.elems, static_cast<std::int64_t>(known->bytes), &bytes) ||
      static_cast<std::size_t>(bytes) != tensor.end - tensor.begin) {
    fail("tensor \"" + name + "\": its shape and dtype do not match its " +
         std::to_string(tensor.end - tensor.begin) + " bytes");
  }
  return tensor;
}

// Ascending and without gaps, so that no byte is in two tensors.
void check_layout(const std::vector<TensorInfo>& tensors, std::size_t data_bytes) {
  std::size_t at = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.begin != at) fail("tensor \"" + tensor.name + "\" overlaps another or leaves a hole");
    at = tensor.end;
  }
  // The last end is at most data_bytes: read_tensor() checked that, so the difference is not below 0.
  if (at != data_bytes) {
    fail(std::to_string(data_bytes - at) + " bytes after the last tensor belong to none");
  }
}

}  // namespace

const char* to_string(TensorType type) noexcept {
  for (const TypeEntry& entry : kTypes) {
    // Several names share `other`, so that none of them is its name.
    if (entry.type == type && type != TensorType::other) return entry.name;
  }
  return "other";
}

SafetensorsHeader parse_safetensors(std::span<const std::byte> bytes) {
  if (bytes.size() < 8) fail("it has " + std::to_string(bytes.size()) + " bytes; the header alone needs 8");
  std::uint64_t header_bytes = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    // Little-endian by the format.
    header_bytes |= static_cast<std::uint64_t>(std::to_integer<std::uint8_t>(bytes[i])) << (8 * i);
  }
  // Not 8 + header_bytes > size, which could overflow.
  if (header_bytes > kMaxHeaderBytes || header_bytes > bytes.size() - 8) {
    fail("its header claims " + std::to_string(header_bytes) + " bytes; the file has " +
         std::to_string(bytes.size()) + " (is it a safetensors file, and whole?)");
  }
  const auto* const text = reinterpret_cast<const char*>(bytes.data()) + 8;
  // A callback keeps the parser from building deeply nested untrusted values.
  const auto shallow = [](int depth, auto, const auto&) {
    if (depth > 8) fail("its header is nested too deeply");
    return true;
  };
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text, text + header_bytes, shallow);
  } catch (const nlohmann::json::exception& error) {
    fail(std::string("its header is not JSON (") + error.what() + ")");
  }
  if (!json.is_object()) fail("its header is not a JSON object");

  SafetensorsHeader header;
  header.data_begin = 8 + static_cast<std::size_t>(header_bytes);
  const std::size_t data_bytes = bytes.size() - header.data_begin;
  // Every key but this one is a tensor.
  for (const auto& item : json.items()) {
    if (item.key() == "__metadata__") {
      if (!item.value().is_object()) fail("__metadata__ is not an object");
      for (const auto& entry : item.value().items()) {
        if (!entry.value().is_string()) fail("__metadata__ holds something else than strings");
        header.metadata[entry.key()] = entry.value().get<std::string>();
      }
      continue;
    }
    header.tensors.push_back(read_tensor(item.key(), item.value(), data_bytes));
  }
  // The parser sorts by name. Empty tensors share their begin: then by end and name, for a deterministic
  // order.
  std::sort(header.tensors.begin(), header.tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_layout(header.tensors, data_bytes);
  return header;
}

}  // namespace shardscope::checkpoint
