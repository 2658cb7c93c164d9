// A run whose recorder has deleted the oldest events.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "app/store/recording.h"
#include "tests/app/store/endless_run.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

/// Two ranks whose recorder keeps the newest 1 MB of sixteen rounds of a run.
class LimitedRun : public testing::Test {
 protected:
  LimitedRun() {
    const auto file =
        std::filesystem::temp_directory_path() / ("shardscope-not-kept-" + std::to_string(::getpid()));
    store::EndlessRun run(2);
    store::Store totals(store::Keep::totals);
    {
      store::RecordingWriter part(file.string(), {.max_bytes = 1'000'000});
      for (const ev::RunTables& tables : run.run().tables) {
        part.tables(tables.rank, tables);
        totals.set_tables(tables.rank, tables);
      }
      for (int turn = 0; turn < 16; ++turn) {
        run.again([&](const store::Chunk& chunk) {
          part.append(chunk);
          totals.ingest(chunk);
        });
        part.retain(totals);
        part.commit();
      }
      part.finish(totals);
    }
    store_ = store::open_recording(file.string(), nullptr);
    std::filesystem::remove(file);
  }
  store::Store store_;
};

}  // namespace shardscope::gui
