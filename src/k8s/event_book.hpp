// EventBook: which events are sent, and with which count. Pure: time comes in.
//   * The first of its kind is created, if its object's budget allows.
//   * The same again only raises the count; how often that is sent has a budget too, the count goes
//     on in between.
// A budget is `burst` at once and one more after each `refill`.
#pragma once

#include "base/time.hpp"

#include <map>
#include <string>

namespace nvdra::k8s {

class Budget {
public:
  struct Shape {
    int burst = 25;
    Duration refill = 5min;
  };
  Budget(Shape shape, Instant now) : shape_(shape), left_(shape.burst), since_(now) {}
  bool take(Instant now);

private:
  Shape shape_;
  int left_;
  Instant since_;  // when the last unit was added, or when it was full
};

class EventBook {
public:
  enum class Send { create, raise, nothing };
  struct Entry {
    std::string name;  // of the event object
    std::int64_t count = 0;
    WallClock::time_point first;
  };
  struct Decision {
    Send send;
    Entry entry;
  };
  struct Moment {
    Instant now;
    WallClock::time_point wall;
  };

  explicit EventBook(Budget::Shape shape = {}, std::size_t remembered = 1024)
      : shape_(shape), remembered_(remembered) {}

  // `object` and `event` identify the object and the event (its type, reason and message); `name`
  // is for the event object, should there be a new one.
  Decision decide(const std::string& object, const std::string& event, std::string name, Moment at);

private:
  struct Seen {
    Entry entry;
    Budget budget;
    Instant last;
  };
  struct Spender {
    Budget budget;
    Instant last;
  };
  Budget::Shape shape_;
  std::size_t remembered_;
  std::map<std::string, Seen> seen_;
  std::map<std::string, Spender> objects_;
};

}  // namespace nvdra::k8s
