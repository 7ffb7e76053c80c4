#include "roles/kubelet_plugin/elf_names.hpp"

#include "base/fd.hpp"
#include "base/try.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>

namespace nvdra::roles::kubelet_plugin {
namespace {

constexpr std::size_t most_entries = 4096;

// False: the file is shorter.
template <class T>
bool read_at(int file, T* into, std::size_t count, std::uint64_t offset) {
  std::size_t size = sizeof(T) * count;
  return ::pread(file, into, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

using Segments = std::vector<Elf64_Phdr>;

std::optional<Segments> read_segments(int file) {
  Elf64_Ehdr header{};
  if (!read_at(file, &header, 1, 0)) return std::nullopt;
  bool known = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
               header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
               header.e_phentsize == sizeof(Elf64_Phdr);
  if (!known) return std::nullopt;
  Segments segments(header.e_phnum);
  if (!read_at(file, segments.data(), segments.size(), header.e_phoff)) return std::nullopt;
  return segments;
}

std::optional<std::uint64_t> offset_of(const Segments& segments, std::uint64_t address) {
  for (const Elf64_Phdr& each : segments)
    if (each.p_type == PT_LOAD && address >= each.p_vaddr && address - each.p_vaddr < each.p_filesz)
      return each.p_offset + (address - each.p_vaddr);
  return std::nullopt;
}

// A string of at most 255 bytes.
std::string text_at_offset(int file, std::uint64_t offset) {
  std::array<char, 256> text{};
  ssize_t size = ::pread(file, text.data(), text.size() - 1, static_cast<off_t>(offset));
  return size > 0 ? std::string(text.data()) : std::string();
}

std::vector<Elf64_Dyn> read_dynamic(int file, const Segments& segments) {
  std::vector<Elf64_Dyn> entries;
  for (const Elf64_Phdr& each : segments) {
    if (each.p_type != PT_DYNAMIC) continue;
    entries.resize(std::min<std::size_t>(each.p_filesz / sizeof(Elf64_Dyn), most_entries));
    if (!read_at(file, entries.data(), entries.size(), each.p_offset)) entries.clear();
  }
  return entries;
}

}  // namespace

Result<ElfNames> read_elf_names(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return errno_failure("read " + path);
  ElfNames names;
  std::optional<Segments> segments = read_segments(file.get());
  if (!segments) return names;
  std::vector<Elf64_Dyn> dynamic = read_dynamic(file.get(), *segments);
  std::optional<std::uint64_t> strings;
  for (const Elf64_Dyn& entry : dynamic)
    if (entry.d_tag == DT_STRTAB) strings = offset_of(*segments, entry.d_un.d_ptr);
  if (dynamic.empty()) return names;
  if (!strings) return refuse("read " + path + ": its dynamic section has no strings");
  for (const Elf64_Dyn& entry : dynamic) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_SONAME)
      names.soname = text_at_offset(file.get(), *strings + entry.d_un.d_val);
    if (entry.d_tag == DT_NEEDED)
      names.needed.push_back(text_at_offset(file.get(), *strings + entry.d_un.d_val));
  }
  return names;
}

}  // namespace nvdra::roles::kubelet_plugin
