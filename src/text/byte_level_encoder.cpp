#include "text/byte_level.h"
#include "text/encoder.h"

namespace russet::text {
namespace {

class ByteLevelEncoder final : public Encoder {
 public:
  ByteLevelEncoder(const ByteLevelOptions& options, Bpe model) : options_(options), model_(std::move(model)) {}

  std::string normalize(std::string_view text) const override { return std::string(text); }

  void encode(std::string_view text, bool /*normalized*/, WordCache& cache, std::vector<TokenId>& ids) const override {
    std::string prefixed;
    if (options_.add_prefix_space && !text.empty() && text[0] != ' ') {
      prefixed.append(" ").append(text);
      text = prefixed;
    }
    const auto tokenize = [this](std::string_view piece, std::vector<TokenId>& found) {
      model_.tokenize(piece, found);
    };
    while (!text.empty()) {
      const std::size_t length = options_.use_regex ? splitter_.piece_length(text) : text.size();
      cache.append(text.substr(0, length), ids, tokenize);
      text.remove_prefix(length);
    }
  }

 private:
  ByteLevelOptions options_;
  ByteLevelSplitter splitter_;
  Bpe model_;
};

}  // namespace

std::unique_ptr<Encoder> make_byte_level_encoder(const ByteLevelOptions& options, Bpe model) {
  return std::make_unique<ByteLevelEncoder>(options, std::move(model));
}

}  // namespace russet::text
