// One function for each controller.
#pragma once

#include "sandbox/controllers_base.hpp"

#include <memory>

namespace nvdra::sandbox {

// Default service account and root certificate map; empties namespaces and CRDs that are going.
std::unique_ptr<Controller> make_space_controller(Registry& registry);
// Objects whose owners are gone; foreground and orphan deletion.
std::unique_ptr<Controller> make_garbage_collector(Registry& registry);
// ResourceClaims from the templates that pods name.
std::unique_ptr<Controller> make_claim_maker(Registry& registry);
// Takes pods that have ended out of reservedFor; deallocates claims that nobody uses.
std::unique_ptr<Controller> make_claim_releaser(Registry& registry);
// Nodes and devices for pods.
std::unique_ptr<Controller> make_scheduler(Registry& registry);
std::unique_ptr<Controller> make_daemon_set_controller(Registry& registry);
std::unique_ptr<Controller> make_replica_set_controller(Registry& registry);
std::unique_ptr<Controller> make_deployment_controller(Registry& registry);
std::unique_ptr<Controller> make_job_controller(Registry& registry);
// Pods of nodes that were removed.
std::unique_ptr<Controller> make_pod_collector(Registry& registry);
// Keeps at most a few thousand Events.
std::unique_ptr<Controller> make_event_janitor(Registry& registry);

}  // namespace nvdra::sandbox
