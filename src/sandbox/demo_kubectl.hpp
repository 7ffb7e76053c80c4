// The kubectl commands that the guide uses, played through the sandbox's API server, so that a
// demonstration needs no kubectl: get, apply, delete, describe pod, wait, exec, logs.
// Output and exit status are like kubectl's. (exec and logs are handed to the kubelets directly,
// which the API server would do as well.)
#pragma once

#include "k8s/client.hpp"
#include "k8s/http_transport.hpp"
#include "sandbox/api_pods.hpp"
#include "sandbox/api_server.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace nvdra::sandbox {

struct KubectlAnswer {
  int status = 0;
  std::string out = {};
  std::string err = {};
};

// A command line, taken apart.
struct KubectlArguments {
  std::vector<std::string> words;                         // the verb first
  std::map<std::string, std::string, std::less<>> flags;  // long names
  std::vector<std::string> command;                       // behind "--"

  std::string flag(std::string_view name) const;
  std::string word(std::size_t index) const;
};
// Error: a flag that is not known.
Result<KubectlArguments> kubectl_arguments(const std::vector<std::string>& arguments);

class DemoKubectl {
public:
  static Result<std::unique_ptr<DemoKubectl>> connect(asio::any_io_executor executor, Time& time,
                                                      Registry& registry, ApiServer& server,
                                                      PodRuntime& pods);

  // `arguments` without "kubectl".
  Async<KubectlAnswer> run(std::vector<std::string> arguments);
  // What `-f NAME` reads.
  std::map<std::string, std::string, std::less<>> files;

  k8s::Client& client() { return client_; }

private:
  DemoKubectl(std::unique_ptr<k8s::Transport> transport, Time& time, Registry& registry,
              PodRuntime& pods);
  using Done = Result<KubectlAnswer>;

  Async<Done> perform(KubectlArguments arguments);
  Async<Done> get(KubectlArguments arguments);
  Async<Done> apply(KubectlArguments arguments);
  Async<Done> remove(KubectlArguments arguments);
  Async<Done> until_gone(const Resource* resource, std::string space, std::string name);
  Async<Done> describe(KubectlArguments arguments);
  Async<Done> wait(KubectlArguments arguments);
  Async<Done> exec(KubectlArguments arguments);
  Async<Done> logs(KubectlArguments arguments);

  Result<const Resource*> resource(std::string_view word) const;
  Result<std::vector<Json>> documents(const KubectlArguments& arguments) const;
  Result<ItemPtr> pod(const KubectlArguments& arguments) const;

  std::unique_ptr<k8s::Transport> transport_;
  k8s::Client client_;
  Time& time_;
  Registry& registry_;
  PodRuntime& pods_;
};

}  // namespace nvdra::sandbox
