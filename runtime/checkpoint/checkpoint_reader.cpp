#include "runtime/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/checksum.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/open_file.h"
#include "runtime/checkpoint/block_checksums.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/rank_file.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/plan/model_check.h"

namespace shardscope::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Advice for all damage of a file: none can be repaired here.
constexpr const char* kAdvice = "; use another checkpoint";

std::string read_text(const fs::path& path) {
  try {
    return base::read_file(path.string());
  } catch (const base::FileError& error) {
    throw CheckpointError("checkpoint: " + path.string() + ": " + error.what());
  }
}

}  // namespace

/// A mapped file whose blocks are verified on first use.
class CheckpointReader::File {
 public:
  /// Elements in the tensor of weights, and in each of the others.
  struct Rows {
    std::int64_t weights = 0, states = 0;
  };
  File(const fs::path& path, const RankFile& described, const Rows& rows)
      : path_(path.string()), described_(described), file_(map(path_)), verified_(described.blocks.size()) {
    const std::span<const std::byte> bytes = file_.bytes();
    // Checked when the checkpoint was opened, but the mapped file may have changed since.
    if (bytes.size() != described.bytes) {
      throw CheckpointError("checkpoint: " + path_ + ": changed its size" + kAdvice);
    }
    // The header's length first, then the header.
    const std::size_t first = std::min<std::size_t>(bytes.size(), 8);
    verify(0, first);
    // Little-endian, whatever this machine is.
    std::uint64_t header = 0;
    for (std::size_t i = 0; i < first; ++i) {
      header |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
    }
    // The header ends at 8 + header bytes; compared by subtraction, since the sum could overflow.
    verify(0, header < bytes.size() - first ? first + static_cast<std::size_t>(header) : bytes.size());
    try {
      // Checks the rules of the format; the manifest's values are checked below.
      const SafetensorsHeader parsed = parse_safetensors(bytes);
      // By kind, as begin_. Weights and both moments are required; ZenFlow's tensors are optional.
      for (std::size_t i = 0; i < base::kStateKindCount; ++i) {
        const TensorInfo* found = find(parsed, tensor_name(static_cast<base::StateKind>(i)));
        if (found == nullptr && i >= base::kStateKinds.size()) continue;
        // The tensor of weights also has the frozen ones, after the trained ones.
        const bool weights = static_cast<base::StateKind>(i) == base::StateKind::master;
        const std::int64_t elems = weights ? rows.weights : rows.states;
        if (found == nullptr || found->type != TensorType::f32 || found->elems != elems) {
          throw CheckpointError(std::string("tensor \"") + tensor_name(static_cast<base::StateKind>(i)) +
                                "\" is not what the manifest says");
        }
        // Never 0 for an existing tensor: data begin after the header.
        begin_[i] = parsed.data_begin + found->begin;
      }
      if (const TensorInfo* columns = find(parsed, kColumnsName)) {
        if (columns->type != TensorType::i32) throw CheckpointError("zenflow_columns are no int32");
        columns_begin_ = parsed.data_begin + columns->begin;
        columns_ = static_cast<std::size_t>(columns->elems);
      }
    } catch (const CheckpointError& error) {
      throw CheckpointError("checkpoint: " + path_ + ": " + error.what());
    }
  }

  void read(base::StateKind kind, std::int64_t first, std::int64_t elems, float* out) {
    const std::size_t tensor = begin_[static_cast<std::size_t>(kind)];
    // Kinds that only a run with ZenFlow writes.
    if (tensor == 0) {
      throw CheckpointError("checkpoint: " + path_ + ": has no tensor \"" + tensor_name(kind) + "\"" +
                            kAdvice);
    }
    const std::size_t begin = tensor + static_cast<std::size_t>(first) * sizeof(float);
    const std::size_t bytes = static_cast<std::size_t>(elems) * sizeof(float);
    // Inside the file: the parser checked the tensor, CheckpointReader::read() the range within its slice.
    verify(begin, begin + bytes);
    std::memcpy(out, file_.bytes().data() + begin, bytes);
  }

