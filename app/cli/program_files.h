// Locates programs and their data: in a build, or below the installation prefix.
#pragma once

#include <string>

namespace shardscope::cli {

/// Program beside this one. Throws UserError naming the missing file.
[[nodiscard]] std::string sibling_program(const std::string& name);

/// Path of the program that PATH has for this name; a name with a folder is returned unchanged. Empty: none.
[[nodiscard]] std::string program_of(const std::string& name);

/// The Python interpreter that runs `program`: itself, or the one in a script's first line
/// (torchrun, deepspeed, accelerate). Empty: unknown.
[[nodiscard]] std::string python_of(const std::string& program);

/// Folder with samples/, assets/hardware/ and the default training text: SHARDSCOPE_ROOT if
/// it is set, else share/shardscope of the prefix that this program is in, else the sources it was built
/// from.
[[nodiscard]] std::string data_root();

}  // namespace shardscope::cli
