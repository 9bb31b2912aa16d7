#include "kernel_text.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <vector>

namespace russet::simulator {
namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

struct Token {
  std::string_view text;
  std::size_t end = 0;  // in the whole text
  bool is(std::string_view other) const { return text == other; }
  bool is_name() const { return in_word(text[0]) && std::isdigit(static_cast<unsigned char>(text[0])) == 0; }
};

/// Words, "::", and single characters, without comments, strings and lines of the preprocessor.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}

  /// False at the end.
  bool next(Token& token) {
    skip();
    if (at_ == text_.size()) return false;
    std::size_t end = at_ + 1;
    if (in_word(text_[at_])) {
      while (end < text_.size() && in_word(text_[end])) ++end;
    } else if (text_.substr(at_).starts_with("::")) {
      ++end;
    }
    token = {text_.substr(at_, end - at_), end};
    at_ = end;
    return true;
  }

 private:
  void skip() {
    while (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      if (std::isspace(static_cast<unsigned char>(rest[0])) != 0) {
        ++at_;
      } else if (rest.starts_with("//") || rest[0] == '#') {
        skip_line(rest[0] == '#');
      } else if (rest.starts_with("/*")) {
        at_ = std::min(text_.find("*/", at_ + 2), text_.size() - 2) + 2;
      } else if (rest[0] == '"' || rest[0] == '\'') {
        const char quote = rest[0];
        while (++at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 1 : 0;
        at_ = std::min(at_ + 1, text_.size());
      } else {
        return;
      }
    }
  }
  void skip_line(bool continued) {
    do {
      at_ = std::min(text_.find('\n', at_ + 1), text_.size());
    } while (continued && at_ < text_.size() && text_[at_ - 1] == '\\');
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

using Statement = std::span<const Token>;

bool any_is(Statement tokens, std::string_view text) {
  return std::ranges::any_of(tokens, [&](const Token& token) { return token.is(text); });
}

/// Behind the brackets that open at `i`.
std::size_t behind(Statement tokens, std::size_t i, std::string_view open, std::string_view close) {
  int depth = 0;
  for (; i < tokens.size(); ++i) {
    depth += tokens[i].is(open) ? 1 : tokens[i].is(close) ? -1 : 0;
    if (depth == 0) return i + 1;
  }
  return i;
}

/// Behind the type that begins at `i`: names with "::" between, and template arguments.
std::size_t behind_type(Statement tokens, std::size_t i) {
  for (;; ++i) {
    if (i == tokens.size() || !tokens[i].is_name()) return i;
    ++i;
    if (i < tokens.size() && tokens[i].is("<")) i = behind(tokens, i, "<", ">");
    if (i == tokens.size() || !tokens[i].is("::")) return i;
  }
}

/// Whether a type is a number or a vector of them. The compiler itself refuses their use without a value.
bool is_number(Statement type) {
  constexpr std::array<std::string_view, 12> numbers{"bool", "char", "uchar", "short", "ushort", "int",
                                                     "uint", "long", "ulong", "half",  "bfloat", "float"};
  if (type.size() != 1) return false;
  std::string_view name = type[0].text;
  if (name.ends_with("2") || name.ends_with("3") || name.ends_with("4")) name.remove_suffix(1);
  return std::ranges::find(numbers, name) != numbers.end();
}

/// The names of arrays and structs that a statement declares without a value; empty if it is anything else.
std::vector<Token> declared(Statement tokens) {
  constexpr std::array<std::string_view, 10> others{"return", "break", "continue", "goto",   "typedef",
                                                    "using",  "else",  "case",     "delete", "default"};
  if (tokens.empty() || std::ranges::find(others, tokens[0].text) != others.end()) return {};
  const std::size_t begin = tokens[0].is("typename") || tokens[0].is("thread") ? 1 : 0;
  std::size_t i = behind_type(tokens, begin);
  const bool numbers = is_number(tokens.subspan(begin, i - begin));
  std::vector<Token> names;
  for (;; ++i) {
    if (i == begin || i >= tokens.size() || !tokens[i].is_name()) return {};
    const Token name = tokens[i++];
    const bool is_array = i < tokens.size() && tokens[i].is("[");
    while (i < tokens.size() && tokens[i].is("[")) i = behind(tokens, i, "[", "]");
    if (is_array || !numbers) names.push_back(name);
    if (i == tokens.size()) return names;
    if (!tokens[i].is(",")) return {};
  }
}

/// Whether a statement declares a variable, no pointer or reference, in threadgroup memory.
bool is_in_group_memory(Statement tokens) {
  if (tokens.empty() || tokens[0].is("using") || tokens[0].is("typedef")) return false;
  bool qualified = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].is("*") || tokens[i].is("&") || tokens[i].is("(")) return false;
    if (tokens[i].is("=")) break;
    const bool is_argument = i > 0 && (tokens[i - 1].is("<") || tokens[i - 1].is(","));  // of a template
    qualified |= tokens[i].is("threadgroup") && !is_argument;
  }
  return qualified;
}

