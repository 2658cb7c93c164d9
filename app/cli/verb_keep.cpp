// `keep`: asks the recorder of a live run with limits to keep the events around this moment.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "app/cli/checks.h"
#include "app/cli/keep_answer.h"
#include "app/cli/live_look.h"
#include "app/cli/process.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "app/collector/viewer.h"
#include "app/store/control_text.h"
#include "app/store/retention.h"

namespace shardscope::cli {
namespace {

struct KeepOptions {
  std::string endpoint, key, text;
  double wait_s = 20;
};

constexpr int kNotKept = 1;

/// Among the messages after the first `known`: the collector's answer to a request with this text.
std::string answer_to(const store::Store& store, std::size_t known, const std::string& text) {
  const auto messages = store.messages();
  for (std::size_t i = std::min(known, messages.size()); i < messages.size(); ++i) {
    const std::string& one = messages[i].text;
    if (one.find("ignored a message from a viewer") != std::string::npos) return one;
    const bool of_request = store::is_about_control(one) && one.find("requested by") != std::string::npos;
    if (of_request && one.find(text) != std::string::npos) return one.substr(store::kControlPrefix.size());
  }
  return {};
}

int keep(const KeepOptions& options) {
  using std::chrono::steady_clock;
  install_interrupt_handler();
  store::Store store;
  store.bound({});
  collector::Viewer viewer(options.endpoint, options.key);
  const steady_clock::time_point began = steady_clock::now();
  bool asked = false;
  std::size_t known = 0;
  while (!interrupted()) {
    viewer.poll(store, std::chrono::milliseconds(100));
    const collector::Viewer::Link link = viewer.link();
    if (!asked && link == collector::Viewer::Link::live) {
      known = store.messages().size();
      viewer.keep(store::kRequested, 0, options.text);
      asked = true;
    }
    if (asked) {
      const std::string answer = answer_to(store, known, options.text);
      if (!answer.empty()) {
        const bool kept = is_kept(answer);
        say(kept ? stdout : stderr, "{}{}\n", kept ? "" : "shardscope: ", answer);
        return kept ? 0 : kNotKept;
      }
    }
    if (link == collector::Viewer::Link::ended)
      throw UserError(options.endpoint + ": the run has ended; its recording can no longer be changed");
    if (std::chrono::duration<double>(steady_clock::now() - began).count() > options.wait_s) {
      const std::string note = viewer.control().note;
      throw UserError((asked ? fmt::format("{}: no answer of its recorder within {:.4g} s", options.endpoint,
                                           options.wait_s)
                             : no_answer_text(options.endpoint, link, store.event_count(),
                                              store.ranks().size(), options.wait_s)) +
                      (note.empty() ? "" : "; " + note));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return interrupt_code();
}

}  // namespace

void add_keep(CLI::App& app, Action& action) {
  auto options = std::make_shared<KeepOptions>();
  CLI::App* verb = app.add_subcommand("keep",
                                      "Ask the recorder of a live run to keep the events around this moment, "
                                      "where it keeps a part of the run");
  verb->add_option("endpoint", options->endpoint, "Endpoint of the collector that records (tcp://host:port)")
      ->check(kEndpoint)
      ->required();
  verb->add_option("--text", options->text, "What happened, for the recording");
  verb->add_option("--key", options->key, "Key file that may control, for an endpoint that asks for one");
  verb->add_option("--wait", options->wait_s, "Seconds to wait for the answer at most")
      ->check(kAboveZero)
      ->capture_default_str();
  verb->callback([options, &action] { action = [options] { return keep(*options); }; });
}

}  // namespace shardscope::cli
