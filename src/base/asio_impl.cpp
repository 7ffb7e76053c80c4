// Asio, compiled once (BOOST_ASIO_SEPARATE_COMPILATION).
#pragma clang diagnostic ignored "-Weverything"
#include <boost/asio/impl/src.hpp>
