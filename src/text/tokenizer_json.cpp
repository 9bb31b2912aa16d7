// Reads tokenizer.json, which Hugging Face's tokenizers write: a description of each part of a tokenizer.
#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <limits>

#include "text/read_models.h"

namespace russet::text {
namespace {

using Parts = Tokenizer::Parts;

constexpr std::int64_t max_id = std::numeric_limits<TokenId>::max() - 1;

TokenId id_at(const JsonNode& node) { return static_cast<TokenId>(node.whole(max_id)); }

std::string type_of(const JsonNode& node) { return node.is_null() ? "null" : node.at("type").text(); }

BertNormalizerOptions read_normalizer(const JsonNode& node) {
  if (node.is_null()) return {false, false, false, false};
  if (type_of(node) != "BertNormalizer") {
    node.fail(fmt::format("russet has BertNormalizer before WordPiece and nothing before BPE, not {}", type_of(node)));
  }
  BertNormalizerOptions options;
  options.clean_text = node.at("clean_text").flag();
  options.handle_chinese_chars = node.at("handle_chinese_chars").flag();
  options.lowercase = node.at("lowercase").flag();
  options.strip_accents = node.get("strip_accents").flag_or(options.lowercase);
  return options;
}

void require_pre_tokenizer(const JsonNode& node, std::string_view wanted, std::string_view model) {
  if (type_of(node) != wanted) {
    node.fail(fmt::format("russet has {} before {}, not {}", wanted, model, type_of(node)));
  }
}

TokenId unknown_token(const JsonNode& node, const Vocabulary& vocabulary) {
  const TokenId id = vocabulary.find(node.text());
  if (id == no_token) node.fail(fmt::format("\"{}\" is not in the vocabulary", node.text()));
  return id;
}

void read_word_piece(const JsonNode& file, const JsonNode& model, Parts& parts) {
  require_pre_tokenizer(file.get("pre_tokenizer"), "BertPreTokenizer", "WordPiece");
  WordPieceOptions options;
  options.unknown = unknown_token(model.at("unk_token"), parts.vocabulary);
  options.continuing_subword_prefix = model.at("continuing_subword_prefix").text();
  options.max_input_chars_per_word =
      model.at("max_input_chars_per_word").whole(std::numeric_limits<std::int32_t>::max());
  parts.encoder = make_bert_encoder(read_normalizer(file.get("normalizer")), WordPiece(parts.vocabulary, options));
}

Merges read_merges(const JsonNode& node, const Vocabulary& vocabulary) {
  MergeReader reader(vocabulary);
  for (std::size_t i = 0; i < node.size(); ++i) {
    const JsonNode merge = node.at(i);
    if (merge.is_text() && merge.text().starts_with("#version")) continue;
    const std::string wrong =
        merge.is_text() ? reader.add(merge.text()) : reader.add(merge.at(0).text(), merge.at(1).text());
    if (!wrong.empty()) merge.fail(wrong);
  }
  return reader.take();
}

/// What BPE can be told to do beyond the byte-level one.
void refuse_other_bpe(const JsonNode& model) {
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const JsonNode node = model.get(key);
    if (!node.is_null() && !node.text().empty()) node.fail("russet has byte-level BPE, which has none");
  }
  if (model.get("byte_fallback").flag_or(false)) model.get("byte_fallback").fail("russet has byte-level BPE alone");
  // Dropout is for training; a probability of 0 is none.
  if (!model.get("dropout").is_null() && !model.get("dropout").is_zero()) {
    model.get("dropout").fail("russet does not drop merges");
  }
}

void read_bpe(const JsonNode& file, const JsonNode& model, Parts& parts) {
  const JsonNode pre_tokenizer = file.get("pre_tokenizer");
  require_pre_tokenizer(pre_tokenizer, "ByteLevel", "BPE");
  const JsonNode normalizer = file.get("normalizer");
  if (!normalizer.is_null()) normalizer.fail(fmt::format("russet has none before BPE, not {}", type_of(normalizer)));
  refuse_other_bpe(model);
  BpeOptions options;
  if (!model.get("unk_token").is_null()) options.unknown = unknown_token(model.get("unk_token"), parts.vocabulary);
  options.fuse_unknown = model.get("fuse_unk").flag_or(false);
  options.ignore_merges = model.get("ignore_merges").flag_or(false);
  const ByteLevelOptions byte_level{.add_prefix_space = pre_tokenizer.at("add_prefix_space").flag(),
                                    .use_regex = pre_tokenizer.get("use_regex").flag_or(true)};
  Bpe bpe(parts.vocabulary, read_merges(model.at("merges"), parts.vocabulary), options);
  parts.encoder = make_byte_level_encoder(byte_level, std::move(bpe));
}

void read_model(const JsonNode& file, Parts& parts) {
  const JsonNode model = file.at("model");
  // Files of the first versions do not say it.
  const std::string type = model.has("type") ? model.at("type").text() : model.has("merges") ? "BPE" : "WordPiece";
  if (type != "WordPiece" && type != "BPE") model.fail(fmt::format("russet has WordPiece and BPE, not {}", type));
  read_vocabulary(model.at("vocab"), parts.vocabulary);
  if (type == "BPE") {
    read_bpe(file, model, parts);
  } else {
    read_word_piece(file, model, parts);
  }
}

void read_added_tokens(const JsonNode& list, Parts& parts) {
  if (list.is_null()) return;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonNode node = list.at(i);
    AddedToken token;
    token.content = node.at("content").text();
    token.single_word = node.at("single_word").flag();
    token.lstrip = node.at("lstrip").flag();
    token.rstrip = node.at("rstrip").flag();
    token.normalized = node.at("normalized").flag();
    token.special = node.at("special").flag();
    const TokenId stated = id_at(node.at("id"));
    if (token.content.empty()) continue;
    const TokenId id = parts.add(token);
    if (id == no_token) node.fail(fmt::format("another added token looks for \"{}\", too", token.content));
    // Hugging Face's warn, and take the first.
    if (id != stated)
      node.fail(fmt::format("\"{}\" has the id {} by its place, and {} by its entry", token.content, id, stated));
  }
}

