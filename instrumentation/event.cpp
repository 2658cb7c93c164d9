#include "instrumentation/event.h"

namespace shardscope::instrumentation {
namespace {

struct ValueText {
  const char* name;
  const char* label;
};

template <std::size_t N, typename Enum>
const ValueText& text_of(const std::array<ValueText, N>& texts, Enum value) noexcept {
  static constexpr ValueText kUnknown{"unknown", "unknown"};
  const auto index = static_cast<std::size_t>(value);
  return index < N ? texts[index] : kUnknown;
}

template <typename Enum>
inline constexpr int kTexts = 0;
#define ENUM(type, ...) \
  template <>           \
  inline constexpr auto kTexts<type> = std::to_array<ValueText>({__VA_ARGS__});
#define VALUE(name, label) {#name, label},
#include "instrumentation/event_enums.def"

}  // namespace

#define ENUM(type, ...)                                                                  \
  const char* name_of(type value) noexcept { return text_of(kTexts<type>, value).name; } \
  const char* label_of(type value) noexcept { return text_of(kTexts<type>, value).label; }
#define VALUE(name, label)
#include "instrumentation/event_enums.def"

}  // namespace shardscope::instrumentation
