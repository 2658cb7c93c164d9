#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/base/float16.h"
#include "runtime/checkpoint/safetensors.h"

namespace shardscope::checkpoint {
namespace {

std::size_t bytes_of(TensorType type) {
  switch (type) {
    case TensorType::f32:
    case TensorType::i32:
      return 4;
    case TensorType::f16:
    case TensorType::bf16:
      return 2;
    default:
      throw CheckpointError(std::string("weights: cannot write dtype ") + to_string(type));
  }
}

// pwrite() may write less than it was given, and signals may interrupt it. At an offset, since tensors are
// written in any order.
void write_all(int file, const void* data, std::size_t bytes, std::size_t offset, const std::string& path) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = ::pwrite(file, at, bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw CheckpointError("weights: " + path + ": cannot write: " + std::strerror(errno));
    at += done;
    offset += static_cast<std::size_t>(done);
    bytes -= static_cast<std::size_t>(done);
  }
}

/// Removes an incomplete file unless keep() is called.
class Unfinished {
 public:
  Unfinished(int file, const std::string& path) : file_(file), path_(path) {}
  ~Unfinished() {
    if (file_ < 0) return;
    ::close(file_);
    ::unlink(path_.c_str());
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  void keep() noexcept { file_ = -1; }

 private:
  int file_;
  const std::string& path_;
};

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::string& path, const std::vector<TensorSpec>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    // Next to the final file: a rename must stay within one file system.
    : path_(path), temporary_(path + ".partial") {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  // Strings only, as the format allows no others.
  if (!metadata.empty()) header["__metadata__"] = metadata;
  // Offsets from the data's begin, one tensor after the other without gaps, as the format requires.
  std::size_t at = 0;
  for (const TensorSpec& spec : tensors) {
    TensorInfo tensor;
    tensor.name = spec.name;
    tensor.type = spec.type;
    tensor.type_name = to_string(spec.type);
    tensor.shape = spec.shape;
    tensor.elems = 1;
    for (const std::int64_t extent : spec.shape) tensor.elems *= extent;
    tensor.begin = at;
    at += static_cast<std::size_t>(tensor.elems) * bytes_of(spec.type);
    tensor.end = at;
    // ordered: names in the order of `tensors`.
    header[spec.name] = {
        {"dtype", tensor.type_name}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, tensor.end}}};
    tensors_.push_back(std::move(tensor));
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // the data begin aligned, as the format advises
  data_begin_ = 8 + text.size();

  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) {
    throw CheckpointError("weights: " + path + ": cannot be written: " + std::strerror(errno) +
                          "; check the folder and its permissions");
  }
  // A constructor that throws has no destructor.
  Unfinished unfinished(file_, temporary_);
  // Length of the header in 8 bytes, little-endian.
  std::string prefix;
  for (std::size_t i = 0; i < 8; ++i) prefix.push_back(static_cast<char>((text.size() >> (8 * i)) & 0xFF));
  write_all(file_, prefix.data(), prefix.size(), 0, path_);
  write_all(file_, text.data(), text.size(), prefix.size(), path_);
  // The whole size at once: tensors are written in any order. The file may be sparse, so a full disk may only
  // be detected later.
  if (::ftruncate(file_, static_cast<off_t>(data_begin_ + at)) != 0) {
    throw CheckpointError("weights: " + path + ": cannot reserve " + std::to_string(at) +
                          " bytes: " + std::strerror(errno));
  }
  // From here on the object's own destructor closes and removes it.
  unfinished.keep();
}

// Without finish() the temporary file is removed.
SafetensorsWriter::~SafetensorsWriter() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

// Ranges may be written in any order and more than once; unwritten elements stay zero.
void SafetensorsWriter::write(std::size_t tensor, std::int64_t first, std::span<const float> values) {
  const TensorInfo& info = tensors_.at(tensor);
  if (first < 0 || first + static_cast<std::int64_t>(values.size()) > info.elems) {
    throw CheckpointError("weights: tensor \"" + info.name + "\" has " + std::to_string(info.elems) +
                          " elements; cannot write " + std::to_string(values.size()) + " from element " +
                          std::to_string(first));
  }
  const std::size_t offset = data_begin_ + info.begin + static_cast<std::size_t>(first) * bytes_of(info.type);
  // As in memory: the format is little-endian, as the supported machines.
  if (info.type == TensorType::f32)
    return write_all(file_, values.data(), values.size_bytes(), offset, path_);
  // Only these values: there is no second copy of the model.
  std::vector<std::uint16_t> rounded(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    rounded[i] = info.type == TensorType::bf16 ? base::to_bf16(values[i]) : base::to_f16(values[i]);
  }
  write_all(file_, rounded.data(), rounded.size() * 2, offset, path_);
}

void SafetensorsWriter::write_integers(std::size_t tensor, std::span<const std::int32_t> values) {
  const TensorInfo& info = tensors_.at(tensor);
  // All of it in one call: lists of columns are small.
  if (info.type != TensorType::i32 || static_cast<std::int64_t>(values.size()) != info.elems) {
    throw CheckpointError("weights: tensor \"" + info.name + "\" is " + std::to_string(info.elems) + " of " +
                          info.type_name + ", not " + std::to_string(values.size()) + " integers");
  }
  write_all(file_, values.data(), values.size_bytes(), data_begin_ + info.begin, path_);
}

void SafetensorsWriter::finish() {
  // Before the rename: the name must not refer to data that could be lost with power.
  if (::fsync(file_) != 0)
    throw CheckpointError("weights: " + path_ + ": cannot flush: " + std::strerror(errno));
  ::close(file_);
  file_ = -1;
  // Replaces a file of that name in one step.
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    // Before unlink(), which may set errno.
    const std::string reason = std::strerror(errno);
    ::unlink(temporary_.c_str());
    throw CheckpointError("weights: " + path_ + ": cannot be given its name: " + reason);
  }
}

}  // namespace shardscope::checkpoint