  [[nodiscard]] std::vector<std::int32_t> columns() {
    std::vector<std::int32_t> columns(columns_);
    const std::size_t bytes = columns_ * sizeof(std::int32_t);
    verify(columns_begin_, columns_begin_ + bytes);
    // Without columns the vector has no memory.
    if (bytes > 0) std::memcpy(columns.data(), file_.bytes().data() + columns_begin_, bytes);
    return columns;
  }

 private:
  // By name: the set of tensors depends on the run.
  static const TensorInfo* find(const SafetensorsHeader& header, const char* name) {
    const auto found = std::find_if(header.tensors.begin(), header.tensors.end(),
                                    [&](const TensorInfo& tensor) { return tensor.name == name; });
    return found == header.tensors.end() ? nullptr : &*found;
  }

  // Mapped, not read: often only a small part of another rank's file is needed.
  static base::MappedFile map(const std::string& path) {
    try {
      return base::MappedFile(path);
    } catch (const base::FileError& error) {
      throw CheckpointError("checkpoint: " + path + ": " + error.what());
    }
  }

  void verify(std::size_t begin, std::size_t end) {
    // Each block once: successive reads often have the same block.
    for (std::size_t block = begin / kBlockBytes; block * kBlockBytes < end; ++block) {
      if (verified_[block]) continue;
      const std::size_t at = block * kBlockBytes;
      // The last block may be short.
      const std::size_t bytes = std::min(kBlockBytes, file_.bytes().size() - at);
      if (base::checksum(file_.bytes().subspan(at, bytes)) != described_.blocks[block]) {
        throw CheckpointError("checkpoint: " + path_ + ": damaged, the checksum of bytes " +
                              std::to_string(at) + " to " + std::to_string(at + bytes) + " does not match" +
                              kAdvice);
      }
      verified_[block] = true;
    }
  }

  std::string path_;
  // In the reader's manifest, which outlives its files.
  const RankFile& described_;
  base::MappedFile file_;
  std::vector<bool> verified_;
  std::array<std::size_t, base::kStateKindCount> begin_{};  ///< bytes from the start of the file; 0: none
  std::size_t columns_begin_ = 0, columns_ = 0;
};

CheckpointReader::CheckpointReader(const fs::path& path)
    : folder_(find_checkpoint(path)),
      manifest_(parse_manifest(read_text(folder_ / kManifestName), (folder_ / kManifestName).string())),
      pieces_(manifest_.params.size()),
      files_(manifest_.files.size()) {
  for (std::uint32_t number = 0; number < manifest_.files.size(); ++number) {
    const RankFile& file = manifest_.files[number];
    const fs::path name = folder_ / file.name;
    std::error_code error;
    // Checks all files now: otherwise only the ranks whose states are in a truncated file would fail, later,
    // while others continue.
    const std::uintmax_t bytes = fs::file_size(name, error);
    if (error) throw CheckpointError("checkpoint: " + name.string() + ": " + error.message() + kAdvice);
    if (bytes != file.bytes) {
      throw CheckpointError("checkpoint: " + name.string() + ": has " + std::to_string(bytes) +
                            " bytes, but was written with " + std::to_string(file.bytes) + kAdvice);
    }
    // Begin of the next slice in the two kinds of tensors, in the order of the manifest and the file. No
    // overflow: parse_manifest() bounds the sum of a file's slices by the file's bytes.
    std::int64_t at = 0;
    std::int64_t state_at = 0;
    for (const FileSlice& slice : file.slices) {
      pieces_[slice.param].push_back({slice.offset, slice.elems, number, at, state_at});
      at += slice.elems;
      if (manifest_.params[slice.param].trainable) state_at += slice.elems;
    }
  }
  // Every parameter must be tiled by its pieces: read() then need not check for gaps.
  for (std::size_t param = 0; param < pieces_.size(); ++param) {
    std::vector<Piece>& pieces = pieces_[param];
    // Files are in the order of ranks: in the first layout of stage 1 (S1) a parameter may begin on a later
    // rank than it ends on.
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) { return a.offset < b.offset; });
    std::int64_t covered = 0;
    // -1 stays: no piece begins there.
    for (const Piece& piece : pieces) covered = piece.offset == covered ? covered + piece.elems : -1;
    if (covered != manifest_.params[param].elems) {
      throw CheckpointError("checkpoint: " + (folder_ / kManifestName).string() + ": the slices of " +
                            manifest_.params[param].name + " leave holes or overlap");
    }
  }
}

