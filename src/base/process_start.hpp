// Starting a child with given streams: what start() and run() of base/process.hpp share.
#pragma once

#include "base/process.hpp"

namespace nvdra {

// Its standard streams: descriptors of ours, -1 = ours is inherited. stdin is always /dev/null.
struct Streams {
  int out = -1;
  int err = -1;
};
Result<Child> start_with(const Command& command, const asio::any_io_executor& executor,
                         Streams streams);

struct Pipe {
  Fd read;  // non-blocking
  Fd write;
};
Result<Pipe> make_pipe();

}  // namespace nvdra
