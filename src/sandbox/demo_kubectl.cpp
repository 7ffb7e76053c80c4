#include "sandbox/demo_kubectl.hpp"

#include "base/args.hpp"
#include "base/try.hpp"
#include "imex/text.hpp"
#include "sandbox/crd_yaml.hpp"
#include "sandbox/demo_print.hpp"
#include "sandbox/store_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>

namespace nvdra::sandbox {
namespace {

constexpr Duration look_every = 20ms;
constexpr Duration delete_limit = 60s;

std::string space_of(const KubectlArguments& arguments, const Resource& resource) {
  if (!resource.type.namespaced || !arguments.flag("all-namespaces").empty()) return {};
  const std::string given = arguments.flag("namespace");
  return given.empty() ? "default" : given;
}

bool ready(const Json& object, std::string_view condition) {
  return std::ranges::any_of(array_or_empty(object, "status/conditions"), [&](const Json& one) {
    return text_or_empty(one, "type") == condition && text_or_empty(one, "status") == "True";
  });
}

// Objects with equal keys keep their order.
void sort_by(std::vector<k8s::Object>& objects,
             const std::function<std::string(const k8s::Object&)>& key) {
  std::vector<std::pair<std::string, std::size_t>> order;
  for (std::size_t i = 0; i < objects.size(); ++i) order.emplace_back(key(objects[i]), i);
  std::ranges::sort(order);
  std::vector<k8s::Object> sorted;
  for (const auto& [text, index] : order) sorted.push_back(std::move(objects[index]));
  objects = std::move(sorted);
}

// Keeps what a command in a pod prints.
class Kept final : public PodOutput {
public:
  Async<Result<void>> write_out(std::string bytes) override {
    out += bytes;
    co_return ok();
  }
  Async<Result<void>> write_err(std::string bytes) override {
    err += bytes;
    co_return ok();
  }
  Async<Result<std::string>> read_in() override { co_return std::string(); }
  std::string out, err;
};

}  // namespace

Result<std::unique_ptr<DemoKubectl>> DemoKubectl::connect(asio::any_io_executor executor,
                                                          Time& time, Registry& registry,
                                                          ApiServer& server, PodRuntime& pods) {
  k8s::Config config;
  config.host = "127.0.0.1";
  config.port = std::to_string(server.port());
  config.tls = false;
  TRY(auto transport, k8s::make_http_transport(executor, time, std::move(config)));
  return std::unique_ptr<DemoKubectl>(new DemoKubectl(std::move(transport), time, registry, pods));
}

DemoKubectl::DemoKubectl(std::unique_ptr<k8s::Transport> transport, Time& time, Registry& registry,
                         PodRuntime& pods)
    : transport_(std::move(transport)),
      client_(*transport_, time),
      time_(time),
      registry_(registry),
      pods_(pods) {}

Async<KubectlAnswer> DemoKubectl::run(std::vector<std::string> arguments) {
  const Result<KubectlArguments> taken = kubectl_arguments(arguments);
  if (!taken) co_return KubectlAnswer{1, "", taken.error().text() + "\n"};
  Done done = co_await perform(*taken);
  if (!done) co_return KubectlAnswer{1, "", done.error().text() + "\n"};
  co_return *std::move(done);
}

Async<DemoKubectl::Done> DemoKubectl::perform(KubectlArguments arguments) {
  struct Verb {
    std::string_view name;
    Async<Done> (DemoKubectl::*run)(KubectlArguments);
  };
  constexpr std::array verbs = {
      Verb{"apply", &DemoKubectl::apply},       Verb{"delete", &DemoKubectl::remove},
      Verb{"describe", &DemoKubectl::describe}, Verb{"exec", &DemoKubectl::exec},
      Verb{"get", &DemoKubectl::get},           Verb{"logs", &DemoKubectl::logs},
      Verb{"wait", &DemoKubectl::wait},
  };
  const auto* verb = std::ranges::find(verbs, arguments.word(0), &Verb::name);
  if (verb == verbs.end())
    co_return refuse(fmt::format("error: the sandbox does not play kubectl {}", arguments.word(0)));
  Done done = co_await (this->*verb->run)(std::move(arguments));
  co_return done;
}

Result<const Resource*> DemoKubectl::resource(std::string_view word) const {
  const std::string_view plain = word.substr(0, word.find('.'));
  for (const Resource* one : registry_.catalog().all()) {
    const auto& names = one->short_names;
    if (one->type.plural == plain || one->singular == plain || one->type.kind == plain ||
        std::ranges::find(names, plain) != names.end())
      return one;
  }
  return refuse(fmt::format("error: the server doesn't have a resource type \"{}\"", word));
}

Result<std::vector<Json>> DemoKubectl::documents(const KubectlArguments& arguments) const {
  const std::string name = arguments.flag("filename");
  const auto file = files.find(name);
  if (file == files.end())
    return refuse(fmt::format("error: the path \"{}\" does not exist", name));
  return parse_yaml(file->second);
}

Async<DemoKubectl::Done> DemoKubectl::get(KubectlArguments arguments) {
  CO_TRY(const Resource* type, resource(arguments.word(1)));
  const std::string space = space_of(arguments, *type);
  const std::string name = arguments.word(2);
  std::vector<k8s::Object> objects;
  if (name.empty()) {
    CO_TRY(k8s::ListAnswer list,
           co_await client_.list(type->type, space,
                                 {.label_selector = arguments.flag("selector"),
                                  .field_selector = arguments.flag("field-selector")}));
    objects = std::move(list.items);
  } else {
    Result<k8s::Object> one = co_await client_.get(type->type, {space, name});
    if (!one && one.error().code == k8s::Errc::not_found)
      co_return refuse(fmt::format("Error from server (NotFound): {} \"{}\" not found",
                                   type->qualified(), name));
    CO_TRY(k8s::Object object, std::move(one));
    objects.push_back(std::move(object));
  }
  const std::string output = arguments.flag("output");
  constexpr std::string_view path = "jsonpath=";
  if (output.starts_with(path) && objects.size() == 1)
    co_return KubectlAnswer{.out = print_path(objects[0].json(), output.substr(path.size()))};
  if (output == "yaml" && objects.size() == 1)
    co_return KubectlAnswer{.out = print_yaml(objects[0].json())};
  if (objects.empty())
    co_return KubectlAnswer{
        .err = space.empty() ? "No resources found\n"
                             : fmt::format("No resources found in {} namespace.\n", space)};
  if (const std::string key = arguments.flag("sort-by"); !key.empty())
    sort_by(objects,
            [&](const k8s::Object& object) { return print_path(object.json(), "{" + key + "}"); });
  const TableForm form{.with_space = type->type.namespaced && space.empty(),
                       .wide = output == "wide"};
  co_return KubectlAnswer{.out = print_table(*type, objects, form, time_.wall())};
}

Async<DemoKubectl::Done> DemoKubectl::apply(KubectlArguments arguments) {
  CO_TRY(std::vector<Json> all, documents(arguments));
  KubectlAnswer answer;
  for (Json& document : all) {
    CO_TRY(const Resource* type, resource(text_or_empty(document, "kind")));
    const std::string space = space_of(arguments, *type);
    const std::string name(text_or_empty(document, "metadata/name"));
    const std::string title = type->type.group.empty()
                                  ? type->singular
                                  : fmt::format("{}.{}", type->singular, type->type.group);
    Result<k8s::Object> made = co_await client_.create(type->type, space, document);
    if (made) {
      answer.out += fmt::format("{}/{} created\n", title, name);
      continue;
    }
    if (made.error().code != k8s::Errc::already_exists) co_return std::move(made).failure();
    CO_TRY(k8s::Object changed, co_await client_.patch(type->type, {space, name}, document));
    answer.out += fmt::format("{}/{} configured\n", title, name);
  }
  co_return answer;
}

Async<DemoKubectl::Done> DemoKubectl::remove(KubectlArguments arguments) {
  const bool force = !arguments.flag("force").empty();
  if (arguments.flag("filename").empty()) {
    CO_TRY(const Resource* type, resource(arguments.word(1)));
    KubectlAnswer answer;
    // All are asked to go before the first is waited for.
    const std::span<const std::string> names = std::span(arguments.words).subspan(2);
    for (const std::string& name : names) {
      k8s::DeleteOptions options;
      if (force) options.grace_seconds = 0;
      CO_TRY_VOID(co_await client_.remove(type->type, {space_of(arguments, *type), name}, options));
    }
    for (const std::string& name : names) {
      CO_TRY(KubectlAnswer one, co_await until_gone(type, space_of(arguments, *type), name));
      answer.out += one.out;
    }
    if (force)
      answer.err =
          "Warning: Immediate deletion does not wait for confirmation that the running resource "
          "has been terminated. The resource may continue to run on the cluster indefinitely.\n";
    co_return answer;
  }
  CO_TRY(std::vector<Json> all, documents(arguments));
  KubectlAnswer answer;
  for (const Json& document : all) {
    CO_TRY(const Resource* type, resource(text_or_empty(document, "kind")));
    const std::string space = space_of(arguments, *type);
    const std::string name(text_or_empty(document, "metadata/name"));
    CO_TRY_VOID(co_await client_.remove(type->type, {space, name}));
    CO_TRY(KubectlAnswer one, co_await until_gone(type, space, name));
    answer.out += one.out;
  }
  co_return answer;
}

// Waits until the object has gone, as kubectl does.
Async<DemoKubectl::Done> DemoKubectl::until_gone(const Resource* type, std::string space,
                                                 std::string name) {
  for (const Instant end = time_.now() + delete_limit; time_.now() < end;) {
    Result<k8s::Object> left = co_await client_.get(type->type, {space, name});
    if (!left && left.error().code == k8s::Errc::not_found)
      co_return KubectlAnswer{
          .out = fmt::format("{} \"{}\" deleted{}\n", type->singular, name,
                             space.empty() ? "" : fmt::format(" from {} namespace", space))};
    co_await time_.sleep(look_every);
  }
  co_return refuse(
      fmt::format("error: timed out waiting for the deletion of {}/{}", type->singular, name));
}

Async<DemoKubectl::Done> DemoKubectl::describe(KubectlArguments arguments) {
  CO_TRY(const Resource* pods, resource("pods"));
  CO_TRY(const Resource* events, resource("events"));
  const std::string space = space_of(arguments, *pods);
  CO_TRY(k8s::Object pod, co_await client_.get(pods->type, {space, arguments.word(2)}));
  CO_TRY(
      k8s::ListAnswer told,
      co_await client_.list(events->type, space,
                            {.field_selector = fmt::format("involvedObject.uid={}", pod.uid())}));
  sort_by(told.items, [](const k8s::Object& event) {
    return std::string(text_or_empty(event.json(), "firstTimestamp"));
  });
  co_return KubectlAnswer{.out = describe_pod(pod.json(), told.items, time_.wall())};
}

// kubectl wait --for=condition=NAME TYPE/NAME --timeout=DURATION
Async<DemoKubectl::Done> DemoKubectl::wait(KubectlArguments arguments) {
  const std::string target = arguments.word(1);
  const auto slash = target.find('/');
  CO_TRY(const Resource* type, resource(target.substr(0, slash)));
  const k8s::ObjectKey key{space_of(arguments, *type), target.substr(slash + 1)};
  constexpr std::string_view prefix = "condition=";
  const std::string condition = arguments.flag("for").substr(prefix.size());
  const std::string limit = arguments.flag("timeout");
  CO_TRY(const auto length, parse_duration(limit.empty() ? "30s" : limit));
  for (const Instant end = time_.now() + length; time_.now() < end;) {
    CO_TRY(k8s::Object object, co_await client_.get(type->type, key));
    if (ready(object.json(), condition))
      co_return KubectlAnswer{.out =
                                  fmt::format("{}/{} condition met\n", type->singular, key.name)};
    co_await time_.sleep(look_every);
  }
  co_return refuse(fmt::format("error: timed out waiting for the condition on {}", target));
}

Result<ItemPtr> DemoKubectl::pod(const KubectlArguments& arguments) const {
  const Resource& pods = registry_.resource("pods");
  Result<ItemPtr> found = registry_.get(pods, {space_of(arguments, pods), arguments.word(1)});
  if (!found) return refuse("Error from server (NotFound): " + std::string(found.error().doing));
  return found;
}

Async<DemoKubectl::Done> DemoKubectl::exec(KubectlArguments arguments) {
  CO_TRY(ItemPtr found, pod(arguments));
  Kept kept;
  ExecQuery query{.container = {}, .command = arguments.command};
  CO_TRY(const int status, co_await pods_.exec(found, std::move(query), kept));
  if (status != 0) kept.err += fmt::format("command terminated with exit code {}\n", status);
  co_return KubectlAnswer{status, kept.out, kept.err};
}

Async<DemoKubectl::Done> DemoKubectl::logs(KubectlArguments arguments) {
  CO_TRY(ItemPtr found, pod(arguments));
  Kept kept;
  LogQuery query{.container = {}};
  query.tail_lines = imex::parse_number<std::int64_t>(arguments.flag("tail"));
  CO_TRY_VOID(co_await pods_.logs(found, std::move(query), kept));
  co_return KubectlAnswer{.out = kept.out};
}

}  // namespace nvdra::sandbox
