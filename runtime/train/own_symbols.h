// Names of this program's functions, from the symbol table of its file: most are not exported, so that the
// loader does not know them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::train {

class OwnSymbols {
 public:
  /// Of the running program; none where its file is stripped or cannot be read.
  OwnSymbols();
  /// The mangled name of the function that holds a code address; empty: none of this program's.
  [[nodiscard]] std::string name_at(std::uintptr_t address) const;

 private:
  struct Symbol {
    std::uint64_t begin = 0, size = 0;
    std::uint32_t name = 0;
  };
  std::vector<Symbol> symbols_;  ///< by address
  std::string names_;
  std::uintptr_t base_ = 0;  ///< where the program is loaded
};

}  // namespace shardscope::train
