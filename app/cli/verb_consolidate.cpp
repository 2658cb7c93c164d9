// `consolidate`: full weights from a checkpoint. The files are read by the program that wrote them.
#include <CLI/CLI.hpp>
#include <memory>

#include "app/cli/process.h"
#include "app/cli/program_files.h"
#include "app/cli/verb.h"
#include "app/export/output_file.h"

namespace shardscope::cli {

void add_consolidate(CLI::App& app, Action& action) {
  struct Files {
    std::string checkpoint, output;
  };
  auto files = std::make_shared<Files>();
  CLI::App* verb = app.add_subcommand("consolidate", "Write the weights of a checkpoint to one file, fp32");
  verb->add_option("CHECKPOINT", files->checkpoint, "Folder of --checkpoint (its latest) or FOLDER/step-N")
      ->required();
  verb->add_option("FILE", files->output, "safetensors file to write")->required();
  verb->callback([files, &action] {
    action = [files] {
      exporter::refuse_recording(files->output);
      return Process(
                 {sibling_program("zero_train"), "--consolidate", files->checkpoint, "--save", files->output},
                 Process::Output::inherit)
          .wait();
    };
  });
}

}  // namespace shardscope::cli
