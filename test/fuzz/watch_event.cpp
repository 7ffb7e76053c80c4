#include "k8s/watch_event.hpp"

#include "target.hpp"

using namespace nvdra;

void fuzz(std::string_view text) {
  const k8s::ResourceType type{"", "v1", "pods", "Pod"};
  auto event = k8s::parse_watch_event(text, type);
  if (event && *event) (void)k8s::failure_of_event(**event);
}
