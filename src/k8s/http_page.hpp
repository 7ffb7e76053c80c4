// Requests and answers of http_endpoint.hpp as text. Pure.
#pragma once

#include "k8s/http_endpoint.hpp"

#include <optional>
#include <string>

namespace nvdra::k8s {

struct PageRequest {
  int version = 11;
  bool get = false;
  bool head = false;
  bool keep = false;
  int fault = 0;  // the status that refuses it
  std::string target = {};
};

// Takes one request's head out of `buffer`; nullopt: more bytes are needed. A body is not taken.
std::optional<PageRequest> take_request(std::string& buffer, std::size_t head_limit);

std::string render_page(const PageRequest& request, const HttpReply& reply);

}  // namespace nvdra::k8s
