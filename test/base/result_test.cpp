#include "base/result.hpp"

#include "base/try.hpp"
#include "catch.hpp"

#include <memory>

using namespace nvdra;
namespace errc = boost::system::errc;

namespace {

Result<int> halved(int number) {
  if (number % 2 != 0) return refuse("an odd number has no half, give an even one");
  return number / 2;
}

Result<int> quartered(int number) {
  TRY(int half, halved(number));
  TRY(int quarter, halved(half));
  return quarter;
}

Result<void> checked(int number) {
  TRY_VOID([&]() -> Result<void> {
    if (number < 0) return fail(make_error_code(errc::invalid_argument), "check");
    return ok();
  }());
  return ok();
}

}  // namespace

TEST_CASE("an error tells the steps outermost first and keeps its code", "[base][result]") {
  Failure failure = fail(make_error_code(errc::no_space_on_device), "write");
  failure = std::move(failure).during("write spec").during("prepare claim 7f3");
  CHECK(failure.error.text() == "prepare claim 7f3: write spec: write: No space left on device");
  CHECK(failure.error.code == errc::no_space_on_device);
  CHECK(fail(make_error_code(errc::timed_out)).during("list").error.doing == "list");
}

TEST_CASE("a failed system call is reported with its errno", "[base][result]") {
  errno = ENOENT;
  Failure failure = errno_failure("open x");
  CHECK(failure.error.text() == "open x: No such file or directory");
  CHECK(failure.error.code == errc::no_such_file_or_directory);
  CHECK(errno_failure("x", EACCES).error.code == errc::permission_denied);
}

TEST_CASE("a refusal is exactly its sentence, with the steps before it", "[base][result]") {
  Failure failure = refuse("flag --x needs a value: --x=VALUE");
  CHECK(failure.error.text() == "flag --x needs a value: --x=VALUE");
  CHECK(std::move(failure).during("start").error.text() ==
        "start: flag --x needs a value: --x=VALUE");
  CHECK(refuse("a").error.code == refuse("b").error.code);
  CHECK_FALSE(refuse("a").error.code == errc::operation_not_permitted);
}

TEST_CASE("TRY hands on the value or leaves with the failure", "[base][result]") {
  CHECK(*quartered(8) == 2);
  CHECK(quartered(6).error().text() == "an odd number has no half, give an even one");
  CHECK(checked(1));
  CHECK(checked(-1).error().text() == "check: Invalid argument");
}

TEST_CASE("a result of a type that only moves can be taken out", "[base][result]") {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  std::unique_ptr<int> taken = *std::move(result);
  CHECK(*taken == 7);
}
