// A checkpoint's manifest, its checksum made right, over a folder that holds one rank's file; whatever parts
// of whatever parameters it names are then read. The input is the manifest without its last line.
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "runtime/base/checksum.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/rank_file.h"
#include "runtime/checkpoint/safetensors.h"
#include "tests/fuzz/fuzz.h"

using namespace shardscope;

namespace {

/// Two times ten elements, as the manifest of the corpus says.
void make_folder(const std::string& folder) {
  mkdir(folder.c_str(), 0700);
  for (const std::uint32_t rank : {0U, 1U}) {
    checkpoint::RankFileWriter writer(folder, rank, 10);
    const std::vector<float> values(10, 0.5F);
    for (const base::StateKind kind : base::kStateKinds) writer.write(kind, 0, values);
    (void)writer.finish();
  }
}

/// What to_text() writes at the end.
std::string sealed(std::string_view body) {
  const std::uint64_t sum = base::checksum(std::as_bytes(std::span(body)));
  char line[48];
  std::snprintf(line, sizeof line, ",\n \"checksum\": \"%016llx\"\n}\n",
                static_cast<unsigned long long>(sum));
  return std::string(body) + line;
}

void read_some(const checkpoint::CheckpointReader& reader) {
  const auto& params = reader.manifest().params;
  for (std::size_t i = 0; i < std::min<std::size_t>(params.size(), 16); ++i) {
    const std::int64_t elems = params[i].elems;
    std::vector<float> out(static_cast<std::size_t>(std::min<std::int64_t>(elems, 64)));
    const auto n = static_cast<std::int64_t>(out.size());
    for (const std::int64_t first : {std::int64_t{0}, elems - n}) {
      for (const base::StateKind kind : base::kStateKinds)
        reader.read(kind, static_cast<plan::ParamId>(i), {first, first + n}, out.data());
    }
  }
}

struct Folder {
  Folder() { make_folder(place.path()); }
  ~Folder() { std::filesystem::remove_all(place.path()); }
  fuzz::ScratchPath place{".checkpoint"};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const std::string text = sealed(fuzz::text_of(data, size));
  try {
    const checkpoint::Manifest manifest = checkpoint::parse_manifest(text, "manifest");
    fuzz::must(checkpoint::to_text(checkpoint::parse_manifest(checkpoint::to_text(manifest), "again")) ==
               checkpoint::to_text(manifest));
    fuzz::write_file(folder.place.path() + "/" + checkpoint::kManifestName, text);
    read_some(checkpoint::CheckpointReader(folder.place.path()));
  } catch (const checkpoint::CheckpointError&) {
  }
  return 0;
}
