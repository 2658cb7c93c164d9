// What is on the disk when saving ends anywhere. The file operations that saving uses are replaced in this
// program: the n-th one kills the process, or finds the disk full.
#include "runtime/checkpoint/checkpoint_folder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/checkpoint/block_checksums.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/consolidate.h"
#include "runtime/checkpoint/rank_file.h"

namespace {

enum class Fault { none, kill, disk_full };
Fault fault = Fault::none;
long operations_left = 0;

/// Counts a file operation; true: it has to fail.
bool faulty(bool writes) {
  if (fault == Fault::none || (fault == Fault::disk_full && !writes)) return false;
  if (--operations_left > 0) return false;
  if (fault == Fault::kill) raise(SIGKILL);
  errno = ENOSPC;
  return true;
}

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  if (faulty(true)) return -1;
  return real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite")(file, data, bytes, offset);
}
ssize_t pwrite64(int file, const void* data, size_t bytes, off64_t offset) {
  if (faulty(true)) return -1;
  return real<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64")(file, data, bytes, offset);
}
ssize_t write(int file, const void* data, size_t bytes) {
  if (faulty(true)) return -1;
  return real<ssize_t (*)(int, const void*, size_t)>("write")(file, data, bytes);
}
int fsync(int file) {
  if (faulty(true)) return -1;
  return real<int (*)(int)>("fsync")(file);
}
int rename(const char* from, const char* to) noexcept {
  if (faulty(false)) return -1;
  return real<int (*)(const char*, const char*)>("rename")(from, to);
}
int renameat2(int a, const char* from, int b, const char* to, unsigned flags) noexcept {
  if (faulty(false)) return -1;
  return real<int (*)(int, const char*, int, const char*, unsigned)>("renameat2")(a, from, b, to, flags);
}
int unlinkat(int folder, const char* name, int flags) noexcept {
  if (faulty(false)) return -1;
  return real<int (*)(int, const char*, int)>("unlinkat")(folder, name, flags);
}
}

namespace shardscope::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kElems = 300'000;  // several blocks
constexpr std::uint32_t kWorld = 2;

/// The value of every element of the checkpoint of `step`.
float value_of(std::int64_t step, base::StateKind kind) {
  return static_cast<float>(10 * step + static_cast<int>(kind));
}

void save(const fs::path& folder, std::int64_t step, std::int64_t keep) {
  const CheckpointFolder checkpoints(folder);
  Manifest manifest;
  manifest.progress.step = step;
  manifest.world = kWorld;
  manifest.type = "fp32";
  manifest.model = "one parameter";
  manifest.params.push_back({"weight", {kElems}, kElems});
  manifest.config_json = "{}";
  checkpoints.begin(step);
  try {
    for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
      const std::int64_t elems = kElems / kWorld;
      RankFileWriter writer(checkpoints.partial(step), rank, elems);
      for (const base::StateKind kind : base::kStateKinds) {
        writer.write(kind, 0, std::vector<float>(static_cast<std::size_t>(elems), value_of(step, kind)));
      }
      manifest.files.push_back(writer.finish());
      manifest.files.back().slices.push_back({0, elems * rank, elems});
    }
    checkpoints.commit(manifest);
    checkpoints.prune(step, keep);
  } catch (...) {
    fault = Fault::none;
    checkpoints.discard(step);
    throw;
  }
}

/// Reads all of the latest checkpoint; its step.
std::int64_t step_of_whole(const fs::path& folder) {
  const CheckpointReader reader(folder);
  const std::int64_t step = reader.manifest().progress.step;
  std::vector<float> values(kElems);
  for (const base::StateKind kind : base::kStateKinds) {
    reader.read(kind, plan::ParamId{0}, {0, kElems}, values.data());
    for (const float value : values) {
      if (value != value_of(step, kind)) throw CheckpointError("another checkpoint's value");
    }
  }
  return step;
}

