#include "sandbox/api_objects.hpp"

#include "base/try.hpp"
#include "sandbox/api_encode.hpp"
#include "sandbox/api_protobuf.hpp"
#include "sandbox/api_versions.hpp"
#include "sandbox/crd_yaml.hpp"
#include "sandbox/store_error.hpp"

#include <fmt/format.h>

#include <charconv>

namespace nvdra::sandbox {
namespace {

// Answers one request; each verb is a function.
class Desk {
public:
  Desk(Registry& registry, const Route& route, const Request& request)
      : registry_(registry), route_(route), resource_(*route.resource), request_(request) {}

  Result<Answer> answer() {
    if (!resource_.listed) return review();
    if (route_.subresource == "binding" || route_.subresource == "eviction" ||
        route_.subresource == "finalize")
      return action();
    bool known =
        route_.subresource.empty() || (route_.subresource == "status" && resource_.has_status);
    if (!known ||
        (!route_.subresource.empty() && (route_.verb == "create" || route_.verb == "delete")))
      return deny(Reason::not_found, "the server could not find the requested resource");
    if (resource_.type.namespaced && route_.space.empty() && route_.verb != "list")
      return deny(Reason::method_not_allowed,
                  "the server does not allow this method on the requested resource");
    if (route_.verb == "get") return get();
    if (route_.verb == "list") return list();
    if (route_.verb == "create") return create();
    if (route_.verb == "update") return update();
    if (route_.verb == "patch") return patch();
    if (route_.verb == "delete") return remove();
    return remove_all();
  }

private:
  ObjectKey key() const { return {route_.space, route_.name}; }
  Answer one(const ItemPtr& item, int status = 200) const {
    return {status, encode_item(shape_of(request_, route_), *item, registry_.time().wall())};
  }
  WriteOptions options() const {
    return {.dry_run = !request_.parameter("dryRun").empty(),
            .strict = request_.parameter("fieldValidation") == "Strict",
            .subresource = route_.subresource,
            .manager = request_.parameter("fieldManager")};
  }
  Result<Json> body() const {
    std::string type = request_.header("content-type");
    if (type.find("protobuf") != std::string::npos) return from_protobuf(request_.body);
    if (type.find("cbor") != std::string::npos)
      return deny(Reason::unsupported_media,
                  "the body of the request was in an unknown format - accepted media types "
                  "include: application/json, application/yaml");
    Result<Json> parsed = parse_json(request_.body);
    if (parsed) return parsed;
    if (type.find("yaml") == std::string::npos)
      return deny(Reason::bad_request,
                  fmt::format("the object provided is unrecognized: {}", parsed.error().text()));
    Result<std::vector<Json>> documents = parse_yaml(request_.body);
    if (!documents) return deny(Reason::bad_request, documents.error().text());
    if (documents->size() != 1) return deny(Reason::bad_request, "one YAML document is expected");
    return std::move(documents->front());
  }
  Result<Json> stored_body() const {
    TRY(Json object, body());
    return to_stored(resource_, route_.version, std::move(object));
  }
  // A whole object: custom ones must say what they are.
  Result<Json> whole_body() const {
    TRY(Json object, stored_body());
    std::string_view kind = text_or_empty(object, "kind");
    if (resource_.custom && kind.empty())
      return deny(Reason::bad_request,
                  fmt::format("the object provided is unrecognized (must be of type {}): Object "
                              "'Kind' is missing",
                              resource_.type.kind));
    if (resource_.custom && kind != resource_.type.kind)
      return deny(Reason::invalid,
                  fmt::format("{}.{} \"{}\" is invalid: kind: Invalid value: \"{}\": must be {}",
                              kind, resource_.type.group, text_or_empty(object, "metadata/name"),
                              kind, resource_.type.kind));
    return object;
  }

  Result<Answer> get() {
    TRY(ItemPtr item, registry_.get(resource_, key()));
    return one(item);
  }

  Result<Answer> list() {
    ListQuery query;
    TRY(query.filter, filter_of(route_, request_));
    std::string limit = request_.parameter("limit");
    std::from_chars(limit.data(), limit.data() + limit.size(), query.limit);
    query.continue_from = request_.parameter("continue");
    TRY(Page page, registry_.list(resource_, query));
    return Answer{200, encode_page(shape_of(request_, route_), page, registry_.time().wall())};
  }

  Result<Answer> create() {
    TRY(Json object, whole_body());
    TRY(ItemPtr item, registry_.create(resource_, route_.space, std::move(object), options()));
    return one(item, 201);
  }

  Result<Answer> update() {
    TRY(Json object, whole_body());
    TRY(ItemPtr item, registry_.update(resource_, key(), std::move(object), options()));
    return one(item);
  }

  Result<Answer> patch() {
    std::string type = request_.header("content-type");
    type = type.substr(0, type.find(';'));
    PatchForm form;
    if (type == "application/json-patch+json")
      form = PatchForm::json;
    else if (type == "application/merge-patch+json")
      form = PatchForm::merge;
    else if (type == "application/strategic-merge-patch+json")
      form = PatchForm::strategic;
    else if (type == "application/apply-patch+yaml")
      form = PatchForm::apply;
    else
      return deny(Reason::unsupported_media,
                  fmt::format("the body of the request was in an unknown format: {}", type));
    if (form == PatchForm::apply && request_.parameter("fieldManager").empty())
      return deny(Reason::bad_request,
                  "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: "
                  "Required value: is required for apply patch");
    TRY(Json change, form == PatchForm::json ? body() : stored_body());
    bool existed = registry_.find(resource_, key()) != nullptr;
    // What a patch of another version says of apiVersion is not a change of the stored object.
    if (form != PatchForm::json && change.is_object()) change.get_object().erase("apiVersion");
    TRY(ItemPtr item, registry_.patch(resource_, key(), change, form, options()));
    return one(item, existed ? 200 : 201);
  }

