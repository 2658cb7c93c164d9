// One run, recorded in one file and in parts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/store/recording_parts.h"
#include "app/store/rotation.h"
#include "tests/app/store/part_of_a_run.h"

namespace shardscope::store {

class PartsOfARun : public PartOfARun {
 protected:
  static constexpr Rotation kSmall{.part_bytes = 300'000};

  /// `after_turn(turn)`: when everything of it is committed. `at_turn(writer, turn, totals)`: before it.
  void record_parts(const Rotation& rotation, const std::function<void(int)>& after_turn = {},
                    int turns = kTurns, const Retention& retention = {},
                    const std::function<void(RecordingWriter&, int, const Store&)>& at_turn = {}) {
    EndlessRun run(2);
    Store totals(Keep::totals);
    RecordingWriter whole(file("whole.zscope"));
    RecordingWriter parts(file("run.zscope"), retention, RecordingWriter::WallClock::of_the_collector,
                          rotation);
    for (const ev::RunTables& tables : run.run().tables) {
      for (RecordingWriter* writer : {&whole, &parts}) writer->tables(tables.rank, tables);
      totals.set_tables(tables.rank, tables);
    }
    for (int turn = 0; turn < turns; ++turn) {
      if (at_turn) at_turn(parts, turn, totals);
      for (RecordingWriter* writer : {&whole, &parts}) {
        writer->name(0, static_cast<std::uint32_t>(turn), "kernel " + std::to_string(turn));
        writer->message({totals.end_ns(), 0, ev::Severity::info, "turn " + std::to_string(turn)});
      }
      run.again([&](const Chunk& chunk) {
        whole.append(chunk);
        parts.append(chunk);
        totals.ingest(chunk);
      });
      parts.retain(totals);
      parts.commit();
      if (after_turn) after_turn(turn);
    }
    for (const RankRow& row : run.run().ranks) {
      RankRow now = row;
      now.events = 0;
      totals.set_rank(now);
    }
    whole.finish(totals);
    parts.finish(totals);
    EXPECT_EQ(parts.error(), "");
    totals_events_ = totals.event_count();
  }
  [[nodiscard]] std::string part(std::uint32_t number) const { return part_path(file("run.zscope"), number); }
  /// Numbers of the files that are there.
  [[nodiscard]] std::vector<std::uint32_t> there() const {
    std::vector<std::uint32_t> out;
    for (const NamedPart& named : parts_beside(file("run.zscope"), Unfinished::with))
      out.push_back(named.part);
    return out;
  }
  std::uint64_t totals_events_ = 0;
};

}  // namespace shardscope::store
