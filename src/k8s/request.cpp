#include "k8s/request.hpp"

#include <fmt/format.h>

namespace nvdra::k8s {
namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

// "?a=b&c=d"; parameters without a value are left out.
class Query {
public:
  Query& add(std::string_view name, std::string_view value) {
    if (value.empty()) return *this;
    text_ += text_.empty() ? '?' : '&';
    text_ += name;
    text_ += '=';
    text_ += percent_encoded(value);
    return *this;
  }
  const std::string& text() const { return text_; }

private:
  std::string text_;
};

std::string_view content_type_of(PatchKind kind) {
  switch (kind) {
    case PatchKind::json: return "application/json-patch+json";
    case PatchKind::merge: return "application/merge-patch+json";
    case PatchKind::apply: return "application/apply-patch+yaml";
  }
  __builtin_unreachable();
}

}  // namespace

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (char c : text) {
    if (is_unreserved(c)) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

Result<void> check_name(std::string_view name) {
  if (name.empty()) return refuse("the object's name is empty");
  if (name == "." || name == "..")
    return refuse(fmt::format("\"{}\" cannot be an object's name", name));
  return ok();
}

std::string path_of(const ResourceType& type, const std::string& space, const std::string& name) {
  std::string path = type.group.empty() ? "/api/" : "/apis/" + percent_encoded(type.group) + "/";
  path += percent_encoded(type.version);
  if (type.namespaced && !space.empty()) path += "/namespaces/" + percent_encoded(space);
  path += "/" + percent_encoded(type.plural);
  if (!name.empty()) path += "/" + percent_encoded(name);
  return path;
}

HttpRequest list_request(const ResourceType& type, const std::string& space,
                         const ListOptions& options, const std::string& page_token) {
  Query query;
  query.add("labelSelector", options.label_selector)
      .add("fieldSelector", options.field_selector)
      .add("limit", options.page > 0 ? std::to_string(options.page) : "");
  // The server refuses a version next to a page token: the token holds it.
  if (page_token.empty()) {
    query.add("resourceVersion", options.resource_version);
  } else {
    query.add("continue", page_token);
  }
  return {.method = "GET", .target = path_of(type, space) + query.text()};
}

HttpRequest watch_request(const ResourceType& type, const std::string& space,
                          const WatchOptions& options) {
  Query query;
  query.add("watch", "true")
      .add("allowWatchBookmarks", "true")
      .add("resourceVersion", options.resource_version)
      .add("timeoutSeconds", std::to_string(options.server_limit.count()))
      .add("labelSelector", options.label_selector)
      .add("fieldSelector", options.field_selector);
  return {.method = "GET", .target = path_of(type, space) + query.text()};
}

HttpRequest patch_request(const ResourceType& type, const ObjectKey& key, const Json& patch,
                          const PatchOptions& options) {
  std::string path = path_of(type, key.space, key.name);
  if (!options.subresource.empty()) path += "/" + percent_encoded(options.subresource);
  Query query;
  query.add("fieldManager", options.field_manager);
  if (options.kind == PatchKind::apply && options.force) query.add("force", "true");
  return {.method = "PATCH",
          .target = path + query.text(),
          .content_type = std::string(content_type_of(options.kind)),
          .body = to_text(patch)};
}

HttpRequest delete_request(const ResourceType& type, const ObjectKey& key,
                           const DeleteOptions& options) {
  JsonObject body{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  JsonObject preconditions;
  if (!options.uid.empty()) preconditions["uid"] = options.uid;
  if (!options.resource_version.empty())
    preconditions["resourceVersion"] = options.resource_version;
  if (!preconditions.empty()) body["preconditions"] = std::move(preconditions);
  if (!options.propagation.empty()) body["propagationPolicy"] = options.propagation;
  if (options.grace_seconds) body["gracePeriodSeconds"] = *options.grace_seconds;
  return {.method = "DELETE",
          .target = path_of(type, key.space, key.name),
          .content_type = "application/json",
          .body = to_text(std::move(body))};
}

}  // namespace nvdra::k8s
