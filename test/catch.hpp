// The one include of the test framework; its path differs between Catch2 2 and 3.
#pragma once

#include <catch2/catch.hpp>
