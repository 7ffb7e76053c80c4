#include "roles.hpp"

#include "roles/check_host_socket/run.hpp"
#include "roles/controller/run.hpp"
#include "roles/daemon/run.hpp"
#include "roles/kubelet_plugin/run.hpp"
#include "roles/wait_for_driver/run.hpp"

#include <algorithm>
#include <iterator>

namespace nvdra {
namespace {

// clang-format off
constexpr Role table[] = {
  {"check-host-socket", "",                              "is this node's own IMEX service ready?",        roles::check_host_socket::run},
  {"controller",        "compute-domain-controller",     "reconcile ComputeDomains",                      roles::controller::run},
  {"daemon",            "compute-domain-daemon",         "one node's member of one domain",               roles::daemon::run},
  {"kubelet-plugin",    "compute-domain-kubelet-plugin", "prepare claims for the pods of this node",      roles::kubelet_plugin::run},
  {"wait-for-driver",   "",                              "wait until the node's GPU driver can be used",  roles::wait_for_driver::run},
};
// clang-format on
static_assert(std::ranges::is_sorted(table, {}, &Role::name), "keep roles sorted by name");
static_assert(std::ranges::adjacent_find(table, {}, &Role::name) == std::end(table),
              "role names are unique");

}  // namespace

std::span<const Role> all_roles() {
  return table;
}

const Role* find_role(std::string_view name_or_alias) {
  for (const Role& role : table)
    if (role.name == name_or_alias || (!role.alias.empty() && role.alias == name_or_alias))
      return &role;
  return nullptr;
}

}  // namespace nvdra
