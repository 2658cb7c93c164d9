// The safetensors format (github.com/huggingface/safetensors, README "Format"): 8 bytes little-endian N, N
// bytes of JSON {name: {dtype, shape, data_offsets}}, then the data without gaps. Files are untrusted: every
// size and offset is checked before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/mapped_file.h"

namespace shardscope::checkpoint {

class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Element types that can be read as numbers here; the others are only listed.
enum class TensorType : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, other };
[[nodiscard]] const char* to_string(TensorType type) noexcept;

struct TensorInfo {
  std::string name;
  TensorType type = TensorType::other;
  std::string type_name;  ///< as in the file
  std::vector<std::int64_t> shape;
  std::int64_t elems = 0;
  std::size_t begin = 0;  ///< bytes from the start of the data
  std::size_t end = 0;
};

/// The header of a file; throws CheckpointError. `bytes` is the whole file.
struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  ///< in the order of their data
  std::map<std::string, std::string> metadata;
  std::size_t data_begin = 0;  ///< bytes from the start of the file
};
[[nodiscard]] SafetensorsHeader parse_safetensors(std::span<const std::byte> bytes);

class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::string& path);
  [[nodiscard]] const std::vector<TensorInfo>& tensors() const noexcept { return header_.tensors; }
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept {
    return header_.metadata;
  }
  /// Null if there is no tensor of this name.
  [[nodiscard]] const TensorInfo* find(std::string_view name) const;
  /// Reads elements [first, first + out.size()) as fp32. The caller ensures that they are within the tensor.
  void read(const TensorInfo& tensor, std::int64_t first, std::span<float> out) const;
  /// Reads element first + k * stride to out[k]: a column of a matrix.
  void read_strided(const TensorInfo& tensor, std::int64_t first, std::int64_t stride,
                    std::span<float> out) const;
  [[nodiscard]] std::span<const std::byte> bytes(const TensorInfo& tensor) const;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  base::MappedFile file_;
  SafetensorsHeader header_;
};

struct TensorSpec {
  std::string name;
  TensorType type = TensorType::f32;  ///< f32, f16, bf16 or i32
  std::vector<std::int64_t> shape;
};

/// Writes the header at construction and then tensors in any order, to a temporary file next to `path`.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::string& path, const std::vector<TensorSpec>& tensors,
                    const std::map<std::string, std::string>& metadata);
  ~SafetensorsWriter();  ///< removes the temporary file unless finish() was called
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  /// Writes elements [first, first + values.size()) of a tensor, rounded to its type.
  void write(std::size_t tensor, std::int64_t first, std::span<const float> values);
  /// Writes all elements of an i32 tensor.
  void write_integers(std::size_t tensor, std::span<const std::int32_t> values);
  /// Flushes to disk and renames to `path`.
  void finish();

 private:
  std::string path_;
  std::string temporary_;
  int file_ = -1;
  std::size_t data_begin_ = 0;
  std::vector<TensorInfo> tensors_;
};

}  // namespace shardscope::checkpoint
