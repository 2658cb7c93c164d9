// Writes the seeds of the binary formats to a corpus folder: small, whole, and made by the code that writes
// the real ones. The other seeds are text and kept by hand.
//   make_fuzz_corpus tests/corpora/fuzz
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "app/store/block_codec.h"
#include "app/store/chunk.h"
#include "app/store/chunk_columns.h"
#include "app/store/packed.h"
#include "app/store/run_tables_codec.h"
#include "app/store/tile.h"
#include "instrumentation/wire.h"
#include "runtime/checkpoint/rank_file.h"
#include "tests/fuzz/seed_recording.h"

namespace {

namespace fs = std::filesystem;
using namespace shardscope;
using namespace shardscope::instrumentation;

fs::path g_root;
std::vector<std::string> g_frames;

void write(const std::string& target, const std::string& name, const void* data, std::size_t size,
           const std::string& prefix = {}) {
  fs::create_directories(g_root / target);
  std::ofstream file(g_root / target / name, std::ios::binary);
  file << prefix;
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
}

/// One thing of the target `store`, or one frame of the target `collector`: two or one bytes of kind, a
/// length, the bytes.
std::string block(const std::string& kind, const void* data, std::size_t size) {
  const auto length = static_cast<std::uint16_t>(size);
  std::string out = kind;
  out.append(reinterpret_cast<const char*>(&length), sizeof length);
  return out.append(static_cast<const char*>(data), size);
}

void write(wire::From from, const std::string& name, wire::Body body) {
  const wire::Frame frame = wire::encode({{0, 7, g_frames.size(), "run"}, std::move(body)});
  const std::string kind(1, static_cast<char>(from));
  write("wire", name, frame.data(), frame.size(), kind);
  g_frames.push_back(block(kind, frame.data(), frame.size()));
}

/// The manifest of the folder that checkpoint_target.cpp makes, without its checksum.
void write_manifest() {
  const fs::path folder = fs::temp_directory_path() / "shardscope-seed-checkpoint";
  fs::create_directories(folder);
  checkpoint::Manifest manifest;
  manifest.progress = {3, 6, 2, plan::LossScaler::Saved{}, std::nullopt};
  manifest.data = {1, 20, 40, 7, 9};
  manifest.world = 2;
  manifest.stage = 3;
  manifest.type = "bf16";
  manifest.model = "seed";
  manifest.params = {{"fc.weight", {5, 3}, 15}, {"fc.bias", {5}, 5}};
  manifest.config_json = "{\"train_batch_size\": 4}";
  for (const std::uint32_t rank : {0U, 1U}) {
    checkpoint::RankFileWriter writer(folder, rank, 10);
    const std::vector<float> values(10, 0.5F);
    for (const base::StateKind kind : base::kStateKinds) writer.write(kind, 0, values);
    manifest.files.push_back(writer.finish());
  }
  manifest.files[0].slices = {{0, 0, 8}, {1, 0, 2}};
  manifest.files[1].slices = {{0, 8, 7}, {1, 2, 3}};
  const std::string text = checkpoint::to_text(manifest);
  write("checkpoint", "two_ranks", text.data(), text.rfind(",\n \"checksum\""));
  fs::remove_all(folder);
}

/// What a block of every kind of event has in a recording, each without checksum and compression.
void write_levels() {
  store::RankState state{store::RankState::For::blocks};
  for (const Event& event : fuzz::seed_events()) {
    state.add(event, static_cast<std::int64_t>(event.ticks), {});
  }
  const store::Block block = store::seal(0, state, {}, {});
  store::TileMaker tile;
  tile.append(store::decode_page(block.page.data(), block.page.size()));
  const auto put = [](char which, const std::string& name, const std::vector<std::byte>& packed) {
    const std::vector<std::byte> bytes = store::unpack(packed.data(), packed.size());
    write("levels", name, bytes.data(), bytes.size(), std::string(1, which));
  };
  put(0, "tile", tile.rows().front().bytes);
  put(1, "page", block.page);
  put(2, "block", store::encode_block(block));
  put(3, "statuses", block.statuses);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  g_root = argv[1];
  using From = wire::From;
  wire::Batch batch;
  batch.dropped_total = batch.dropped_here = 2;
  batch.end_ns = 10'000;
  batch.events = fuzz::seed_events();
  write(From::rank_publish, "batch", batch);
  write(From::rank_publish, "tables", wire::Tables{fuzz::seed_tables()});
  write(From::rank_publish, "text", wire::Text{5, Severity::error, "words"});
  write(From::rank_publish, "name", wire::Name{3, "matmul"});
  write(From::rank_publish, "finish", wire::Finish{1, 9, 2, "ended"});
  write(From::rank_control, "hello", wire::Hello{2, 100, "host", "clock"});
  write(From::rank_control, "pong", wire::Pong{1, 2, 3, 4});
  write(From::rank_control, "prepared", wire::Prepared{1, 20});
  write(From::rank_control, "position", wire::Position{{true, 5, GateKind::bucket, 2}, 6, 1, 3});
  write(From::collector_control, "ping", wire::Ping{1, 2});
  write(From::collector_control, "command",
        wire::RankCommand{
            1, wire::RankCommand::Kind::resume, 3, false, 10, {StopRule::Kind::run_to_step, 4, 0}, {}});
  wire::RankCommand keep;
  keep.kind = wire::RankCommand::Kind::keep;
  keep.at_ns = 5;
  keep.until_ns = 9;
  keep.text = "slow_step took twice as long";
  keep.step = 3;
  keep.of_rank = 1;
  write(From::collector_control, "keep", keep);
  write(From::rank_control, "relay_hello", wire::RelayHello{"host", "clock", {{0, 2}, {4, 1}}, {{1, 1}}, 7});
  write(From::collector_control, "received", wire::Received{1, 2, {{1, 3, 4}}});
  write(From::viewer, "poll", wire::ViewPoll{1, 2, 3, 4, true});
  write(From::viewer, "view_command", wire::ViewCommand{1, wire::ViewCommand::Kind::pause, {}, {}});
  wire::ViewReply reply;
  reply.note = "note";
  reply.ranks = {{0, true, false, 0, 10, "host", "", 100, 2, 0, 5, 6, 7, {}}};
  wire::ViewItem item;
  item.text = "text";
  item.data = {1, 2, 3};
  reply.items = {item};
  write(From::collector_view, "reply", reply);
  // Was accepted, and converted to an integer where it is shown.
  wire::ViewReply lease;
  lease.lease_left_s = std::numeric_limits<double>::quiet_NaN();
  write(From::collector_view, "reply_lease", lease);

  store::Chunk chunk;
  chunk.events = fuzz::seed_events();
  const std::vector<std::byte> encoded = chunk.encode();
  write("chunk", "every_kind", encoded.data(), encoded.size());
  for (const bool apart : {false, true}) {
    const store::ChunkColumns columns = store::encode_columns(chunk.events, apart);
    std::string sections(4, '\0');
    const auto count = static_cast<std::uint16_t>(chunk.events.size());
    const auto states = static_cast<std::uint16_t>(columns.state_events);
    std::memcpy(sections.data(), &count, sizeof count);
    std::memcpy(sections.data() + sizeof count, &states, sizeof states);
    sections = block(sections, columns.states.data(), columns.states.size());
    sections = block(sections, columns.others.data(), columns.others.size());
    write("columns", apart ? "apart" : "together", sections.data(), sections.size());
  }
  const std::vector<std::byte> coded = store::encode_tables(fuzz::seed_tables());
  write("tables", "small", coded.data(), coded.size());
  std::string all;
  all += block(std::string(2, 1), coded.data(), coded.size());
  all += block(std::string(2, 0), encoded.data(), encoded.size());
  all += block(std::string("\2\0", 2), "matmul", 6) + std::string(4, 0);
  all += block(std::string("\3\0", 2), "words", 5) + std::string(8, 1);
  all += block(std::string("\4\0", 2), "host", 4) + std::string(32, 0);
  write("store", "one_of_each", all.data(), all.size());
  std::string frames;
  for (const std::string& frame : g_frames) frames += frame;
  write("collector", "one_of_each", frames.data(), frames.size());

  const std::string path = (fs::temp_directory_path() / "shardscope-seed.zscope").string();
  const std::string whole = fuzz::seed_recording(path);
  fs::remove(path);
  write("recording", "whole", whole.data(), whole.size());
  std::string change("\0\0\3", 3);
  change = block(change, encoded.data(), encoded.size());
  write("rows", "chunk", change.data(), change.size());
  change = block(std::string("\1\0\3", 3), coded.data(), coded.size());
  write("rows", "tables", change.data(), change.size());
  change = std::string("\2\0\0", 3) + std::string(8, '\x7f');
  write("rows", "number", change.data(), change.size());
  write_manifest();
  write_levels();
  return 0;
}
