// Whether two stores answer alike, question by question.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "app/store/store.h"

namespace shardscope::store {

inline void expect_same_spans(const std::vector<Span>& a, const std::vector<Span>& b, const char* where) {
  ASSERT_EQ(a.size(), b.size()) << where;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].begin_ns, b[i].begin_ns) << where << " span " << i;
    ASSERT_EQ(a[i].end_ns, b[i].end_ns) << where << " span " << i;
    ASSERT_EQ(a[i].mark_ns, b[i].mark_ns) << where << " span " << i;
    ASSERT_EQ(a[i].kind, b[i].kind) << where << " span " << i;
    ASSERT_EQ(a[i].code, b[i].code) << where << " span " << i;
    ASSERT_EQ(a[i].depth, b[i].depth) << where << " span " << i;
    ASSERT_EQ(a[i].a, b[i].a) << where << " span " << i;
    ASSERT_EQ(a[i].b, b[i].b) << where << " span " << i;
    ASSERT_EQ(a[i].c, b[i].c) << where << " span " << i;
    ASSERT_EQ(a[i].v0, b[i].v0) << where << " span " << i;
    ASSERT_EQ(a[i].v1, b[i].v1) << where << " span " << i;
  }
}

inline void expect_same_events(const std::vector<ev::Event>& a, const std::vector<ev::Event>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].ticks, b[i].ticks) << i;
    ASSERT_EQ(a[i].kind, b[i].kind) << i;
    ASSERT_EQ(a[i].a, b[i].a) << i;
    ASSERT_EQ(a[i].b, b[i].b) << i;
    ASSERT_EQ(a[i].v0, b[i].v0) << i;
  }
}

/// Windows of every size somewhere in the run.
class Windows {
 public:
  Windows(std::uint64_t seed, std::int64_t end_ns) : random_(seed), end_ns_(end_ns) {}
  std::pair<std::int64_t, std::int64_t> next() {
    const double size = static_cast<double>(end_ns_) * std::pow(0.4, static_cast<double>(random_() % 12));
    const auto begin = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end_ns_ + 1));
    return {begin, begin + static_cast<std::int64_t>(size) + 1};
  }
  std::int64_t time() {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end_ns_ + 1));
  }

 private:
  std::mt19937_64 random_;
  std::int64_t end_ns_;
};

inline void expect_same_tables(const Store& a, const Store& b) {
  EXPECT_EQ(a.event_count(), b.event_count());
  EXPECT_EQ(a.end_ns(), b.end_ns());
  EXPECT_EQ(a.origin_ns(), b.origin_ns());
  ASSERT_EQ(a.steps().size(), b.steps().size());
  for (std::size_t i = 0; i < a.steps().size(); ++i) {
    EXPECT_EQ(a.steps()[i].begin_ns, b.steps()[i].begin_ns);
    EXPECT_EQ(a.steps()[i].end_ns, b.steps()[i].end_ns);
    EXPECT_EQ(a.steps()[i].paused_ns, b.steps()[i].paused_ns);
    EXPECT_EQ(a.steps()[i].tokens, b.steps()[i].tokens);
    EXPECT_TRUE(a.steps()[i].loss == b.steps()[i].loss || std::isnan(a.steps()[i].loss));
  }
  ASSERT_EQ(a.gaps().size(), b.gaps().size());
  for (std::size_t i = 0; i < a.gaps().size(); ++i) {
    EXPECT_EQ(a.gaps()[i].begin_ns, b.gaps()[i].begin_ns);
    EXPECT_EQ(a.gaps()[i].events, b.gaps()[i].events);
  }
  const auto x = a.span_totals(), y = b.span_totals();
  ASSERT_EQ(x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(x[i].lane, y[i].lane);
    EXPECT_EQ(x[i].count, y[i].count);
    EXPECT_EQ(x[i].total_ns, y[i].total_ns);
    EXPECT_EQ(x[i].max_ns, y[i].max_ns);
  }
}

