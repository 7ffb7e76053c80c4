// Errors as values. A function that can fail returns Result<T>; exceptions carry only Asio's
// cancellation and programming errors (docs/architecture.md, "Errors").
#pragma once

#include <boost/system/error_code.hpp>

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace nvdra {

// What failed, and what we were doing, outermost step first: "update lease: conflict".
// Ask `code`; never match the text.
struct Error {
  boost::system::error_code code;
  std::string doing;

  std::string text() const {
    if (code.category() == explained()) return doing;
    return doing.empty() ? code.message() : doing + ": " + code.message();
  }

  // The category of errors whose `doing` already says everything (see refuse()).
  static const boost::system::error_category& explained() noexcept;
};

// The unexpected side of a Result. Made by fail() or refuse(), or taken from another Result.
struct [[nodiscard]] Failure {
  Error error;

  // Prefixes the step that did not work out; the innermost step stays last.
  Failure during(std::string_view step) && {
    error.doing = error.doing.empty() ? std::string(step) : std::string(step) + ": " + error.doing;
    return std::move(*this);
  }
};

inline Failure fail(boost::system::error_code code, std::string_view doing = {}) {
  return {{code, std::string(doing)}};
}

// A failure with the errno of a system call that has just failed.
inline Failure errno_failure(std::string_view doing, int number = errno) {
  return fail({number, boost::system::system_category()}, doing);
}

// A failure that one sentence explains fully: object, place, remedy. All of them share one code of
// the category explained().
Failure refuse(std::string_view sentence);

template <class T>
class [[nodiscard]] Result {
public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure.error)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  const Error& error() const& { return *std::get_if<1>(&state_); }
  Failure failure() && { return {std::move(*std::get_if<1>(&state_))}; }
  Failure failure() const& { return {*std::get_if<1>(&state_)}; }

private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Failure failure) : error_(std::move(failure.error)) {}

  bool has_value() const noexcept { return !error_; }
  explicit operator bool() const noexcept { return has_value(); }

  const Error& error() const& { return *error_; }
  Failure failure() && { return {std::move(*error_)}; }
  Failure failure() const& { return {*error_}; }

private:
  std::optional<Error> error_;
};

inline Result<void> ok() {
  return {};
}

}  // namespace nvdra
