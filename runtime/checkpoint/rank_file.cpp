#include "runtime/checkpoint/rank_file.h"

#include <cstdio>
#include <vector>

#include "runtime/checkpoint/block_checksums.h"

namespace shardscope::checkpoint {
namespace {

std::vector<TensorSpec> specs(std::int64_t elems) {
  std::vector<TensorSpec> all;
  for (const optim::StateKind kind : optim::kStateKinds) {
    all.push_back({tensor_name(kind), TensorType::f32, {elems}});
  }
  return all;
}

}  // namespace

const char* tensor_name(optim::StateKind kind) noexcept {
  switch (kind) {
    case optim::StateKind::master:
      return "fp32";
    case optim::StateKind::momentum:
      return "exp_avg";
    case optim::StateKind::variance:
      return "exp_avg_sq";
  }
  return "";
}

std::string rank_file_name(std::uint32_t rank) {
  char name[40];
  std::snprintf(name, sizeof name, "rank-%05u.safetensors", rank);
  return name;
}

RankFileWriter::RankFileWriter(const std::filesystem::path& folder, std::uint32_t rank, std::int64_t elems)
    : path_(folder / rank_file_name(rank)), file_(path_.string(), specs(elems), {}) {}

void RankFileWriter::write(optim::StateKind kind, std::int64_t first, std::span<const float> values) {
  file_.write(static_cast<std::size_t>(kind), first, values);
}

RankFile RankFileWriter::finish() {
  file_.finish();
  RankFile file;
  file.name = path_.filename().string();
  file.bytes = std::filesystem::file_size(path_);
  file.blocks = checksum_blocks(path_.string());
  return file;
}

}  // namespace shardscope::checkpoint