inline void expect_same_lanes(const Store& a, const Store& b, std::uint64_t seed, int windows) {
  ASSERT_EQ(a.lanes(), b.lanes());
  Windows window(seed, a.end_ns());
  for (const LaneId lane : a.lanes()) {
    ASSERT_EQ(a.depth_count(lane), b.depth_count(lane));
    for (std::uint8_t d = 0; d < a.depth_count(lane); ++d) {
      expect_same_spans(a.spans(lane, d), b.spans(lane, d), "whole");
      for (int i = 0; i < windows; ++i) {
        const auto [begin, end] = window.next();
        expect_same_spans(a.spans(lane, d, begin, end), b.spans(lane, d, begin, end), "window");
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

inline void expect_same_states(const Store& a, const Store& b, std::uint64_t seed, int times) {
  Windows window(seed, a.end_ns());
  std::vector<ParamState> x(a.tables().params.size()), y(x.size());
  for (const RankRow& row : a.ranks()) {
    const std::uint32_t rank = row.rank;
    expect_same_events(a.instants(rank), b.instants(rank));
    const auto [begin, end] = window.next();
    expect_same_events(a.instants(rank, begin, end), b.instants(rank, begin, end));
    ASSERT_EQ(a.gates(rank).size(), b.gates(rank).size());
    for (int i = 0; i < times; ++i) {
      const std::int64_t at = window.time();
      a.param_states(rank, at, x);
      b.param_states(rank, at, y);
      for (std::size_t p = 0; p < x.size(); ++p) {
        ASSERT_EQ(x[p].status, y[p].status) << at << " param " << p;
        ASSERT_EQ(x[p].since_ns, y[p].since_ns) << at << " param " << p;
        ASSERT_EQ(x[p].module, y[p].module) << at << " param " << p;
        ASSERT_EQ(x[p].gather, y[p].gather) << at << " param " << p;
      }
      for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p) {
        const auto pool = static_cast<ev::MemoryPool>(p);
        ASSERT_EQ(a.memory_at(rank, pool, at).bytes, b.memory_at(rank, pool, at).bytes) << at;
      }
      const auto left = a.buckets_at(rank, at), right = b.buckets_at(rank, at);
      ASSERT_EQ(left.size(), right.size()) << at;
      for (std::size_t k = 0; k < left.size(); ++k) {
        EXPECT_EQ(left[k].bucket, right[k].bucket);
        EXPECT_EQ(left[k].params, right[k].params);
        EXPECT_EQ(left[k].since_ns, right[k].since_ns);
      }
      const auto before = a.gate_before(rank, at), also = b.gate_before(rank, at);
      ASSERT_EQ(before.has_value(), also.has_value());
      if (before) {
        EXPECT_EQ(before->at_ns, also->at_ns);
      }
      const auto after = a.gate_after(rank, at), too = b.gate_after(rank, at);
      ASSERT_EQ(after.has_value(), too.has_value());
      if (after) {
        EXPECT_EQ(after->at_ns, too->at_ns);
      }
    }
    for (const ev::EventKind kind : {ev::EventKind::param_status, ev::EventKind::fetch_decision}) {
      EXPECT_EQ(a.instant_count(rank, kind), b.instant_count(rank, kind));
    }
  }
}

/// Busy share and count of every row in windows of every size; buckets of levels of detail are split by
/// overlap, so columns may differ a little.
inline void expect_same_density(const Store& a, const Store& b, std::uint64_t seed, int windows) {
  constexpr std::size_t kColumns = 211;
  Windows window(seed, a.end_ns());
  std::vector<Density> x(kColumns), y(kColumns);
  for (const LaneId lane : a.lanes()) {
    std::vector<std::uint8_t> depths = {Store::kWaits};
    for (std::uint8_t d = 0; d < a.depth_count(lane); ++d) depths.push_back(d);
    for (const std::uint8_t d : depths) {
      if (d == Store::kWaits && lane.stream != ev::StreamId::compute) continue;
      for (int i = 0; i < windows; ++i) {
        const auto [begin, end] = window.next();
        a.density(lane, d, begin, end, x);
        b.density(lane, d, begin, end, y);
        double left = 0, right = 0, difference = 0;
        for (std::size_t c = 0; c < kColumns; ++c) {
          left += x[c].busy;
          right += y[c].busy;
          difference += std::abs(x[c].busy - y[c].busy);
        }
        EXPECT_NEAR(left, right, 0.02 * kColumns) << "depth " << int{d} << " " << begin << " to " << end;
        EXPECT_LT(difference, 0.08 * kColumns) << "depth " << int{d} << " " << begin << " to " << end;
      }
    }
  }
}

}  // namespace shardscope::store
