// Arrangement: what the list of members means for this node's files and its nvidia-imex
// (node-side.md 11.7 and 11.8; newer.md A13; reports 46, 68, 70, 71).
//   * Names (the usual way): nodes.cfg never changes; /etc/hosts is brought up to date. A change of
//     a peer makes nvidia-imex resolve again; a change of the own index restarts it, because it
//     finds out who it is at its start only.
//   * Addresses (gate IMEXDaemonsWithDNSNames off): nothing until the list has as many nodes as the
//     ComputeDomain says; then nodes.cfg is written, and each change restarts nvidia-imex.
#pragma once

#include "base/event.hpp"
#include "base/time.hpp"
#include "imex/peers.hpp"
#include "imex/refresh.hpp"
#include "roles/daemon/moves.hpp"

#include <functional>
#include <optional>

namespace nvdra::roles::daemon {

// What nvidia-imex is to work with. Pure.
struct Layout {
  std::int64_t own = -1;               // own index
  std::vector<imex::Slot> slots;       // names: every slot
  std::vector<std::string> addresses;  // addresses: of the own clique, in the order of the list
  bool operator==(const Layout&) const = default;
};
struct Unknown {
  std::string why;  // nothing can be laid out yet; "" = it is a matter of membership
};
struct Plan {
  std::variant<Layout, Unknown> layout;
  std::vector<std::string> findings;  // members that have no place
};
Plan lay_out(const k8s::Object* object, MemberList list, const Self& self, bool names);

class Arrangement {
public:
  struct Parts {
    asio::any_io_executor executor;
    Time& time;
    Event& news;  // awaited for changes of the object; notified when the arrangement has changed
    imex::Supervisor& supervisor;
    imex::Refresher& refresher;
    std::function<k8s::ObjectPtr()> object;
  };
  struct Settings {
    MemberList list = MemberList::clique_daemons;
    bool names = true;
    std::string hosts_file;
    std::string nodes_file;
  };

  Arrangement(Parts parts, Settings settings, Self self);

  // Until cancelled. What cannot be written is tried again.
  Async<Result<void>> run();

  // The index that the files and the child are for.
  std::optional<std::int64_t> applied() const;
  // Why the files are not as they should be; "" = they are.
  const std::string& trouble() const { return trouble_; }
  // Members without a place, each in one sentence.
  const std::vector<std::string>& findings() const { return findings_; }

private:
  bool arrange(const k8s::Object* object);
  Result<void> apply(const Layout& layout);
  Result<void> apply_names(const Layout& layout);
  Result<void> apply_addresses(const Layout& layout);
  void restart();
  void note(std::string trouble, std::vector<std::string> findings);

  Parts parts_;
  Settings settings_;
  Self self_;
  std::optional<Layout> applied_;
  std::string trouble_;
  std::vector<std::string> findings_;
};

}  // namespace nvdra::roles::daemon
