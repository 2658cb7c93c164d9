// A run of three ranks and four parameters, written by hand: who owns what, and what is where at kLook, are
// known without the code that finds out.
#pragma once

#include <cstdint>
#include <utility>

#include "instrumentation/param_status.h"
#include "runtime/plan/scheduler.h"
#include "tests/app/store/event_builder.h"

namespace shardscope::gui::known {

namespace ev = shardscope::instrumentation;

inline constexpr std::uint32_t kRanks = 3, kParams = 4, kThirds = 3;
inline constexpr std::int64_t kElems = 1200;
inline constexpr std::int64_t kLook = 5000;
using enum plan::ParamStatus;

/// Of the k-th third of a parameter.
inline std::uint32_t owner(std::uint32_t param, std::uint32_t third) { return (2 * param + third) % kRanks; }
/// At kLook.
inline constexpr plan::ParamStatus kStatus[kRanks][kParams] = {
    {available, in_flight, not_available, available},
    {not_available, available, in_flight, available},
    {in_flight, not_available, available, available}};

inline ev::RunTables tables() {
  ev::RunTables t;
  t.run_id = "known";
  t.model = "known";
  t.world = t.local_world = kRanks;
  t.stage = 3;
  t.elems = kParams * kElems;
  t.param_bytes = 2;
  t.modules = {{0, ev::kNoId, "", "Root", {}, true},
               {1, 0, "h.0", "Block", {0, 1}, true},
               {2, 0, "h.1", "Block", {2}, true},
               {3, 0, "norm", "LayerNorm", {3}, true}};
  t.params = {{0, "h.0.qkv.weight", "bf16", {30, 40}, kElems, kElems / kRanks, 0, {1}, false},
              {1, "h.0.mlp.weight", "bf16", {30, 40}, kElems, kElems / kRanks, 0, {1}, false},
              {2, "h.1.qkv.weight", "bf16", {30, 40}, kElems, kElems / kRanks, 0, {2}, false},
              {3, "norm.weight", "bf16", {30, 40}, kElems, kElems / kRanks, 0, {3}, true}};
  for (std::uint32_t param = 0; param < kParams; ++param) {
    for (std::uint32_t third = 0; third < kThirds; ++third) {
      ev::SliceInfo slice;
      slice.param = param;
      slice.rank = owner(param, third);
      slice.param_offset = third * kElems / kThirds;
      slice.elems = kElems / kThirds;
      t.slices.push_back(slice);
    }
  }
  return t;
}

/// A parameter that is in flight was prefetched at 4000 with gather 40 + parameter; one that is available
/// came so at 2000 and 3000; one that is not was available too and released at 3500.
inline store::Store run() {
  using ev::EventKind;
  store::Store store;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    ev::RunTables t = tables();
    t.rank = rank;
    store.set_tables(rank, t);
    store::ChunkBuilder events(rank);
    const auto change = [&](std::int64_t at, std::uint32_t param, plan::ParamStatus to,
                            ev::StatusCause cause) {
      events.add(at, EventKind::param_status, ev::StreamId::compute, param,
                 ev::status_code(static_cast<std::uint8_t>(to), cause), kElems);
      events.chunk.events.back().b = tables().params[param].modules.front();
      events.chunk.events.back().c = 40 + param;
    };
    events.host(0, EventKind::step_begin, 7);
    const auto all = [&](std::int64_t at, plan::ParamStatus to, ev::StatusCause cause, auto&& which) {
      for (std::uint32_t param = 0; param < kParams; ++param) {
        if (which(kStatus[rank][param])) change(at, param, to, cause);
      }
    };
    all(2000, in_flight, ev::StatusCause::fetch, [](auto now) { return now != in_flight; });
    all(3000, available, ev::StatusCause::fetch, [](auto now) { return now != in_flight; });
    all(3500, not_available, ev::StatusCause::release, [](auto now) { return now == not_available; });
    all(4000, in_flight, ev::StatusCause::prefetch, [](auto now) { return now == in_flight; });
    events.host(8000, EventKind::step_end, 7);
    store.ingest(events.chunk);
  }
  return store;
}

/// Of each rank: parameter 0 is whole from 1000 to 8000 and used from 1200 to 2000 and from 5000 to 6000,
/// parameter 3 is persistent from 500 on; the step lasts from 0 to 9000, another begins at 9500 and goes on.
/// `unit`: of these times, in ns.
inline store::Store used_run(bool statuses = true, std::int64_t unit = 1) {
  using ev::EventKind;
  store::Store store;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    ev::RunTables t = tables();
    t.rank = rank;
    store.set_tables(rank, t);
    store::ChunkBuilder events(rank);
    const auto change = [&](std::int64_t at, std::uint32_t param, plan::ParamStatus to,
                            ev::StatusCause cause) {
      if (!statuses) return;
      events.compute(at * unit, EventKind::param_status, param,
                     ev::status_code(static_cast<std::uint8_t>(to), cause));
      events.chunk.events.back().b = t.params[param].modules.front();
    };
    events.host(0, EventKind::step_begin, 7);
    change(500, 3, available, ev::StatusCause::persistent);
    change(1000, 0, available, ev::StatusCause::fetch);
    for (const auto& [begin, end] : {std::pair{1200, 2000}, std::pair{5000, 6000}}) {
      events.compute(begin * unit, EventKind::module_begin, 1);
      events.compute(end * unit, EventKind::module_end, 1);
    }
    change(8000, 0, not_available, ev::StatusCause::release);
    events.host(9000 * unit, EventKind::step_end, 7);
    events.host(9500 * unit, EventKind::step_begin, 8);
    store.ingest(events.chunk);
  }
  return store;
}

}  // namespace shardscope::gui::known
