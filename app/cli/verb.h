// The verbs of the command line. Each file registers its own; main only dispatches.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

namespace CLI {
class App;
}

namespace shardscope::cli {

/// Thrown when a verb cannot continue: "what, value, what to do". Printed as `shardscope: ...`.
class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& text, int exit_code = 1)
      : std::runtime_error(text), exit_code_(exit_code) {}
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

/// Set by the parsed verb; run by main after parsing.
using Action = std::function<int()>;

void add_run(CLI::App& app, Action& action);
void add_consolidate(CLI::App& app, Action& action);
void add_demo(CLI::App& app, Action& action);
void add_ab(CLI::App& app, Action& action);
void add_view(CLI::App& app, Action& action);
void add_watch(CLI::App& app, Action& action);
void add_attach(CLI::App& app, Action& action);
void add_record(CLI::App& app, Action& action);
void add_collect(CLI::App& app, Action& action);
void add_reading_verbs(CLI::App& app, Action& action);  ///< info, summary, findings, compare, report, export
void add_keys(CLI::App& app, Action& action);
void add_estimate(CLI::App& app, Action& action);
void add_simulate(CLI::App& app, Action& action);
void add_what_if(CLI::App& app, Action& action);
void add_why(CLI::App& app, Action& action);
void add_keep(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);

}  // namespace shardscope::cli
