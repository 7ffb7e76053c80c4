// Precompiled: what almost every source file includes, and what is expensive to parse. Files
// include what they use all the same; nothing may rely on this one.
#include "base/json.hpp"
#include "base/task_group.hpp"
#include "base/within.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>
