#pragma once
// Sending messages: finding the function that answers (class, selector), with the types of sender and answerer
// compared.
#include <array>
#include <bit>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace russet::objects {

/// An interned name: two selectors are equal if their pointers are.
using Selector = const char*;

using Function = void (*)();

namespace detail {

/// How a type is passed, in characters as Objective-C encodes them: integers by size and sign, any pointer as ^, a
/// struct as its size in braces.
template <class T>
constexpr void encode(auto&& put) {
  if constexpr (std::is_void_v<T>) {
    put('v');
  } else if constexpr (std::is_enum_v<T>) {
    encode<std::underlying_type_t<T>>(put);
  } else if constexpr (std::is_same_v<T, bool>) {
    put('B');
  } else if constexpr (std::is_floating_point_v<T>) {
    put(sizeof(T) == 8 ? 'd' : 'f');
  } else if constexpr (std::is_integral_v<T>) {
    put((std::is_signed_v<T> ? " cs i   q" : " CS I   Q")[sizeof(T)]);
  } else if constexpr (std::is_class_v<T>) {
    put('{');
    put(static_cast<char>('0' + sizeof(T) / 100 % 10));
    put(static_cast<char>('0' + sizeof(T) / 10 % 10));
    put(static_cast<char>('0' + sizeof(T) % 10));
    put('}');
  } else {
    put('^');  // pointers, and blocks, which only clang knows
  }
}

template <class R, class... A>
struct Encoding {
  static constexpr auto text = [] {
    std::array<char, 8 * (sizeof...(A) + 1)> letters{};
    std::size_t used = 0;
    const auto put = [&](char letter) { letters[used++] = letter; };
    encode<R>(put);
    (encode<A>(put), ...);
    return letters;
  }();
};

}  // namespace detail

/// The types of a method without self and selector: "^QQ" takes two unsigned longs and returns a pointer.
template <class R, class... A>
constexpr std::string_view signature() {
  return detail::Encoding<std::remove_cv_t<R>, std::remove_cv_t<A>...>::text.data();
}

/// The function that answers, or nullptr if `self` is nil. Throws InternalError, which names the message, where Metal
/// would raise an exception or do something undefined: the class has no such method, this macOS does not have it, the
/// object was deallocated, or the types differ.
Function answer(const void* self, Selector selector, std::string_view types);

template <class R, class... A>
struct Send {
  static R message(const void* self, Selector selector, A... arguments) {
    using Method = R (*)(const void*, Selector, A...);
    const auto method = reinterpret_cast<Method>(answer(self, selector, signature<R, A...>()));
    if (method == nullptr) {  // nil answers everything with zero
      if constexpr (std::is_void_v<R>) {
        return;
      } else {
        return std::bit_cast<R>(std::array<std::byte, sizeof(R)>{});
      }
    }
    return method(self, selector, arguments...);
  }
  static void message_into(R* result, const void* self, Selector selector, A... arguments) {
    *result = message(self, selector, arguments...);
  }
};

}  // namespace russet::objects
