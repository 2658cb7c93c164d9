// Names of this program's functions, from the symbol table of its file: most are not exported, so dladdr()
// cannot find them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::train {

class OwnSymbols {
 public:
  /// Symbols of the running program; none if its file is stripped or cannot be read.
  OwnSymbols();
  /// The mangled name of the function that contains a code address; empty: not in this program.
  [[nodiscard]] std::string name_at(std::uintptr_t address) const;

 private:
  struct Symbol {
    std::uint64_t begin = 0, size = 0;
    std::uint32_t name = 0;
  };
  std::vector<Symbol> symbols_;  ///< by address
  std::string names_;
  std::uintptr_t base_ = 0;  ///< load address of the program
};

}  // namespace shardscope::train
