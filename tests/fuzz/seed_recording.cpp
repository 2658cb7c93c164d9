#include "tests/fuzz/seed_recording.h"

#include <unistd.h>

#include <fstream>
#include <iterator>

#include "app/store/chunk.h"
#include "app/store/recording.h"

namespace shardscope::fuzz {

using namespace instrumentation;

RunTables seed_tables() {
  RunTables t;
  t.run_id = "run";
  t.model = "seed";
  t.host = "host";
  t.config_json = "{}";
  t.world = 2;
  t.stage = 3;
  t.elems = 10;
  t.modules = {{0, kNoId, "", "Root", {}, true}, {1, 0, "fc", "Linear", {0}, true}};
  t.params = {{0, "fc.weight", "fp32", {5, 2}, 10, 5, 0, {1}, false}};
  t.slices = {{0, 0, 0, 0, 5, 0}, {0, 1, 5, 0, 5, 0}};
  return t;
}

std::vector<Event> seed_events() {
  std::vector<Event> out;
  std::uint64_t at = 1'000;
  for (std::uint16_t kind = 1; kind <= static_cast<std::uint16_t>(EventKind::message); ++kind) {
    Event event;
    event.ticks = at += 100;
    event.kind = static_cast<EventKind>(kind);
    event.stream = static_cast<StreamId>(kind % 3);
    event.a = kind % 2;
    event.b = 1;
    event.c = kind;
    event.v0 = 4096 + kind;
    event.v1 = 8192 * kind;
    out.push_back(event);
  }
  return out;
}

std::string seed_recording(const std::string& path) {
  unlink(path.c_str());
  {
    store::RecordingWriter writer(path);
    store::Store store;
    store.set_tables(0, seed_tables());
    writer.tables(0, seed_tables());
    store::Chunk chunk;
    chunk.events = seed_events();
    store.ingest(chunk);
    writer.append(chunk);
    writer.message({2'000, 0, Severity::info, "seed"});
    writer.name(0, 0, "matmul");
    store::RankRow row;
    writer.rank(row);
    writer.commit();
    writer.finish(store);
  }
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace shardscope::fuzz
