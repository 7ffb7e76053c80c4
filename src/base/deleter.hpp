// Deleter: lets a unique_ptr own what a C library's function frees.
//   using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;
#pragma once

namespace nvdra {

template <auto free_it>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    free_it(object);
  }
};

}  // namespace nvdra
