// Beast and Asio's TLS layer, compiled once (BOOST_BEAST_SEPARATE_COMPILATION,
// BOOST_ASIO_SEPARATE_COMPILATION).
#pragma clang diagnostic ignored "-Weverything"
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
