// What spans are called: in words, alike in all outputs.
#include "app/store/span_label.h"

#include <gtest/gtest.h>

#include <string>

#include "app/store/lane.h"
#include "instrumentation/event_fields.h"
#include "tests/app/store/odd_ends.h"

namespace shardscope::store {
namespace {

using ev::EventKind;

Span span_of(EventKind kind, std::uint32_t a, std::uint8_t code = 0) {
  Span span;
  span.kind = kind;
  span.a = a;
  span.code = code;
  return span;
}

TEST(SpanLabel, EveryKindHasWordsOfItsOwn) {
  const Store store = odd_ends();
  for (int kind = 0; kind < 255; ++kind) {
    const auto begin = static_cast<EventKind>(kind);
    if (!ev::is_begin(begin)) continue;
    const std::string label = label_of(store, 0, span_of(begin, 1));
    EXPECT_NE(label, ev::name_of(begin)) << "the name of its event is no label";
    EXPECT_NE(kind_label(store, begin), ev::name_of(begin));
    EXPECT_EQ(!awaited(store, span_of(begin, 1)).empty(), is_wait(begin)) << label;
  }
}

TEST(SpanLabel, SaysWhatIsWaitedForAndNeverAnIdThatIsNone) {
  const Store store = odd_ends();
  const auto label = [&](EventKind kind, std::uint32_t a) { return label_of(store, 0, span_of(kind, a)); };
  EXPECT_EQ(label(EventKind::fetch_wait_begin, 2), "waits for parameters of net.second");
  EXPECT_EQ(label(EventKind::fetch_wait_begin, ev::kNoId), "waits for persistent parameters");
  EXPECT_EQ(label(EventKind::reduce_wait_begin, 7), "waits for bucket 7");
  EXPECT_EQ(label(EventKind::reduce_wait_begin, ev::kNoId), "waits for a reduction");
  EXPECT_EQ(label(EventKind::optimizer_begin, 3), "optimizer sub-group 3");
  EXPECT_EQ(label(EventKind::optimizer_begin, ev::kNoId), "optimizer");
  EXPECT_EQ(label(EventKind::collective_begin, 12), "all-gather 12");
}

TEST(SpanLabel, ASpanOfTheProgramsOwnHasTheNameThatItGave) {
  Store store = odd_ends();
  store.add_name(0, 5, "all-gather copy-in");
  EXPECT_EQ(label_of(store, 0, span_of(EventKind::span_begin, 5)), "all-gather copy-in");
  EXPECT_EQ(label_of(store, 0, span_of(EventKind::span_begin, 9)), "span 9");
}

}  // namespace
}  // namespace shardscope::store
