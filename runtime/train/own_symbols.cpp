#include "runtime/train/own_symbols.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <fstream>

namespace shardscope::train {
namespace {

/// The program itself is the first entry.
int take_base(dl_phdr_info* info, std::size_t /*size*/, void* to) {
  *static_cast<std::uintptr_t*>(to) = info->dlpi_addr;
  return 1;
}

constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;

bool read_at(std::ifstream& file, std::uint64_t at, void* to, std::uint64_t bytes) {
  file.seekg(static_cast<std::streamoff>(at));
  return static_cast<bool>(file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes)));
}

}  // namespace

OwnSymbols::OwnSymbols() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  Elf64_Ehdr header{};
  if (!file || !read_at(file, 0, &header, sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr))
    return;
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (!read_at(file, header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr))) return;
  const auto table = std::ranges::find(sections, static_cast<Elf64_Word>(SHT_SYMTAB), &Elf64_Shdr::sh_type);
  if (table == sections.end() || table->sh_link >= sections.size() || table->sh_size > kMostBytes ||
      sections[table->sh_link].sh_size > kMostBytes)
    return;
  std::vector<Elf64_Sym> all(table->sh_size / sizeof(Elf64_Sym));
  names_.resize(sections[table->sh_link].sh_size);
  if (!read_at(file, table->sh_offset, all.data(), all.size() * sizeof(Elf64_Sym)) ||
      !read_at(file, sections[table->sh_link].sh_offset, names_.data(), names_.size())) {
    names_.clear();
    return;
  }
  for (const Elf64_Sym& symbol : all) {
    if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_size > 0 && symbol.st_name < names_.size())
      symbols_.push_back({symbol.st_value, symbol.st_size, symbol.st_name});
  }
  std::ranges::sort(symbols_, {}, &Symbol::begin);
  dl_iterate_phdr(take_base, &base_);
}

std::string OwnSymbols::name_at(std::uintptr_t address) const {
  if (address < base_) return {};
  const std::uint64_t at = address - base_;
  const auto after = std::ranges::upper_bound(symbols_, at, {}, &Symbol::begin);
  if (after == symbols_.begin()) return {};
  const Symbol& found = *(after - 1);
  return at < found.begin + found.size ? std::string(names_.c_str() + found.name) : std::string();
}

}  // namespace shardscope::train
