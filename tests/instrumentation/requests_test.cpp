// Answers to what viewers ask of a rank.
#include "instrumentation/requests.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>

#include "instrumentation/wire.h"

namespace shardscope::instrumentation {
namespace {

TEST(RequestAnswers, OneThatIsLongerThanAMessageSaysThatItWasCut) {
  std::promise<std::string> posted;
  Requests requests([&](Severity, std::string text) { posted.set_value(std::move(text)); });
  static constexpr std::size_t kBytes = 3 * wire::kMaxText;
  Requests::set_answer([](Request) { return std::string(kBytes, 'x'); });
  requests.ask(Request::stacks);
  const std::string text = posted.get_future().get();
  Requests::set_answer({});
  EXPECT_EQ(text.size(), wire::kMaxText);
  EXPECT_TRUE(text.ends_with("x" + cut_note(std::string("stacks: ").size() + kBytes)));
}

}  // namespace
}  // namespace shardscope::instrumentation