class CheckpointOnDisk : public ::testing::Test {
 protected:
  CheckpointOnDisk()
      : folder_(fs::path(::testing::TempDir()) /
                ("folder-" + std::to_string(::getpid()) + "-" +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
  }
  ~CheckpointOnDisk() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string error_of_reading() const {
    try {
      step_of_whole(folder_);
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "";
  }
  fs::path folder_;
};

/// Saves `step` in a process that dies at its n-th file operation; false once it lives to the end.
bool killed_while_saving(const fs::path& folder, std::int64_t step, std::int64_t keep, long n) {
  const pid_t child = fork();
  if (child == 0) {
    operations_left = n;
    fault = Fault::kill;
    save(folder, step, keep);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

TEST_F(CheckpointOnDisk, IsWholeWhereverSavingIsKilled) {
  save(folder_, 1, 1);
  long n = 1;
  // A new step, and then the same step once more, which replaces a checkpoint.
  for (const std::int64_t step : {2, 2}) {
    const std::int64_t before = step_of_whole(folder_);
    bool new_seen = false;
    for (n = 1; killed_while_saving(folder_, step, 1, n); ++n) {
      const std::int64_t found = step_of_whole(folder_);
      EXPECT_TRUE(found == before || found == step) << "killed at operation " << n;
      EXPECT_TRUE(!new_seen || found == step) << "killed at operation " << n;
      new_seen = found == step;
      if (before != step && new_seen) {  // as before, for the next point
        fs::remove_all(folder_);
        save(folder_, 1, 1);
        new_seen = false;
      }
    }
    EXPECT_GT(n, 15) << "the operations were not seen";
    EXPECT_EQ(step_of_whole(folder_), step);
  }
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder_)) left.push_back(entry.path().filename().string());
  EXPECT_EQ(left.size(), 2U) << "latest and one checkpoint";
}

TEST_F(CheckpointOnDisk, StaysWhenTheDiskIsFull) {
  save(folder_, 1, 0);
  int failures = 0;
  for (long n = 1;; ++n) {
    operations_left = n;
    fault = Fault::disk_full;
    try {
      save(folder_, 2, 0);
      fault = Fault::none;
      break;
    } catch (const CheckpointError& error) {
      EXPECT_NE(std::string(error.what()).find("No space left on device"), std::string::npos) << error.what();
      ++failures;
    }
    EXPECT_NO_THROW(step_of_whole(folder_)) << "full at operation " << n;
    EXPECT_FALSE(fs::exists(CheckpointFolder(folder_).partial(2)));
  }
  EXPECT_GT(failures, 10);
  EXPECT_EQ(step_of_whole(folder_), 2);
}

TEST_F(CheckpointOnDisk, KeepsTheNewest) {
  for (const std::int64_t step : {1, 2, 10, 11}) save(folder_, step, 2);
  EXPECT_FALSE(fs::exists(folder_ / "step-2"));
  EXPECT_TRUE(fs::exists(folder_ / "step-10"));
  EXPECT_EQ(step_of_whole(folder_), 11);
  EXPECT_EQ(step_of_whole(folder_ / "step-10"), 10);
}

TEST_F(CheckpointOnDisk, DamageIsNamed) {
  save(folder_, 1, 0);
  const fs::path file = folder_ / "step-1" / "rank-00001.safetensors";
  for (const fs::path& damaged : {file, folder_ / "step-1" / kManifestName}) {
    const auto bytes = static_cast<std::int64_t>(fs::file_size(damaged));
    for (const std::int64_t at : {std::int64_t{0}, std::int64_t{30}, bytes / 2, bytes - 2}) {
      const auto flip = [&] {
        std::fstream stream(damaged, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekg(at);
        const int byte = stream.get();
        stream.seekp(at);
        stream.put(static_cast<char>(byte ^ 4));
      };
      flip();
      EXPECT_NE(error_of_reading().find(damaged.string()), std::string::npos)
          << at << ": " << error_of_reading();
      flip();
      EXPECT_EQ(error_of_reading(), "");
    }
  }
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_NE(error_of_reading().find(file.string() + ": has "), std::string::npos) << error_of_reading();
  fs::remove(file);
  EXPECT_NE(error_of_reading().find(file.string() + ": No such file"), std::string::npos)
      << error_of_reading();
  fs::remove_all(folder_);
  EXPECT_NE(error_of_reading().find("holds no checkpoint"), std::string::npos);
}

// The header's last bytes lie in the second block: their checksum is compared before they are parsed.
TEST_F(CheckpointOnDisk, AHeaderThatEndsInTheNextBlockIsVerifiedFirst) {
  Manifest manifest;
  manifest.type = "fp32";
  manifest.model = "one parameter";
  manifest.params.push_back({"weight", {2}, 2});
  manifest.config_json = "{}";
  const CheckpointFolder checkpoints(folder_);
  checkpoints.begin(0);
  RankFileWriter writer(checkpoints.partial(0), 0, 2);
  for (const base::StateKind kind : base::kStateKinds) writer.write(kind, 0, std::vector<float>{1, 2});
  RankFile described = writer.finish();
  const fs::path partial = checkpoints.partial(0) / described.name;
  std::string text(fs::file_size(partial), '\0');
  std::ifstream(partial, std::ios::binary).read(text.data(), static_cast<std::streamsize>(text.size()));
  std::uint64_t header = 0;
  std::memcpy(&header, text.data(), sizeof header);
  // Spaces, which the format allows there; 8 bytes of length come before.
  constexpr std::uint64_t kHeader = kBlockBytes - 4;
  text.insert(8 + header, kHeader - header, ' ');
  std::memcpy(text.data(), &kHeader, sizeof kHeader);
  std::ofstream(partial, std::ios::binary) << text;
  described.bytes = text.size();
  described.blocks = checksum_blocks(partial.string());
  described.slices = {{0, 0, 2}};
  manifest.files.push_back(described);
  checkpoints.commit(manifest);

  float value = 0;
  CheckpointReader(folder_).read(base::StateKind::master, plan::ParamId{0}, {1, 2}, &value);
  EXPECT_EQ(value, 2);
  text[kBlockBytes + 1] = '?';
  std::ofstream(folder_ / "step-0" / described.name, std::ios::binary) << text;
  try {
    CheckpointReader(folder_).read(base::StateKind::master, plan::ParamId{0}, {1, 2}, &value);
    FAIL() << "damage was not seen";
  } catch (const CheckpointError& error) {
    EXPECT_NE(std::string(error.what()).find("the checksum of bytes " + std::to_string(kBlockBytes) + " to "),
              std::string::npos)
        << error.what();
  }
}

// A manifest with a right checksum whose slices add up to more than 64 bits.
TEST(Manifest, SlicesAreBoundedByTheBytesOfTheirFile) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const auto error_of = [](const std::vector<FileSlice>& slices) -> std::string {
    Manifest manifest;
    manifest.params = {{"a", {2}, 2}, {"b", {kHuge}, kHuge}, {"c", {kHuge}, kHuge}};
    manifest.config_json = "{}";
    manifest.files = {{"rank", 11, {0}, slices}};
    try {
      static_cast<void>(parse_manifest(to_text(manifest), "manifest"));
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of({{0, 0, 2}}), "");
  const std::string more = "rank: its slices have more elements than fit in 11 bytes";
  for (const std::vector<FileSlice>& slices :
       {std::vector<FileSlice>{{0, 0, 2}, {1, 0, 1}}, {{1, 0, kHuge}, {2, 0, kHuge}}}) {
    EXPECT_NE(error_of(slices).find(more), std::string::npos) << error_of(slices);
  }
}

}  // namespace
}  // namespace shardscope::checkpoint
