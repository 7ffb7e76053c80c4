// One connection's requests, from the first to the last (part of ApiServer).
#pragma once

#include "sandbox/api_http.hpp"
#include "sandbox/api_route.hpp"
#include "sandbox/api_server.hpp"

namespace nvdra::sandbox {

struct ApiServer::Session {
  ApiServer& server;
  Connection connection;

  // Ends when the client goes; never an error.
  Async<void> serve();

private:
  Async<Result<void>> answer(Request request);
  Async<Result<void>> send(Answer answer, Fault::Cut cut);
  Answer answer_now(const Route* route, const Request& request);
  Answer control(const Request& request);

  // Watches (api_watch.cpp).
  Async<Result<void>> watch(Route route, Request request, Fault fault);
};

}  // namespace nvdra::sandbox
