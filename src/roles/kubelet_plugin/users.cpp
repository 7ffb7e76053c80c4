#include "roles/kubelet_plugin/users.hpp"

#include "roles/common/names.hpp"

namespace nvdra::roles::kubelet_plugin {

std::vector<k8s::ObjectReference> pods_of(const Json& status, const std::string& space) {
  std::vector<k8s::ObjectReference> found;
  for (const Json& user : array_or_empty(status, "reservedFor")) {
    if (text_or_empty(user, "resource") != "pods") continue;
    found.push_back({"v1",
                     "Pod",
                     {space, std::string(text_or_empty(user, "name"))},
                     std::string(text_or_empty(user, "uid"))});
  }
  return found;
}

Async<bool> all_leaving(k8s::Client& client, std::vector<k8s::ObjectReference> users) {
  for (const k8s::ObjectReference& user : users) {
    Result<k8s::Object> pod = co_await client.get(pods(), user.key);
    if (!pod && pod.error().code != k8s::Errc::not_found) co_return false;
    if (pod && pod->uid() == user.uid && !pod->deleting()) co_return false;
  }
  co_return !users.empty();
}

}  // namespace nvdra::roles::kubelet_plugin
