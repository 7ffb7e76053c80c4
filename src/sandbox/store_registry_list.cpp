// Lists: selection and pages.
#include "base/try.hpp"
#include "sandbox/store_error.hpp"
#include "sandbox/store_registry.hpp"
#include "sandbox/store_token.hpp"

#include <fmt/format.h>

#include <charconv>

namespace nvdra::sandbox {
namespace {

struct Token {
  std::uint64_t version;
  ObjectKey after;
};

// "<version>/<namespace>/<name>", as base64: opaque to clients.
std::string token_text(const Token& token) {
  return base64(fmt::format("{}/{}/{}", token.version, token.after.space, token.after.name));
}

Result<Token> parse_token(std::string_view text) {
  Failure bad = deny(Reason::bad_request, "continue key is not valid");
  std::optional<std::string> plain = from_base64(text);
  if (!plain) return bad;
  std::size_t first = plain->find('/');
  std::size_t second = first == std::string::npos ? first : plain->find('/', first + 1);
  if (second == std::string::npos) return bad;
  Token token{0, {plain->substr(first + 1, second - first - 1), plain->substr(second + 1)}};
  auto [end, failed] = std::from_chars(plain->data(), plain->data() + first, token.version);
  if (failed != std::errc{} || end != plain->data() + first) return bad;
  return token;
}

}  // namespace

std::vector<ItemPtr> Registry::all(const Resource& resource, std::string_view space) const {
  std::vector<ItemPtr> items;
  auto objects = objects_.find(&resource);
  if (objects == objects_.end()) return items;
  for (auto at = objects->second.lower_bound({std::string(space), ""});
       at != objects->second.end() && (space.empty() || at->first.space == space); ++at)
    items.push_back(at->second);
  return items;
}

// All pages of a list carry the version of the first one. Later pages show later states; a watch
// from the version brings what was missed in between.
Result<Page> Registry::list(const Resource& resource, const ListQuery& query) const {
  Page page{{}, version_};
  auto objects = objects_.find(&resource);
  static const Objects none;
  const Objects& stored = objects == objects_.end() ? none : objects->second;
  auto at = stored.lower_bound({query.filter.space, ""});
  if (!query.continue_from.empty()) {
    TRY(Token token, parse_token(query.continue_from));
    if (token.version < feed_.oldest(resource))
      return deny(Reason::expired,
                  "The provided continue parameter is too old to display a consistent list result. "
                  "You can start a new list without the continue parameter.");
    page.version = token.version;
    at = stored.upper_bound(token.after);
  }
  for (; at != stored.end(); ++at) {
    if (!query.filter.space.empty() && at->first.space != query.filter.space) break;
    if (!query.filter.matches(*at->second)) continue;
    if (query.limit == 0 || page.items.size() < query.limit)
      page.items.push_back(at->second);
    else
      ++page.remaining;
  }
  if (page.remaining > 0) page.continue_from = token_text({page.version, page.items.back()->key()});
  return page;
}

}  // namespace nvdra::sandbox
