#include <fmt/format.h>
#include <russet/error.h>

#include <limits>

#include "text/tokenizer_parts.h"
#include "text/utf8.h"

namespace russet::text {
namespace {

void encode_section(const Tokenizer::Parts& parts, std::string_view section, WordCache& cache, Ids& ids) {
  if (parts.normalized_matcher.empty()) return parts.encoder->encode(section, false, cache, ids);
  const std::string normalized = parts.encoder->normalize(section);
  for (const TextPart& part : parts.normalized_matcher.split(normalized)) {
    if (part.added != no_token) {
      ids.push_back(part.added);
    } else {
      parts.encoder->encode(part.text, true, cache, ids);
    }
  }
}

Ids ids_of(const Tokenizer::Parts& parts, std::string_view text) {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw ValueError(fmt::format("encode: a text of {} bytes; 2^31 - 1 at most", text.size()));
  }
  Ids ids;
  ids.reserve(text.size() / 4 + 8);
  std::string buffer;
  const WordCachePool::Lease cache(parts.caches);
  for (const TextPart& part : parts.matcher.split(with_replacements(text, buffer))) {
    if (part.added != no_token) {
      ids.push_back(part.added);
    } else {
      encode_section(parts, part.text, *cache, ids);
    }
  }
  return ids;
}

}  // namespace

TokenId Tokenizer::Parts::add(AddedToken token) {
  const TokenId known = vocabulary.find(token.content);
  // As Hugging Face's: behind the vocabulary's size, which is its largest id where no id is left out.
  token.id = known != no_token ? known : static_cast<TokenId>(vocabulary.size() + added_only);
  const std::string normalized = token.normalized ? encoder->normalize(token.content) : token.content;
  if (normalized.empty() || !(token.normalized ? normalized_matcher : matcher).add(token, normalized)) return no_token;
  if (known == no_token) ++added_only;
  if (token.special) special.insert(token.content);
  added_texts.insert_or_assign(token.id, normalized);
  added_ids.emplace(token.content, token.id);
  return token.id;
}

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return post_process(parts_->post_processor, ids_of(*parts_, text), nullptr, options);
}

Encoding Tokenizer::encode(std::string_view text, std::string_view pair, const EncodeOptions& options) const {
  Ids second = ids_of(*parts_, pair);
  return post_process(parts_->post_processor, ids_of(*parts_, text), &second, options);
}

std::string Tokenizer::decode(std::span<const std::int64_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  for (const std::int64_t id : ids) {
    std::optional<std::string> token = id_to_token(id);
    if (token && !(skip_special_tokens && parts_->special.contains(*token))) tokens.push_back(*std::move(token));
  }
  return text::decode(parts_->decoder, tokens);
}

std::optional<std::int64_t> Tokenizer::token_to_id(std::string_view token) const {
  const auto added = parts_->added_ids.find(std::string(token));
  const TokenId id = added != parts_->added_ids.end() ? added->second : parts_->vocabulary.find(token);
  return id == no_token ? std::nullopt : std::optional<std::int64_t>(id);
}

std::optional<std::string> Tokenizer::id_to_token(std::int64_t id) const {
  if (id < 0 || id > std::numeric_limits<TokenId>::max()) return std::nullopt;
  const auto key = static_cast<TokenId>(id);
  const auto added = parts_->added_texts.find(key);
  if (added != parts_->added_texts.end()) return added->second;
  const std::string* const token = parts_->vocabulary.token(key);
  return token == nullptr ? std::nullopt : std::optional(*token);
}

std::optional<std::int64_t> Tokenizer::pad_id() const {
  const std::optional<std::int64_t> id = token_to_id("[PAD]");
  return id ? id : token_to_id("<pad>");
}

std::int64_t Tokenizer::vocab_size() const {
  std::int64_t largest = parts_->vocabulary.largest_id();
  for (const auto& [id, text] : parts_->added_texts) largest = std::max<std::int64_t>(largest, id);
  return largest + 1;
}

}  // namespace russet::text
