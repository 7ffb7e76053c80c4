// The daemons' DaemonSet (cluster-side.md 4.5.1 with newer.md A13, A15, A16): pure builder, and
// what an existing one is to us.
#pragma once

#include "base/ids.hpp"
#include "k8s/object.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace nvdra::roles::controller {

// What all daemons of this installation have in common.
struct DaemonShape {
  std::string space = {};  // the driver's namespace: new DaemonSets are made there
  std::string image = {};
  std::vector<std::string> pull_secrets = {};
  std::int64_t verbosity = 0;
  std::int64_t max_nodes = 18;
  std::string overrides = {};       // IMEX_CONFIG_OVERRIDES, "" = none
  std::string priority_class = {};  // "" = none
  JsonObject resources = {};        // requests, limits of the container
  std::string gates = {};           // FEATURE_GATES
};

// Annotation with the digest of the pod template that was written last: it tells an outdated
// DaemonSet from one that somebody else changed.
inline constexpr std::string_view template_digest_annotation =
    "resource.nvidia.com/computeDomain.daemonTemplateDigest";

// "{"limits":{"memory":"256Mi"},"requests":{…}}", "" = none. The error names the flag and the key.
Result<JsonObject> parse_daemon_resources(std::string_view text);

Json daemon_set(const DomainUid& uid, const std::string& space, const DaemonShape& shape);

// Whether a DaemonSet was made for the domain `uid` by this controller (or by the original one):
// name, label, selector and the template of its claim agree. A label alone proves nothing (W-S3).
// A lost label does not make it a stranger's.
bool daemon_set_made_for(const k8s::Object& object, const DomainUid& uid);

// How an existing DaemonSet relates to the wanted one. What the server fills in is no difference,
// nor is another spelling of a quantity; more env, containers, volumes, rights of the host, pull
// secrets, priority or resources than wanted is one. Of a DaemonSet without our annotation (the
// original driver's) only what is wanted must be there: nobody can say who wanted the rest.
enum class Fit {
  same,
  outdated,  // made for other settings (image, gates, verbosity …) or by another version
  edited,    // made for these settings, and then changed by somebody else
};
Fit fit(const k8s::Object& actual, const Json& wanted);

// Names the first differences of the pod template, for people: "image, FEATURE_GATES".
std::string differences(const k8s::Object& actual, const Json& wanted);

// JSON patch that makes the pod template the wanted one, guarded by the resourceVersion. The
// DaemonSet's pods are then replaced one by one.
Json roll_out_patch(const k8s::Object& actual, const Json& wanted);

}  // namespace nvdra::roles::controller
