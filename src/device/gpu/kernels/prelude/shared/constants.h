#pragma once
// RUSSET_GIVEN(RUSSET_CONSTANT_3): VALUE where a line "#define RUSSET_CONSTANT_3 ~, VALUE" stands before the text; else
// {}. RUSSET_GIVEN_OR(..., OTHER, ): else OTHER.
#define RUSSET_GIVEN(given) RUSSET_GIVEN_OR(given, {}, )
#define RUSSET_GIVEN_OR(...) RUSSET_SECOND(__VA_ARGS__)
#define RUSSET_SECOND(first, second, ...) second
