#include <cstring>

#include "runtime/base/float16.h"
#include "runtime/base/open_file.h"
#include "runtime/checkpoint/safetensors.h"

namespace shardscope::checkpoint {
namespace {

// Mapped, not read: only the pages of a large file that are used are loaded.
base::MappedFile open(const std::string& path) {
  try {
    return base::MappedFile(path);
  } catch (const base::FileError& error) {
    throw CheckpointError("weights: " + path + ": " + error.what());
  }
}

SafetensorsHeader parse(const std::string& path, const base::MappedFile& file) {
  try {
    return parse_safetensors(file.bytes());
  } catch (const CheckpointError& error) {
    throw CheckpointError("weights: " + path + ": " + error.what());
  }
}

/// Elements first, first + stride, ... of an array of T, which need not be aligned in the file.
template <typename T, typename Convert>
void gather(const std::byte* data, std::int64_t first, std::int64_t stride, std::span<float> out,
            Convert convert) {
  const std::byte* at = data + first * static_cast<std::int64_t>(sizeof(T));
  for (float& value : out) {
    T raw;
    // memcpy: the format aligns the data's begin, not each tensor in it.
    std::memcpy(&raw, at, sizeof(T));
    value = convert(raw);
    at += stride * static_cast<std::int64_t>(sizeof(T));
  }
}

}  // namespace

// In the order of the members: the header is parsed from the mapped file.
SafetensorsReader::SafetensorsReader(const std::string& path)
    : path_(path), file_(open(path)), header_(parse(path, file_)) {}

// Linear search: called once or twice per parameter.
const TensorInfo* SafetensorsReader::find(std::string_view name) const {
  for (const TensorInfo& tensor : header_.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

// Inside the file: parse_safetensors() compared every tensor with its size.
std::span<const std::byte> SafetensorsReader::bytes(const TensorInfo& tensor) const {
  return file_.bytes().subspan(header_.data_begin + tensor.begin, tensor.end - tensor.begin);
}

void SafetensorsReader::read(const TensorInfo& tensor, std::int64_t first, std::span<float> out) const {
  // The common case without a conversion.
  if (tensor.type == TensorType::f32) {
    std::memcpy(out.data(), bytes(tensor).data() + static_cast<std::size_t>(first) * sizeof(float),
                out.size_bytes());
    return;
  }
  read_strided(tensor, first, 1, out);
}

void SafetensorsReader::read_strided(const TensorInfo& tensor, std::int64_t first, std::int64_t stride,
                                     std::span<float> out) const {
  // Elements and strides are of the tensor's own type; `out` is always fp32.
  const std::byte* const data = bytes(tensor).data();
  switch (tensor.type) {
    case TensorType::f64:
      return gather<double>(data, first, stride, out, [](double v) { return static_cast<float>(v); });
    case TensorType::f32:
      return gather<float>(data, first, stride, out, [](float v) { return v; });
    case TensorType::f16:
      return gather<std::uint16_t>(data, first, stride, out, base::from_f16);
    case TensorType::bf16:
      return gather<std::uint16_t>(data, first, stride, out, base::from_bf16);
    case TensorType::i64:
      return gather<std::int64_t>(data, first, stride, out,
                                  [](std::int64_t v) { return static_cast<float>(v); });
    case TensorType::i32:
      return gather<std::int32_t>(data, first, stride, out,
                                  [](std::int32_t v) { return static_cast<float>(v); });
    // Types of indices, masks and quantized values, whose meaning is not in the file.
    case TensorType::i16:
    case TensorType::i8:
    case TensorType::u8:
    case TensorType::other:
      break;
  }
  throw CheckpointError("weights: " + path_ + ": tensor \"" + tensor.name + "\" has dtype " +
                        tensor.type_name + ", which holds no weights; use F32, BF16, F16 or F64");
}

}  // namespace shardscope::checkpoint
