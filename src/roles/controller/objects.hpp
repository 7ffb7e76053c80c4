// The objects that the controller makes, as pure builders (cluster-side.md 4.5 [KEEP]).
#pragma once

#include "base/ids.hpp"
#include "k8s/object.hpp"
#include "roles/common/imex_mode.hpp"

#include <string>
#include <vector>

namespace nvdra::roles::controller {

// Annotation of our templates: "namespace/name" under which the controller made it. A copy under
// another name carries its original's, and is not ours (W-S3).
inline constexpr std::string_view made_as_annotation = "resource.nvidia.com/computeDomain.madeAs";

// What we read of a ComputeDomain.
struct Domain {
  k8s::ObjectKey key;
  DomainUid uid;
  std::int64_t generation = 0;
  std::int64_t num_nodes = 0;
  std::string template_name;
  std::string allocation_mode;  // "Single" or "All"
  bool deleting = false;
};

// Never fails on odd objects: a missing spec leaves template_name empty (W-S1).
Domain read_domain(const k8s::Object& object);

// The template that workload pods refer to. hostManaged forces allocationMode Single.
// `resource_version` is the version of resource.k8s.io in use: v1beta1 has another shape.
Json workload_template(const Domain& domain, ImexMode mode, const std::string& resource_version);

// The template that the daemons' claims are made from, next to their DaemonSet in namespace
// `space`.
Json daemon_template(const DomainUid& uid, const std::string& space,
                     const std::string& resource_version);

// True if everything that `wanted` sets is set alike in `actual`; what the server added is ignored.
bool contains(const Json& actual, const Json& wanted);

// Whether a ResourceClaimTemplate was made for the domain `uid` by this controller (or by the
// original one): label, finalizer and the domainID in its config agree, and the annotation, if
// there is one, names this object. A label alone proves nothing (W-S3). Where the template must
// stand, if the domain is known, is_workload_template() says.
bool made_for(const k8s::Object& object, const DomainUid& uid);

// Of templates that made_for() the domain: whether it is its workload template, or the one of its
// daemons, in one of the managed namespaces `spaces`. Both go by place and name: a lost target
// label changes nothing.
bool is_workload_template(const k8s::Object& object, const Domain& domain);
bool is_daemon_template(const k8s::Object& object, const DomainUid& uid,
                        const std::vector<std::string>& spaces);

bool is_target(const k8s::Object& object, std::string_view target);

}  // namespace nvdra::roles::controller
