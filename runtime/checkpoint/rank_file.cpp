#include "runtime/checkpoint/rank_file.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/checkpoint/block_checksums.h"

namespace shardscope::checkpoint {
namespace {

// In the order of `kinds`: write() finds a tensor by its index in that list.
std::vector<TensorSpec> specs(std::int64_t elems, const std::vector<base::StateKind>& kinds,
                              const std::vector<std::int32_t>& columns, std::int64_t frozen_elems) {
  std::vector<TensorSpec> all;
  for (const base::StateKind kind : kinds) {
    // After the trained elements, so that element i of every tensor belongs to the same parameter.
    const std::int64_t frozen = kind == base::StateKind::master ? frozen_elems : 0;
    all.push_back({tensor_name(kind), TensorType::f32, {elems + frozen}});
  }
  // Last, and only if there are any, so that the other tensors' indices do not depend on it.
  if (!columns.empty()) {
    all.push_back({kColumnsName, TensorType::i32, {static_cast<std::int64_t>(columns.size())}});
  }
  return all;
}

}  // namespace

const char* tensor_name(base::StateKind kind) noexcept {
  switch (kind) {
    case base::StateKind::master:
      return "fp32";
    case base::StateKind::momentum:
      return "exp_avg";
    case base::StateKind::variance:
      return "exp_avg_sq";
    case base::StateKind::waiting_sum:
      return "zenflow_sum";
    case base::StateKind::published:
      return "zenflow_published";
  }
  return "";
}

// At least five digits, so that a listing is in the order of ranks.
std::string rank_file_name(std::uint32_t rank) {
  char name[40];
  std::snprintf(name, sizeof name, "rank-%05u.safetensors", rank);
  return name;
}

RankFileWriter::RankFileWriter(const std::filesystem::path& folder, std::uint32_t rank, std::int64_t elems,
                               std::vector<base::StateKind> kinds, const std::vector<std::int32_t>& columns,
                               std::int64_t frozen_elems)
    : path_(folder / rank_file_name(rank)),
      kinds_(std::move(kinds)),
      file_(path_.string(), specs(elems, kinds_, columns, frozen_elems), {}) {
  // Written at once: they are known, and few.
  if (!columns.empty()) file_.write_integers(kinds_.size(), columns);
}

void RankFileWriter::write(base::StateKind kind, std::int64_t first, std::span<const float> values) {
  const auto tensor = std::find(kinds_.begin(), kinds_.end(), kind) - kinds_.begin();
  file_.write(static_cast<std::size_t>(tensor), first, values);
}

RankFile RankFileWriter::finish() {
  // First: the file read back below is the one on the disk under its final name.
  file_.finish();
  RankFile file;
  file.name = path_.filename().string();
  file.bytes = std::filesystem::file_size(path_);
  // Read back, since pieces were written in any order, but checksums are of the file's blocks.
  file.blocks = checksum_blocks(path_.string());
  return file;
}

}  // namespace shardscope::checkpoint
