#pragma once
// RUSSET_EACH(macro, a, b, c): macro(a) macro(b) macro(c). RUSSET_LIST has commas between them. Each scan of the text
// takes one argument more; there are 156 scans, 5 to the power of 3 and those on the way there.
#define RUSSET_PARENTHESES ()
#define RUSSET_EXPAND(...) \
  RUSSET_EXPAND_3(RUSSET_EXPAND_3(RUSSET_EXPAND_3(RUSSET_EXPAND_3(RUSSET_EXPAND_3(__VA_ARGS__)))))
#define RUSSET_EXPAND_3(...) \
  RUSSET_EXPAND_2(RUSSET_EXPAND_2(RUSSET_EXPAND_2(RUSSET_EXPAND_2(RUSSET_EXPAND_2(__VA_ARGS__)))))
#define RUSSET_EXPAND_2(...) \
  RUSSET_EXPAND_1(RUSSET_EXPAND_1(RUSSET_EXPAND_1(RUSSET_EXPAND_1(RUSSET_EXPAND_1(__VA_ARGS__)))))
#define RUSSET_EXPAND_1(...) __VA_ARGS__
#define RUSSET_EACH(macro, ...) RUSSET_EXPAND(RUSSET_EACH_STEP(macro, __VA_ARGS__))
#define RUSSET_EACH_STEP(macro, argument, ...) \
  macro(argument) __VA_OPT__(RUSSET_EACH_AGAIN RUSSET_PARENTHESES(macro, __VA_ARGS__))
#define RUSSET_EACH_AGAIN() RUSSET_EACH_STEP
#define RUSSET_LIST(macro, first, ...) macro(first) __VA_OPT__(RUSSET_EXPAND(RUSSET_LIST_STEP(macro, __VA_ARGS__)))
#define RUSSET_LIST_STEP(macro, argument, ...) \
  , macro(argument) __VA_OPT__(RUSSET_LIST_AGAIN RUSSET_PARENTHESES(macro, __VA_ARGS__))
#define RUSSET_LIST_AGAIN() RUSSET_LIST_STEP