TemplatePiece read_piece(const JsonNode& node, const JsonNode& special_tokens) {
  using Kind = TemplatePiece::Kind;
  const bool special = node.has("SpecialToken");
  const JsonNode content = node.at(special ? "SpecialToken" : "Sequence");
  const std::string& name = content.at("id").text();
  TemplatePiece piece{special       ? Kind::special
                      : name == "A" ? Kind::first
                                    : Kind::second,
                      content.at("type_id").whole(max_id)};
  if (!special && name != "A" && name != "B")
    content.fail(fmt::format("there are the sequences A and B, not {}", name));
  if (special) {
    const JsonNode ids = special_tokens.at(name).at("ids");
    for (std::size_t i = 0; i < ids.size(); ++i) piece.ids.push_back(id_at(ids.at(i)));
  }
  return piece;
}

Template read_template(const JsonNode& list, const JsonNode& special_tokens) {
  Template pieces;
  for (std::size_t i = 0; i < list.size(); ++i) pieces.push_back(read_piece(list.at(i), special_tokens));
  return pieces;
}

PostProcessor read_post_processor(const JsonNode& node);

/// Of several, the one that adds tokens: ByteLevel changes offsets alone.
PostProcessor read_post_processors(const JsonNode& list) {
  PostProcessor processor;
  int count = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (type_of(list.at(i)) == "ByteLevel") continue;
    if (++count > 1) list.fail("russet has one of them beside ByteLevel");
    processor = read_post_processor(list.at(i));
  }
  return processor;
}

PostProcessor read_post_processor(const JsonNode& node) {
  const std::string type = type_of(node);
  if (type == "null" || type == "ByteLevel") return {};
  if (type == "Sequence") return read_post_processors(node.at("processors"));
  if (type == "BertProcessing") return bert_processing(id_at(node.at("cls").at(1)), id_at(node.at("sep").at(1)));
  if (type == "RobertaProcessing") return roberta_processing(id_at(node.at("cls").at(1)), id_at(node.at("sep").at(1)));
  if (type == "TemplateProcessing") {
    const JsonNode special_tokens = node.at("special_tokens");
    return {read_template(node.at("single"), special_tokens), read_template(node.at("pair"), special_tokens)};
  }
  node.fail(
      fmt::format("russet has TemplateProcessing, BertProcessing, RobertaProcessing and ByteLevel, not {}", type));
}

Decoder read_decoder(const JsonNode& node) {
  const std::string type = type_of(node);
  if (type == "null") return {};
  if (type == "ByteLevel") return {Decoder::Kind::byte_level};
  if (type == "WordPiece") return {Decoder::Kind::word_piece, node.at("prefix").text(), node.at("cleanup").flag()};
  node.fail(fmt::format("russet has WordPiece and ByteLevel, not {}", type));
}

}  // namespace

Tokenizer Tokenizer::from_json(std::span<const std::byte> file, std::string_view name) {
  const nlohmann::json json = parse_json(file, name);
  const JsonNode root(json, name);
  if (root.has("version") && root.at("version").text() != "1.0") root.at("version").fail("russet reads version 1.0");
  auto parts = std::make_shared<Parts>();
  read_model(root, *parts);
  read_added_tokens(root.get("added_tokens"), *parts);
  parts->post_processor = read_post_processor(root.get("post_processor"));
  parts->decoder = read_decoder(root.get("decoder"));
  return Tokenizer(std::move(parts));
}

}  // namespace russet::text
