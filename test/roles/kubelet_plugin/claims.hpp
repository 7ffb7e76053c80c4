// Claims as the API server shows them, for tests of the plugin's decisions.
#pragma once

#include "dra/claim_status.hpp"
#include "roles/common/names.hpp"
#include "roles/kubelet_plugin/ledger.hpp"

#include <string>

namespace nvdra::roles::kubelet_plugin::test {

inline const std::string domain_uid = "0f8fad5b-d9cb-469f-a165-70867728950e";

inline Json parameters(std::string_view kind, std::string_view domain, std::string_view mode = "") {
  JsonObject all{{"apiVersion", nvidia_api_version()}, {"kind", kind}, {"domainID", domain}};
  if (!mode.empty()) all["allocationMode"] = mode;
  return all;
}

inline Json config(Json parameters, std::string_view source = "FromClaim",
                   JsonArray requests = JsonArray{"channel"}) {
  return {{"source", source},
          {"requests", requests},
          {"opaque", {{"driver", driver_name}, {"parameters", std::move(parameters)}}}};
}

inline Json result(std::string_view device = "channel-0", std::string_view request = "channel") {
  return {{"request", request}, {"driver", driver_name}, {"pool", "node-a"}, {"device", device}};
}

inline Json status(JsonArray results, JsonArray configs) {
  return {{"allocation", {{"devices", {{"results", results}, {"config", configs}}}}},
          {"reservedFor", JsonArray{{{"resource", "pods"}, {"name", "p"}, {"uid", "u"}}}}};
}

// The status of a claim that was made from a workload template.
inline Json channel_status(std::string_view domain = domain_uid, std::string_view mode = "Single") {
  return status(JsonArray{result()},
                JsonArray{config(parameters(channel_config_kind, domain, mode))});
}

inline dra::ClaimRef ref(std::string uid, std::string name = "claim") {
  return {"default", std::move(name), ClaimUid(std::move(uid))};
}

inline Begin wanted(std::string uid, Json status = channel_status()) {
  Attempt<std::vector<ConfigGroup>> groups = read_allocation(status, Decoding::strict);
  return {ref(std::move(uid)), status, std::get<std::vector<ConfigGroup>>(std::move(groups))};
}

}  // namespace nvdra::roles::kubelet_plugin::test
