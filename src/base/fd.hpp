// An owned file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace nvdra {

class Fd {
public:
  Fd() = default;
  explicit Fd(int number) noexcept : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.number_, -1));
    return *this;
  }
  ~Fd() { reset(); }

  int get() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }
  int release() noexcept { return std::exchange(number_, -1); }
  void reset(int number = -1) noexcept {
    if (number_ >= 0) ::close(number_);
    number_ = number;
  }

private:
  int number_ = -1;
};

}  // namespace nvdra