/// What stands between braces.
enum class Scope { outer, type, code, values };

Scope scope_of(Statement before, Scope around) {
  if (around == Scope::values) return Scope::values;
  std::size_t begin = 0;
  if (!before.empty() && before[0].is("template")) begin = behind(before, 1, "<", ">");
  const Statement own = before.subspan(begin);
  if (own.empty()) return Scope::code;
  if (own[0].is("namespace") || own[0].is("extern")) return Scope::outer;
  if (any_is(own, "enum")) return Scope::values;
  if (own[0].is("struct") || own[0].is("union") || own[0].is("class")) return Scope::type;
  const Token& last = own.back();
  const bool code = last.is(")") || last.is("const") || last.is("else") || last.is("do") || last.is(":");
  return code ? Scope::code : Scope::values;
}

/// Goes through a text, and calls see(statement) at the end of each one that is not between braces of values; `local`:
/// whether it is in a function.
template <class See>
class Reader {
 public:
  Reader(std::string_view text, const See& see) : text_(text), see_(see) {}

  void run() {
    Tokens tokens(text_);
    for (Token token; tokens.next(token);) read(token);
  }

 private:
  void read(const Token& token) {
    if (token.is("{") && parentheses_ == 0) return open();
    if (token.is("}") && parentheses_ == 0) return close(token);
    if (token.is("(")) ++parentheses_;
    if (token.is(")")) --parentheses_;
    if (!token.is(";") || parentheses_ > 0) return statement_.push_back(token);
    if (scopes_.back() != Scope::values) see_(Statement(statement_), scopes_.back() == Scope::code, token.end);
    statement_.clear();
  }

  void open() {
    const Scope scope = scope_of(statement_, scopes_.back());
    scopes_.push_back(scope);
    if (scope != Scope::values) statement_.clear();
  }

  void close(const Token& brace) {
    const Scope scope = scopes_.back();
    if (scopes_.size() > 1) scopes_.pop_back();
    if (scope != Scope::values) return statement_.clear();
    statement_.push_back(brace);
  }

  std::string_view text_;
  const See& see_;
  std::vector<Token> statement_;  // so far
  std::vector<Scope> scopes_{Scope::outer};
  int parentheses_ = 0;
};

std::string watch_declarations(std::string_view text) {
  std::string watched;
  std::size_t copied = 0;
  const auto copy_to = [&](std::size_t end) {
    watched += text.substr(copied, end - copied);
    copied = end;
  };
  const auto watch = [&](Statement statement, bool local, std::size_t end) {
    if (!local) return;
    const std::vector<Token> names = declared(statement);
    if (names.empty()) return;
    copy_to(statement[0].end - statement[0].text.size());
    watched += "RUSSET_BARE ";
    for (const Token& name : names) {
      copy_to(name.end - name.text.size());
      watched += "russet_own_";
    }
    copy_to(end);
    for (const Token& name : names) watched += fmt::format(" RUSSET_OWN({});", name.text);
  };
  Reader(text, watch).run();
  copy_to(text.size());
  return watched;
}

/// Puts RUSSET_STEP before the condition of each loop.
std::string count_steps(std::string_view text) {
  std::string counted;
  std::size_t copied = 0;
  const auto insert = [&](std::size_t at, std::string_view what) {
    counted += text.substr(copied, at - copied);
    counted += what;
    copied = at;
  };
  int depth = 0;
  int loop = 0;  // the depth between the parentheses of a for whose condition is to come
  bool at_condition = false;
  Token before{" ", 0};
  Tokens tokens(text);
  for (Token token; tokens.next(token); before = token) {
    if (at_condition) insert(token.end - token.text.size(), token.is(";") ? "RUSSET_STEP true" : "RUSSET_STEP ");
    at_condition = false;
    if (token.is("(")) {
      ++depth;
      if (before.is("for")) loop = depth;
      at_condition = before.is("while");
    } else if (token.is(")")) {
      --depth;
    } else if (token.is(";") && depth == loop && depth > 0) {
      at_condition = true;
      loop = 0;
    }
  }
  insert(text.size(), "");
  return counted;
}

}  // namespace

void check_group_memory(std::string_view text) {
  const auto check = [&](Statement statement, bool, std::size_t end) {
    if (!is_in_group_memory(statement)) return;
    throw DeviceError(
        fmt::format("a kernel does not compile for the simulated GPU:\nkernel:{}: error: a variable in threadgroup "
                    "memory, which GROUP_MEMORY alone may declare",
                    1 + std::ranges::count(text.substr(0, end), '\n')));
  };
  Reader(text, check).run();
}

std::string watched_text(std::string_view text) { return watch_declarations(count_steps(text)); }

}  // namespace russet::simulator
