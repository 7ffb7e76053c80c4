#include "roles/common/node_label.hpp"

#include "roles/common/names.hpp"

namespace nvdra::roles {

Json remove_label_patch(const DomainUid& domain) {
  const std::string path = "/metadata/labels/" + pointer_part(domain_label);
  return JsonArray{{{"op", "test"}, {"path", path}, {"value", domain.value}},
                   {{"op", "remove"}, {"path", path}}};
}

}  // namespace nvdra::roles
