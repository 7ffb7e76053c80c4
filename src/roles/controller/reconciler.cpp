#include "roles/controller/reconciler.hpp"

#include "base/log.hpp"
#include "base/try.hpp"
#include "roles/common/names.hpp"
#include "roles/controller/daemon_pod.hpp"
#include "roles/controller/patches.hpp"

#include <fmt/format.h>

namespace nvdra::roles::controller {
namespace {

// A plan leads to the next one at most this often in one go; then the queue comes back to it.
constexpr int rounds = 10;
// So long the words of a condition must differ before that alone is worth a request.
constexpr Duration words_settle = 2s;
constexpr Duration ask_again = 5s;
constexpr Duration patience = 5s;  // with daemons that start
// The reason of a domain whose daemons are on their way.
constexpr std::string_view waiting = "WaitingForDaemons";

}  // namespace

Reconciler::Reconciler(k8s::Client& client, Time& time, k8s::EventRecorder& events, Caches& caches,
                       Settings settings)
    : client_(client),
      time_(time),
      events_(events),
      caches_(caches),
      settings_(std::move(settings)),
      performer_(client, caches, settings_) {}

void Reconciler::tell_at_start() {
  Leftovers found = find_leftovers(caches_.inventory(), settings_);
  for (std::string& line : describe(found, settings_)) LOG_WARNING(log::Plain{std::move(line)});
  for (const k8s::ObjectPtr& domain : found.with_other_template)
    events_.record(k8s::EventType::normal, k8s::reference_of(*domain), "TemplateOfOtherMode",
                   "the workload template was made for another imex.mode and is made again; claims "
                   "that exist keep what they have");
  LOG_INFO(6, log::Plain{fmt::format("Cleanup: perform for {} ComputeDomains that no longer exist",
                                     found.vanished)});
}

Async<Result<k8s::Again>> Reconciler::reconcile(std::string uid) {
  if (caches_.domain(uid)) {
    Result<k8s::Again> done = co_await reconcile_domain(uid);
    co_return done;
  }
  waits_.erase(uid);
  Result<k8s::Again> cleaned = co_await clean_orphans(uid);
  co_return cleaned;
}

Async<Result<k8s::Again>> Reconciler::reconcile_domain(std::string uid) {
  std::optional<std::vector<k8s::ObjectPtr>> live;
  bool unproven = false;
  for (int round = 0; round < rounds; ++round) {
    k8s::ObjectPtr object = caches_.domain(uid);
    if (!object) co_return k8s::Again{};
    LOG_INFO(2, log::Plain{fmt::format("Processing added or updated ComputeDomain: {}/{} ({})",
                                       object->space(), object->name(), uid)});
    Observed observed = caches_.observe(object);
    observed.live_pods = live;
    Plan plan = plan_domain(observed, settings_);
    if (plan.actions.empty() && plan.doubtful && !live && !unproven) {
      Result<std::vector<k8s::ObjectPtr>> listed = co_await list_pods(uid);
      if (listed) {
        live = *std::move(listed);
      } else {
        unproven = true;  // what cannot be proven stays as it is
        LOG_WARNING("CliqueCleanup: cannot list daemon pods, nothing is removed",
                    {{"uid", uid}, {"err", listed.error().text()}});
      }
      continue;
    }
    if (plan.actions.empty()) {
      Result<k8s::Again> written = co_await write_status(uid, std::move(plan));
      if (written && unproven && !*written) co_return k8s::Again{ask_again};
      co_return written;
    }
    Result<void> done = co_await perform(uid, std::move(plan.actions));
    if (!done) co_return std::move(done).failure();
  }
  co_return k8s::Again{1s};
}

Async<Result<void>> Reconciler::perform(std::string uid, std::vector<Action> actions) {
  for (Action& action : actions) {
    tell_of_use(uid, action);
    Result<void> done = co_await performer_.perform(std::move(action));
    if (done) continue;
    Error error = done.error();
    if (!k8s::is_retryable(error)) {
      Plan told{{}, {{"Ready", false, "ReconcileError", error.text(), true}}, false};
      Result<k8s::Again> written = co_await write_status(uid, std::move(told));
      if (!written) LOG_WARNING("Cannot write the status", {{"err", written.error().text()}});
    }
    co_return Failure{error};
  }
  co_return ok();
}

Async<Result<std::vector<k8s::ObjectPtr>>> Reconciler::list_pods(std::string uid) {
  std::vector<k8s::ObjectPtr> found;
  k8s::ListOptions options{.label_selector = std::string(domain_label) + "=" + uid};
  for (const std::string& space : settings_.spaces) {
    CO_TRY(k8s::ListAnswer answer, co_await client_.list(pods(), space, options));
    for (const k8s::Object& pod : answer.items)
      found.push_back(std::make_shared<const k8s::Object>(trim_pod(pod.json())));
  }
  co_return found;
}

Async<Result<k8s::Again>> Reconciler::clean_orphans(std::string uid) {
  Plan plan = plan_orphans(caches_.remains(DomainUid(uid)), settings_);
  LOG_INFO(6, log::Plain{fmt::format("Cleanup: perform for {} objects of ComputeDomain {}",
                                     plan.actions.size(), uid)});
  if (plan.actions.empty()) co_return k8s::Again{};
  // The cache may lag behind: objects are removed only when the server says that their
  // ComputeDomain does not exist.
  CO_TRY(bool exists, co_await domain_exists(uid));
  if (exists) co_return k8s::Again{1s};
  for (Action& action : plan.actions) {
    Result<void> done = co_await performer_.perform(std::move(action));
    if (!done) co_return std::move(done).failure();
  }
  LOG_INFO(1, "Removed the objects of a ComputeDomain that no longer exists", {{"uid", uid}});
  co_return k8s::Again{};
}

Async<Result<bool>> Reconciler::domain_exists(std::string uid) {
  CO_TRY(k8s::ListAnswer answer, co_await client_.list(compute_domains(), ""));
  for (const k8s::Object& object : answer.items)
    if (object.uid() == uid) co_return true;
  co_return false;
}

bool Reconciler::settled_words(const std::string& uid, bool urgent) {
  std::optional<Instant>& since = waits_[uid].words;
  bool settled = urgent || (since && time_.now() - *since >= words_settle);
  if (settled)
    since.reset();
  else if (!since)
    since = time_.now();
  return settled;
}

k8s::Again Reconciler::tell_of_waiting(const k8s::Object& domain, const Plan& plan) {
  Waits& waits = waits_[std::string(domain.uid())];
  auto ready = std::ranges::find(plan.findings, "Ready", &Finding::type);
  if (ready == plan.findings.end() || ready->reason != waiting) {
    waits.daemons.reset();
    waits.told = false;
    return {};
  }
  if (!waits.daemons) waits.daemons = time_.now();
  if (waits.told) return {};
  Duration passed = time_.now() - *waits.daemons;
  if (passed < patience) return patience - passed;
  waits.told = true;
  events_.record(k8s::EventType::normal, k8s::reference_of(domain), ready->reason, ready->message);
  return {};
}

Async<Result<k8s::Again>> Reconciler::write_status(std::string uid, Plan plan) {
  k8s::ObjectPtr object = caches_.domain(uid);
  if (!object || plan.findings.empty()) co_return k8s::Again{};
  k8s::Again again = tell_of_waiting(*object, plan);
  std::optional<StatusChange> change = status_patch(*object, plan, time_.wall());
  if (!change) {
    waits_[uid].words.reset();
    co_return again;
  }
  if (!settled_words(uid, change->urgent)) co_return k8s::Again{words_settle};
  Result<void> sent = co_await send_status(object, std::move(plan), std::move(change->patch));
  if (sent) co_return again;
  if (sent.error().code != k8s::Errc::conflict) co_return std::move(sent).failure();
  // A daemon wrote meanwhile: the next reconcile starts from what it said.
  CO_TRY_VOID(co_await performer_.refresh(Kind::domain, object));
  co_return k8s::Again{Duration::zero()};
}

Async<Result<void>> Reconciler::send_status(k8s::ObjectPtr object, Plan plan, Json patch) {
  k8s::PatchOptions options;
  options.subresource = "status";
  Result<k8s::Object> written = co_await client_.patch(compute_domains(), object->key(),
                                                       std::move(patch), std::move(options));
  if (!written && written.error().code == k8s::Errc::not_found) co_return ok();
  if (!written) co_return std::move(written).failure();
  tell(*object, plan);
  caches_.domains().note_written(*std::move(written));
  co_return ok();
}

void Reconciler::tell(const k8s::Object& domain, const Plan& plan) {
  for (const Finding& finding : news(domain, plan)) {
    // "Ready" says the same.
    if (finding.type == "TemplateReady" || finding.type == "DaemonsReady") continue;
    if (finding.reason == waiting) continue;  // tell_of_waiting()
    events_.record(finding.warning ? k8s::EventType::warning : k8s::EventType::normal,
                   k8s::reference_of(domain), finding.reason, finding.message);
  }
}

// A domain that is deleted while nodes use it goes all the same; whoever looks is told (W-C20).
void Reconciler::tell_of_use(const std::string& uid, const Action& action) {
  const auto* unlabel = std::get_if<Unlabel>(&action);
  k8s::ObjectPtr domain = caches_.domain(uid);
  if (!unlabel || !domain || !domain->deleting()) return;
  std::vector<std::string_view> names;
  for (const k8s::ObjectPtr& node : unlabel->nodes)
    if (names.size() < 5) names.push_back(node->name());
  events_.record(k8s::EventType::warning, k8s::reference_of(*domain), "DeletedInUse",
                 fmt::format("deleted while in use on {} node(s) ({}{}): pods that still run there "
                             "lose their IMEX domain",
                             unlabel->nodes.size(), fmt::join(names, ", "),
                             names.size() < unlabel->nodes.size() ? ", …" : ""));
}

}  // namespace nvdra::roles::controller
