#include "base/resident.hpp"

#include "base/files.hpp"
#include "catch.hpp"

using namespace nvdra;

TEST_CASE("only clean mappings of files that nobody writes to are given back", "[base][resident]") {
  const char* smaps =
      "1000-2000 r--p 00000000 08:01 7          /usr/bin/program\n"
      "Rss:  4 kB\nAnonymous:             0 kB\nVmFlags: rd mr mw me\n"
      "2000-5000 r-xp 00001000 08:01 7          /usr/bin/program\n"
      "Rss:  12 kB\nAnonymous:      0 kB\n"
      "5000-6000 r--p 00004000 08:01 7          /usr/bin/program\n"
      "Rss:  4 kB\nAnonymous:             4 kB\n"
      "6000-7000 rw-p 00005000 08:01 7          /usr/bin/program\n"
      "Rss:  4 kB\nAnonymous:             0 kB\n"
      "7000-8000 r--p 00000000 00:00 0          [vvar]\n"
      "Rss:  0 kB\nAnonymous:             0 kB\n"
      "8000-9000 r--s 00000000 08:01 9          /shared\n"
      "Rss:  4 kB\nAnonymous:             0 kB\n";
  CHECK(clean_file_mappings(smaps) == std::vector<CodeRange>{{0x1000, 0x2000}, {0x2000, 0x5000}});
  CHECK(clean_file_mappings("").empty());
}

TEST_CASE("the program runs on after its code has been given back", "[base][resident]") {
  give_back_code();
  const Result<std::string> smaps = read_file("/proc/self/smaps");
  REQUIRE(smaps);
  CHECK_FALSE(clean_file_mappings(*smaps).empty());
}
