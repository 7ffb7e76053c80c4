#include "k8s/watch.hpp"

#include "base/log.hpp"
#include "k8s/watch_event.hpp"

namespace nvdra::k8s {
namespace {

constexpr std::size_t longest_event = 64u << 20;

class RealWatch final : public Watch {
public:
  RealWatch(std::unique_ptr<BodyStream> stream, ResourceType type, std::string asked, Duration idle)
      : stream_(std::move(stream)), type_(std::move(type)), asked_(std::move(asked)), idle_(idle) {}

  Async<Result<std::optional<WatchEvent>>> next() override {
    for (;;) {
      std::optional<std::string> line = lines_.next();
      if (!line && ended_) co_return std::optional<WatchEvent>();
      if (!line) {
        Result<void> more = co_await read_more();
        if (!more) co_return std::move(more).failure().during(asked_);
        continue;
      }
      Result<std::optional<WatchEvent>> event = parse_watch_event(*line, type_);
      if (!event) co_return std::move(event).failure().during(asked_);
      if (!event->has_value()) {
        LOG_INFO(2, "Ignored a watch event of an unknown type",
                 {{"watch", asked_}, {"event", beginning_of(*line)}});
        continue;
      }
      if ((*event)->kind == WatchEvent::Kind::error)
        co_return failure_of_event(**event).during(asked_);
      co_return std::move(event);
    }
  }

private:
  Async<Result<void>> read_more() {
    if (lines_.waiting() > longest_event) {
      ended_ = true;
      lines_.rest();
      co_return fail(Errc::malformed_answer, "an event of more than 64 MiB");
    }
    Result<std::string> bytes = co_await stream_->read_some(idle_);
    if (!bytes) co_return std::move(bytes).failure();
    if (!bytes->empty()) {
      lines_.feed(*bytes);
      co_return ok();
    }
    ended_ = true;
    std::string rest = lines_.rest();
    if (!rest.empty()) co_return fail(Errc::disconnected, "the last event was cut off");
    co_return ok();
  }

  std::unique_ptr<BodyStream> stream_;
  ResourceType type_;
  std::string asked_;
  Duration idle_;
  LineSplitter lines_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Watch> make_watch(std::unique_ptr<BodyStream> stream, ResourceType type,
                                  std::string asked, Duration idle) {
  return std::make_unique<RealWatch>(std::move(stream), std::move(type), std::move(asked), idle);
}

}  // namespace nvdra::k8s
