#include "runtime/checkpoint/block_checksums.h"

#include <fstream>

#include "runtime/base/checksum.h"
#include "runtime/checkpoint/safetensors.h"

namespace shardscope::checkpoint {

std::vector<std::uint64_t> checksum_blocks(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> block(kBlockBytes);
  std::vector<std::uint64_t> sums;
  // The file may end inside the last block: read() fails then, and gcount() returns the bytes read.
  while (file.read(reinterpret_cast<char*>(block.data()), static_cast<std::streamsize>(block.size())) ||
         file.gcount() > 0) {
    sums.push_back(base::checksum({block.data(), static_cast<std::size_t>(file.gcount())}));
  }
  // Stopped before the end of the file.
  if (!file.eof()) throw CheckpointError("checkpoint: " + path + ": cannot be read back");
  return sums;
}

}  // namespace shardscope::checkpoint