  Result<RemoveOptions> remove_options() const {
    RemoveOptions remove{.dry_run = !request_.parameter("dryRun").empty(),
                         .propagation = request_.parameter("propagationPolicy")};
    std::string grace = request_.parameter("gracePeriodSeconds");
    std::int64_t seconds = 0;
    if (!grace.empty() &&
        std::from_chars(grace.data(), grace.data() + grace.size(), seconds).ec == std::errc{})
      remove.grace = seconds;
    if (request_.body.empty()) return remove;
    TRY(Json said, body());
    remove.uid = text_or_empty(said, "preconditions/uid");
    remove.version = text_or_empty(said, "preconditions/resourceVersion");
    std::string_view propagation = text_or_empty(said, "propagationPolicy");
    if (!propagation.empty()) remove.propagation = propagation;
    if (const Json* orphan = nvdra::get(said, "orphanDependents"); orphan && orphan->is_bool())
      remove.propagation = orphan->get_bool() ? "Orphan" : "Background";
    if (Result<std::int64_t> given = int_at(said, "gracePeriodSeconds")) remove.grace = *given;
    if (!array_or_empty(said, "dryRun").empty()) remove.dry_run = true;
    return remove;
  }

  Result<Answer> remove() {
    TRY(RemoveOptions how, remove_options());
    TRY(Removal removal, registry_.remove(resource_, key(), how));
    if (!removal.gone || resource_.type.plural == "pods") return one(removal.item);
    JsonObject details{
        {"name", route_.name}, {"kind", resource_.type.plural}, {"uid", removal.item->uid()}};
    if (!resource_.type.group.empty()) details["group"] = resource_.type.group;
    return Answer{200, to_text(JsonObject{{"kind", "Status"},
                                          {"apiVersion", "v1"},
                                          {"metadata", JsonObject{}},
                                          {"status", "Success"},
                                          {"details", std::move(details)}})};
  }

  Result<Answer> remove_all() {
    TRY(RemoveOptions how, remove_options());
    ListQuery query;
    TRY(query.filter, filter_of(route_, request_));
    TRY(Page page, registry_.list(resource_, query));
    for (const ItemPtr& item : page.items) {
      Result<Removal> removal = registry_.remove(resource_, item->key(), how);
      if (!removal && reason_of(removal.error()) != Reason::not_found)
        return std::move(removal).failure();
    }
    return Answer{200, encode_page(shape_of(request_, route_), page, registry_.time().wall())};
  }

  Result<Answer> action() {
    const std::string& what = route_.subresource;
    if (what == "finalize") {
      TRY_VOID(registry_.finalize_space(route_.name));
      return success();
    }
    TRY(Json said, body());
    if (what == "eviction") {
      TRY(Removal removal, registry_.remove(resource_, key(), {}));
      (void)removal;
      return success(201);
    }
    std::string node(text_or_empty(said, "target/name"));
    if (node.empty()) return deny(Reason::bad_request, "target.name: Required value");
    TRY(ItemPtr bound, registry_.bind(key(), node));
    (void)bound;
    return success(201);
  }

  static Answer success(int status = 200) {
    return {status, R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"})"};
  }

  // Everybody may do everything here.
  Result<Answer> review() {
    if (route_.verb != "create")
      return deny(Reason::method_not_allowed,
                  "the server does not allow this method on the requested resource");
    TRY(Json object, body());
    if (!object.is_object()) return deny(Reason::bad_request, "the request's body is no object");
    Json user = JsonObject{{"username", "sandbox"}, {"groups", JsonArray{"system:masters"}}};
    JsonObject status{{"allowed", true}};
    if (resource_.type.kind == "SelfSubjectReview") status = {{"userInfo", user}};
    if (resource_.type.kind == "TokenReview") status = {{"authenticated", true}, {"user", user}};
    if (resource_.type.kind == "SelfSubjectRulesReview") {
      Json all = JsonObject{
          {"verbs", JsonArray{"*"}}, {"apiGroups", JsonArray{"*"}}, {"resources", JsonArray{"*"}}};
      status = {{"resourceRules", JsonArray{all}},
                {"nonResourceRules", JsonArray{}},
                {"incomplete", false}};
    }
    object.get_object()["status"] = std::move(status);
    return Answer{201, to_text(object)};
  }

  Registry& registry_;
  const Route& route_;
  const Resource& resource_;
  const Request& request_;
};

}  // namespace

Result<Filter> filter_of(const Route& route, const Request& request) {
  Filter filter{.space = route.space};
  TRY(filter.labels, parse_label_selector(request.parameter("labelSelector")));
  TRY(filter.fields, parse_field_selector(request.parameter("fieldSelector"), *route.resource));
  if (!route.name.empty())
    filter.fields.requirements.push_back(
        {"metadata.name", Requirement::Operator::in, {route.name}});
  return filter;
}

Answer refusal(const Error& error) {
  return {http_status(reason_of(error)), to_text(status_of(error))};
}

Answer answer_object_request(Registry& registry, const Route& route, const Request& request) {
  Result<Answer> answer = Desk(registry, route, request).answer();
  return answer ? *std::move(answer) : refusal(answer.error());
}

}  // namespace nvdra::sandbox
