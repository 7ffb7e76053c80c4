// A smallest ELF file: one loaded segment, a dynamic section with names.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace nvdra::roles::kubelet_plugin::test {

inline std::string elf_file(const std::string& soname, const std::vector<std::string>& needed) {
  constexpr std::uint64_t address = 0x10000;  // of the file's first byte
  std::string strings(1, '\0');
  std::vector<Elf64_Dyn> dynamic;
  auto add = [&](std::int64_t tag, const std::string& text) {
    dynamic.push_back({tag, {strings.size()}});
    strings += text + '\0';
  };
  for (const std::string& each : needed) add(DT_NEEDED, each);
  if (!soname.empty()) add(DT_SONAME, soname);
  std::size_t segments_at = sizeof(Elf64_Ehdr);
  std::size_t dynamic_at = segments_at + 2 * sizeof(Elf64_Phdr);
  std::size_t strings_at = dynamic_at + (dynamic.size() + 2) * sizeof(Elf64_Dyn);
  dynamic.push_back({DT_STRTAB, {address + strings_at}});
  dynamic.push_back({DT_NULL, {0}});

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_phoff = segments_at;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  Elf64_Phdr load{};
  load.p_type = PT_LOAD;
  load.p_vaddr = address;
  load.p_filesz = strings_at + strings.size();
  Elf64_Phdr names{};
  names.p_type = PT_DYNAMIC;
  names.p_offset = dynamic_at;
  names.p_filesz = dynamic.size() * sizeof(Elf64_Dyn);

  std::string file(reinterpret_cast<const char*>(&header), sizeof(header));
  file.append(reinterpret_cast<const char*>(&load), sizeof(load));
  file.append(reinterpret_cast<const char*>(&names), sizeof(names));
  file.append(reinterpret_cast<const char*>(dynamic.data()), dynamic.size() * sizeof(Elf64_Dyn));
  return file + strings;
}

}  // namespace nvdra::roles::kubelet_plugin::test
