#include "app/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/cli/say.h"
#include "app/store/losses.h"
#include "app/store/span_time.h"

namespace shardscope::cli {
namespace {

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(std::int64_t steps, std::string label)
    : steps_(steps), label_(std::move(label)), terminal_(isatty(STDERR_FILENO) != 0) {}

std::string Progress::line(const store::Store& store, std::int64_t steps, const std::string& label,
                           std::size_t width) {
  std::int64_t done = 0;
  double loss = NAN, ms = NAN, tokens_per_s = NAN;
  for (const store::StepRow& row : store.steps()) {
    if (row.end_ns == store::kOpen) continue;
    ++done;
    loss = row.loss;
    ms = static_cast<double>(store::time_of(store, row).running_ns) * 1e-6;
    if (row.tokens > 0 && ms > 0) tokens_per_s = static_cast<double>(row.tokens) / ms * 1e3;
  }
  std::string text = label.empty() ? std::string() : label + "  ";
  if (store.tables().simulated) text += "simulated  ";
  if (done == 0) {
    text += fmt::format("{} ranks connected, first step under way", store.ranks().size());
  } else {
    constexpr std::size_t kBar = 24;
    const auto filled = static_cast<std::size_t>(
        std::clamp(static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(steps, 1)), 0.0,
                   1.0) *
        kBar);
    std::string bar;
    for (std::size_t i = 0; i < kBar; ++i) bar += i < filled ? "━" : "·";
    text += fmt::format("{} step {}/{}", bar, done, steps);
    if (std::isfinite(loss)) text += fmt::format("  loss {:.3f}", loss);
    if (std::isfinite(ms)) text += fmt::format("  {:.0f} ms", ms);
    if (std::isfinite(tokens_per_s)) text += fmt::format("  {:.1f}k tok/s", tokens_per_s * 1e-3);
    if (const store::Losses losses = store::losses_of(store); losses.any())
      text += "  " + store::text_of(losses);
  }
  // Truncated by characters, not bytes: continuation bytes take no column.
  std::size_t columns = 0, bytes = 0;
  while (bytes < text.size() && columns < width) {
    ++bytes;
    while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) ++bytes;
    ++columns;
  }
  return text.substr(0, bytes);
}

void Progress::update(const store::Store& store) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  say(stderr, "\r\x1b[K{}", line(store, steps_, label_, terminal_width() - 1));
  std::fflush(stderr);
}

void Progress::finish() {
  if (terminal_ && drawn_) say(stderr, "\n");
  drawn_ = false;
}

void Progress::print_line(const std::string& text) {
  if (terminal_ && drawn_) say(stderr, "\r\x1b[K");
  say(stderr, "{}\n", text);
}

}  // namespace shardscope::cli
