// make_seeds FOLDER: writes small good files of every kind to FOLDER/jpeg, png, idx, safetensors, pickle, weights, ...
#include <png.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "files/encoders.h"
#include "files/torch_archive.h"

namespace {

using russet::files::Bytes;
using russet::files::bytes_of;

Bytes idx_file() {
  Bytes file = bytes_of(std::string_view("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03", 16));
  const Bytes elements = bytes_of("abcdefghijkl");
  file.insert(file.end(), elements.begin(), elements.end());
  return file;
}

Bytes safetensors_file() {
  const std::string header = R"({"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                             R"("y":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]}})";
  std::string file(1, static_cast<char>(header.size()));
  file += std::string(7, '\0') + header + std::string(9, '\1');
  return bytes_of(file);
}

constexpr std::string_view vocab_txt = "[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n.\n";

constexpr std::string_view word_piece_json =
    R"({"version":"1.0","added_tokens":[{"id":0,"content":"[UNK]","single_word":true,"lstrip":true,"rstrip":true,)"
    R"("normalized":true,"special":true}],"normalizer":{"type":"BertNormalizer","clean_text":true,)"
    R"("handle_chinese_chars":true,"strip_accents":null,"lowercase":true},"pre_tokenizer":{"type":"BertPreTokenizer"},)"
    R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"a","type_id":0}},)"
    R"({"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"B","type_id":1}}],)"
    R"("special_tokens":{"a":{"id":"a","ids":[1],"tokens":["a"]}}},"decoder":{"type":"WordPiece","prefix":"##",)"
    R"("cleanup":true},"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",)"
    R"("max_input_chars_per_word":100,"vocab":{"[UNK]":0,"a":1,"##b":2}}})";

constexpr std::string_view bpe_json =
    R"({"added_tokens":[],"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":true,)"
    R"("use_regex":true},"post_processor":{"type":"RobertaProcessing","sep":["b",1],"cls":["a",0]},)"
    R"("decoder":{"type":"ByteLevel"},"model":{"type":"BPE","unk_token":"b","fuse_unk":true,"ignore_merges":true,)"
    R"("vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})";

void write(const std::filesystem::path& folder, const char* name, const Bytes& bytes) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("make_seeds FOLDER\n", stderr);
    return 2;
  }
  using namespace russet::files;
  const std::filesystem::path root = arguments[1];
  write(root / "jpeg", "colour", encode_jpeg(test_picture(11, 9, 3), {.quality = 50}));
  write(root / "jpeg", "progressive", encode_jpeg(test_picture(11, 9, 3), {.quality = 50, .progressive = true}));
  write(root / "jpeg", "subsampled", encode_jpeg(test_picture(20, 18, 3), {.quality = 50, .subsampled = true}));
  write(root / "jpeg", "grey", encode_jpeg(test_picture(9, 17, 1), {.quality = 50}));
  write(root / "jpeg", "cmyk", encode_jpeg(test_picture(8, 8, 4), {.quality = 50}));
  const std::vector<std::uint8_t> samples(512, 0x5A);
  const std::vector<std::uint8_t> palette(48, 7);
  write(root / "png", "colour", encode_png(5, 7, {8, PNG_COLOR_TYPE_RGB, false}, samples));
  write(root / "png", "interlaced", encode_png(9, 10, {8, PNG_COLOR_TYPE_RGB, true}, samples));
  write(root / "png", "palette", encode_png(5, 7, {4, PNG_COLOR_TYPE_PALETTE, false}, samples, palette, {1, 2}));
  write(root / "png", "deep", encode_png(3, 4, {16, PNG_COLOR_TYPE_RGB_ALPHA, false}, samples));
  write(root / "png", "bits", encode_png(5, 7, {1, PNG_COLOR_TYPE_GRAY, false}, samples));
  write(root / "idx", "plain", idx_file());
  write(root / "idx", "gzipped", gzip(idx_file()));
  write(root / "safetensors", "two", safetensors_file());
  const std::string dict = pickled_dict({{"a", {}}, {"b", {.sizes = {3}, .strides = {2}}}});
  write(root / "pickle", "dict", bytes_of(dict));
  write(root / "pickle", "values",
        bytes_of("\x80\x05]\x94(K\x01J\1\2\3\4G\1\2\3\4\5\6\7\x08\x8c\1ah\1\x88N\x85\x86"
                 "e."));
  write(root / "weights", "torch", torch_archive(dict, {{"0", Bytes(24)}}));
  write(root / "weights", "stream", torch_stream(dict, {{"0", Bytes(24)}}));
  write(root / "weights", "safetensors", safetensors_file());
  write(root / "weights", "index", bytes_of(R"({"weight_map": {"a": "input"}})"));
  write(root / "tokenizer", "vocab.txt", bytes_of(vocab_txt));
  write(root / "tokenizer", "word_piece.json", bytes_of(word_piece_json));
  write(root / "tokenizer", "bpe.json", bytes_of(bpe_json));
  write(root / "text", "words", bytes_of("ab'll [MASK] \u00C9\u0323\u0301\u1100 \u6771.\xED\xA0 \u0130"));
  write(root / "trec", "two", bytes_of("NUM:date When ?\nDESC:def What is\xF0 it ?\n"));
  return 0;
}
