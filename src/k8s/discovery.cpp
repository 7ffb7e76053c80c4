// What the API server offers. Part of the client (client.hpp).
#include "k8s/client.hpp"
#include "k8s/request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace nvdra::k8s {

// One discovery document; an empty object if there is none at `path`.
Async<Result<Json>> Client::document(std::string path) {
  HttpRequest request{.method = "GET", .target = std::move(path)};
  std::string asked = "discover " + request.target;
  Result<HttpAnswer> answer = co_await succeed(std::move(request), asked);
  if (!answer && answer.error().code == Errc::not_found) co_return Json(JsonObject());
  if (!answer) co_return std::move(answer).failure();
  Result<Json> parsed = parse_json(answer->body);
  if (!parsed)
    co_return fail(Errc::malformed_answer,
                   fmt::format("the answer begins with \"{}\"", beginning_of(answer->body)))
        .during(asked);
  co_return parsed;
}

Async<Result<std::vector<std::string>>> Client::group_versions(std::string group) {
  std::string path = group.empty() ? "/api" : "/apis/" + percent_encoded(group);
  Result<Json> answer = co_await document(std::move(path));
  if (!answer) co_return std::move(answer).failure();
  std::vector<std::string> versions;
  for (const Json& offered : array_or_empty(*answer, "versions")) {
    // The core group lists plain names.
    std::string_view name = offered.is_string() ? std::string_view(offered.get_string())
                                                : text_or_empty(offered, "version");
    if (!name.empty()) versions.emplace_back(name);
  }
  auto preferred = std::ranges::find(versions, text_or_empty(*answer, "preferredVersion/version"));
  if (preferred != versions.end()) std::rotate(versions.begin(), preferred, preferred + 1);
  co_return versions;
}

Async<Result<bool>> Client::serves(ResourceType type) {
  std::string path = type.group.empty() ? "/api/" : "/apis/" + percent_encoded(type.group) + "/";
  Result<Json> answer = co_await document(path + percent_encoded(type.version));
  if (!answer) co_return std::move(answer).failure();
  const JsonArray& resources = array_or_empty(*answer, "resources");
  co_return std::ranges::any_of(resources, [&](const Json& offered) {
    return text_or_empty(offered, "name") == type.plural;
  });
}

Async<Result<std::string>> discover_resource_version(Client& client) {
  constexpr std::array<std::string_view, 3> usable{"v1", "v1beta2", "v1beta1"};
  Result<std::vector<std::string>> offered = co_await client.group_versions("resource.k8s.io");
  if (!offered) co_return std::move(offered).failure();
  for (std::string_view version : usable) {
    if (std::ranges::find(*offered, version) != offered->end()) co_return std::string(version);
  }
  co_return refuse(fmt::format(
      "the API server offers {} of resource.k8s.io, and this program needs v1, v1beta2 or v1beta1: "
      "use Kubernetes 1.32 or newer with dynamic resource allocation switched on",
      offered->empty() ? "no version" : fmt::format("only {}", fmt::join(*offered, ", "))));
}

}  // namespace nvdra::k8s
