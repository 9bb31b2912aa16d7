#pragma once
// Tokenizer: text to the ids of a model's vocabulary and back, as Hugging Face's tokenizers have it.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace russet::text {

/// What a model takes: ids, which sequence of a pair each is of, and 1 for each that is no padding.
struct Encoding {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> type_ids;
  std::vector<std::int64_t> attention_mask;
};

/// Which sequence of a pair is cut where both are too long together.
enum class TruncationStrategy : std::uint8_t { longest_first, only_first, only_second };
enum class TruncationSide : std::uint8_t { right, left };

struct EncodeOptions {
  bool add_special_tokens = true;
  std::optional<std::int64_t> max_length{};  // with the special tokens
  TruncationStrategy truncation = TruncationStrategy::longest_first;
  TruncationSide truncation_side = TruncationSide::right;
};

/// What vocab.txt does not say.
struct BertOptions {
  bool lowercase = true;
  std::optional<bool> strip_accents{};  // as lowercase, if not said
  bool handle_chinese_chars = true;
  bool operator==(const BertOptions&) const = default;
};

/// Reads WordPiece (BERT) and byte-level BPE (GPT-2, RoBERTa). A handle: copies share everything. Threads may use one
/// at the same time. Text that is no valid UTF-8 is read as Python's decode(errors="replace") reads it.
class Tokenizer {
 public:
  /// From tokenizer.json; from vocab.txt (WordPiece, a token a line); or from vocab.json (byte-level BPE) with
  /// merges.txt beside it. Truncation and padding that tokenizer.json asks for are left to EncodeOptions.
  /// Throws FileError for a damaged file, and for one that asks for a part that russet does not have; ValueError where
  /// options are given for a file other than vocab.txt.
  static Tokenizer from_file(const std::filesystem::path& path, const BertOptions& options = {});
  /// The same from files in memory; `name` is for messages.
  static Tokenizer from_json(std::span<const std::byte> file, std::string_view name);
  static Tokenizer from_vocab_txt(std::span<const std::byte> file, std::string_view name,
                                  const BertOptions& options = {});
  static Tokenizer from_vocab_and_merges(std::span<const std::byte> vocab, std::string_view vocab_name,
                                         std::span<const std::byte> merges, std::string_view merges_name);

  /// Throws ValueError where max_length leaves no room for the special tokens, or the strategy cannot cut enough.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode(std::string_view text, std::string_view pair, const EncodeOptions& options = {}) const;

  /// The text of the ids; ids that stand for no token are left out.
  std::string decode(std::span<const std::int64_t> ids, bool skip_special_tokens = true) const;

  std::optional<std::int64_t> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(std::int64_t id) const;
  /// The id of [PAD] or <pad>, if there is one.
  std::optional<std::int64_t> pad_id() const;
  /// One more than the largest id: the rows that an embedding needs.
  std::int64_t vocab_size() const;

  struct Parts;
  explicit Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

 private:
  std::shared_ptr<const Parts> parts_;
};

}  // namespace russet::text
