// Precompiled for tests: as src/pch/pch.hpp, and the test framework.
#include "catch.hpp"
#include "pch/pch.hpp"
