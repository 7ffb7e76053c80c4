#include "base/result.hpp"

namespace nvdra {
namespace {

class Explained final : public boost::system::error_category {
public:
  const char* name() const noexcept override { return "nvdra.explained"; }
  std::string message(int) const override { return "invalid input"; }
};

}  // namespace

const boost::system::error_category& Error::explained() noexcept {
  static const Explained category;
  return category;
}

Failure refuse(std::string_view sentence) {
  return fail({1, Error::explained()}, sentence);
}

}  // namespace nvdra
