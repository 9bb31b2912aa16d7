#pragma once
// The innermost loops of our matrix products, compiled for each instruction set.
#include <array>
#include <cstdint>

namespace russet::cpu {

/// A loop around the inner one: how often, and how far a and b move each time.
struct TileLoop {
  std::int64_t count = 1, a = 0, b = 0;
};

/// c[i, j] (+)= sum over k of a[i * a_row + k * a_inner] * b[k * b_inner + j] for i < rows, j < columns; where b has
/// RegisterTile::columns readable elements in each row. The sum may be nested in two more loops, as over a window's
/// taps, and start from a number for each row.
template <class T>
struct TileArguments {
  std::int64_t inner;
  const T* a;
  std::int64_t a_row, a_inner;
  const T* b;
  std::int64_t b_inner;
  T* c;
  std::int64_t c_row;
  int rows, columns;
  bool accumulate;
  std::array<TileLoop, 2> outer{};
  const T* start = nullptr;
};

template <class T>
struct RegisterTile {
  int rows = 4;     // at most
  int columns = 8;  // at most
  void (*run)(const TileArguments<T>&) = nullptr;
};

/// The tile for T (float, double, std::int64_t) on this machine.
template <class T>
RegisterTile<T> best_tile();
template <>
RegisterTile<float> best_tile<float>();
template <>
RegisterTile<double> best_tile<double>();
template <>
RegisterTile<std::int64_t> best_tile<std::int64_t>();

}  // namespace russet::cpu
