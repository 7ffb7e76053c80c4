// A Registry for tests: our CRDs loaded, time standing still.
#pragma once

#include "base/json.hpp"
#include "fake/time.hpp"
#include "sandbox/store_error.hpp"
#include "sandbox/store_registry.hpp"

#include <boost/asio/io_context.hpp>

namespace nvdra::sandbox {

// "{'a': 1}" with single quotes for double ones.
inline Json json(std::string text) {
  for (char& c : text)
    if (c == '\'') c = '"';
  return boost::json::parse(text);
}

struct World {
  asio::io_context loop{1};
  fake::FakeTime time{loop};
  Registry registry;

  explicit World(Registry::Options options = {}) : registry(time, std::move(options)) {
    Result<void> added = registry.add_crds(NVDRA_CRDS);
    if (!added) throw std::runtime_error(added.error().text());
  }

  const Resource& of(std::string_view name) { return registry.resource(name); }
  // The created object; a refusal ends the test.
  ItemPtr make(std::string_view resource, const std::string& space, const std::string& text) {
    Result<ItemPtr> made = registry.create(of(resource), space, json(text));
    if (!made) throw std::runtime_error(made.error().text());
    return *made;
  }
  ItemPtr domain(const std::string& name, const std::string& metadata = "") {
    return make("computedomains", "default",
                "{'metadata': {'name': '" + name + "'" + metadata +
                    "}, 'spec': {'channel': {'resourceClaimTemplate': {'name': 't'}}}}");
  }
};

inline Reason why(const Error& error) {
  return reason_of(error);
}

}  // namespace nvdra::sandbox
