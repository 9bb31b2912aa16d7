// What is added to the text of checked kernels.
#include "device/gpu/simulator/kernel_text.h"

#include <gtest/gtest.h>

namespace russet::simulator {
namespace {

/// "RUSSET_BARE Pair russet_own_pair; RUSSET_OWN(pair);" as "Pair @pair;[pair]", "RUSSET_STEP " as "$".
std::string shortened(std::string text) {
  const auto replace = [&](std::string_view what, std::string_view by) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos;) text.replace(at, what.size(), by);
  };
  replace("russet_own_", "@");
  replace("RUSSET_BARE ", "");
  replace("RUSSET_STEP ", "$");
  for (std::size_t at = 0; (at = text.find(" RUSSET_OWN(", at)) != std::string::npos;) {
    text.replace(text.find(");", at), 2, "]");
    text.replace(at, 12, "[");
  }
  return text;
}

std::string watched(std::string_view text) { return shortened(watched_text(text)); }

std::string in_a_function(std::string_view body) { return "void f() {\n" + std::string(body) + "\n}\n"; }

TEST(Declarations, OfLocalArraysAndStructsWithoutAValueAreWatched) {
  const auto becomes = [](std::string_view body, std::string_view expected) {
    EXPECT_EQ(watched(in_a_function(body)), in_a_function(expected));
  };
  becomes("Pair pair;", "Pair @pair;[pair]");
  becomes("uint a, b[4], c;", "uint a, @b[4], c;[b]");
  becomes("typename Left::Line lines[LeftLoader::count + 1];",
          "typename Left::Line @lines[LeftLoader::count + 1];[lines]");
  becomes("AttentionMatrix<T> query;", "AttentionMatrix<T> @query;[query]");
  becomes("Rows<Blocks::width / 8>::Sum sums[2][3];", "Rows<Blocks::width / 8>::Sum @sums[2][3];[sums]");
  becomes("for (uint i = 0; i < 3; ++i) { float own[4]; }", "for (uint i = 0; $i < 3; ++i) { float @own[4];[own] }");
  becomes("if constexpr (A && B) { Step step; } else { Step other; }",
          "if constexpr (A && B) { Step @step;[step] } else { Step @other;[other] }");
  becomes("const float4 y = float4{1, 2, 3, 4}; Step step;", "const float4 y = float4{1, 2, 3, 4}; Step @step;[step]");
}

TEST(Declarations, NothingElseIsWatched) {
  for (const char* const body :
       {"float x;", "uint3 a, b;", "return x;", "x = y;", "float x = 1;", "float own[2] = {1, 2};", "f(a, b);",
        "break;", "typedef Rows<4> Own;", "device const float* p;", "const float& r = x;", "a < b;", "x;",
        "own[i] += 1;", "// float x;", "/* float x; */", "enum : uint { one = 1, two };",
        "GROUP_MEMORY(float, part, 64);", "threadgroup float* const part = memory;"}) {
    EXPECT_EQ(watched(in_a_function(body)), in_a_function(body));
  }
  for (const char* const text :
       {"struct Pair { float first, second; uint sizes[4]; };", "constant uint table[] = {1, 2};", "float f(float x);",
        "#define F(x) { \\\n  float x; }\n", "template <class T, uint N> struct Two { T values[N]; };"}) {
    EXPECT_EQ(watched(text), text);
  }
}

TEST(Loops, AreCounted) {
  const auto becomes = [](std::string_view body, std::string_view expected) {
    EXPECT_EQ(watched(in_a_function(body)), in_a_function(expected));
  };
  becomes("for (uint i = f(1); i < 3; ++i) x += i;", "for (uint i = f(1); $i < 3; ++i) x += i;");
  becomes("for (;;) { break; }", "for (;$true;) { break; }");
  becomes("for (; (a); f(b)) for (i = 0; i < (j); ++i) {}", "for (; $(a); f(b)) for (i = 0; $i < (j); ++i) {}");
  becomes("while (a && b) {}", "while ($a && b) {}");
  becomes("do {} while (a);", "do {} while ($a);");
  becomes("UNROLL for (uint i = 0; i < 3; ++i) {}", "UNROLL for (uint i = 0; $i < 3; ++i) {}");
  becomes("format(a); whiled(b); // for (;;)", "format(a); whiled(b); // for (;;)");
}

TEST(Declarations, OfMemberFunctionsAreWatched) {
  EXPECT_EQ(
      watched("template <class T>\nstruct S {\n  T a;\n  T sum() const {\n    T own[2];\n    return own[0];\n  "
              "}\n  T b;\n};"),
      "template <class T>\nstruct S {\n  T a;\n  T sum() const {\n    T @own[2];[own]\n    return own[0];\n  }\n  "
      "T b;\n};");
}

}  // namespace
}  // namespace russet::simulator