CheckpointReader::~CheckpointReader() = default;

void CheckpointReader::require_model(const plan::ModelPlan& model) const {
  std::string problems;
  const std::size_t most = std::max(model.params.size(), manifest_.params.size());
  // Up to a readable length: for an entirely different model every parameter differs.
  for (std::size_t i = 0; i < most && problems.size() < 400; ++i) {
    // Position by position: ids are indices in this list, so an additional parameter shifts all later ones.
    const SavedParam* saved = i < manifest_.params.size() ? &manifest_.params[i] : nullptr;
    const plan::ParamPlan* wanted = i < model.params.size() ? &model.params[i] : nullptr;
    if (saved != nullptr && wanted != nullptr && saved->name == wanted->name &&
        saved->shape == wanted->shape) {
      // The same parameter, but one has states and the other does not: they cannot be invented.
      if (saved->trainable == wanted->trainable) continue;
      problems +=
          "\n  " + saved->name + (saved->trainable ? " was trained and is" : " was frozen and is not") +
          " frozen now; to start from the weights alone, consolidate the checkpoint and give the file to "
          "--init";
      continue;
    }
    problems += "\n  parameter " + std::to_string(i) + ": the checkpoint has " +
                (saved == nullptr ? "none" : saved->name + " " + plan::shape_text(saved->shape)) +
                ", the model " +
                (wanted == nullptr ? "none" : wanted->name + " " + plan::shape_text(wanted->shape));
  }
  // Names and shapes do not show what a module computes, such as its activation or its number of heads.
  if (problems.empty() && manifest_.model_fingerprint != model_fingerprint(model)) {
    problems = "\n  the parameters are the same, but what the modules compute is not";
  }
  if (!problems.empty()) {
    throw CheckpointError("checkpoint: " + folder() + " is of another model (" + manifest_.model + ") than " +
                          model.spec.name + "; continue with the model the run began with:" + problems);
  }
}

CheckpointReader::File& CheckpointReader::file(std::uint32_t number) const {
  std::unique_ptr<File>& file = files_.at(number);
  // Mapped on first use: a rank may need few of the files.
  if (!file) {
    const RankFile& described = manifest_.files[number];
    File::Rows rows;
    for (const FileSlice& slice : described.slices) {
      rows.weights += slice.elems;
      if (manifest_.params[slice.param].trainable) rows.states += slice.elems;
    }
    file = std::make_unique<File>(folder_ / described.name, described, rows);
  }
  return *file;
}

std::vector<std::int32_t> CheckpointReader::columns(std::uint32_t rank) const { return file(rank).columns(); }

void CheckpointReader::read(base::StateKind kind, plan::ParamId param, plan::Range range, float* out) const {
  const std::vector<Piece>& pieces = pieces_.at(plan::raw(param));
  if (range.begin < 0 || range.end > manifest_.params[plan::raw(param)].elems) {
    throw CheckpointError("checkpoint: elements " + std::to_string(range.begin) + " to " +
                          std::to_string(range.end) + " of " + manifest_.params[plan::raw(param)].name +
                          " do not exist");
  }
  const bool weights = kind == base::StateKind::master;
  if (!weights && !manifest_.params[plan::raw(param)].trainable) {
    throw CheckpointError("checkpoint: " + folder() + ": " + manifest_.params[plan::raw(param)].name +
                          " is frozen: it has weights and no \"" + tensor_name(kind) + "\"");
  }
  // The piece that contains range.begin: the first whose end is greater.
  auto piece = std::upper_bound(pieces.begin(), pieces.end(), range.begin,
                                [](std::int64_t at, const Piece& p) { return at < p.offset + p.elems; });
  // Pieces are contiguous up to the end of the parameter, so `piece` stays valid while elements are left to
  // read.
  for (std::int64_t at = range.begin; at < range.end; ++piece) {
    const std::int64_t elems = std::min(range.end, piece->offset + piece->elems) - at;
    file(piece->file).read(kind, (weights ? piece->at : piece->state_at) + (at - piece->offset), elems, out);
    out += elems;
    at += elems;
  }
}

}  // namespace shardscope::checkpoint
