#pragma once
// The options of the command line are one table. Parsing, the checks of ranges, --help, docs/options.md, and what a run
// remembers come from it: a new option is a row here, and its use.
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace CLI {
class App;
}

namespace russet::app {

/// texts: words with spaces between; integers: with commas.
/// words and integers: several are separated by commas; texts follow each other.
enum class Kind : std::uint8_t { text, texts, words, integer, integers, real, bytes, flag };

/// What holds where an option is not given: a value, or what the use makes of its absence.
struct Default {
  std::string_view text{};
  bool is_value = false;
};
constexpr Default is(std::string_view value) { return {value, true}; }
constexpr Default by(std::string_view remark) { return {remark, false}; }

struct AllowedValues {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool has_low = true;  // whether the ends themselves are meant
  bool has_high = true;
  std::string_view choices{};  // of a word, with ", " between; OPTIMIZERS stands for the names of all optimizers
};
constexpr AllowedValues any{};
constexpr AllowedValues at_least(double low) { return {.low = low}; }
constexpr AllowedValues within(double low, double high) { return {.low = low, .high = high}; }
constexpr AllowedValues share{.low = 0, .high = 1, .has_high = false};
constexpr AllowedValues above(double low, double high) { return {.low = low, .high = high, .has_low = false}; }
constexpr AllowedValues one_of(std::string_view choices) { return {.choices = choices}; }

/// positional: told by its place. remembered: decides what a run computes; a run that is resumed must agree.
enum Trait : std::uint8_t { plain = 0, positional = 1, required = 2, remembered = 4 };

struct OptionRow {
  std::string_view commands;  // with a space between
  std::string_view name;      // --name; --no-name for a flag that is on by default
  Kind kind;
  Default usual;
  AllowedValues allowed;
  int traits;
  std::string_view help;  // MODELS and OPTIMIZERS stand for the names of all
};

constexpr std::string_view weights_formats =
    "Weights: safetensors, PyTorch's .pth, .pt or .bin, or the index of several files";

inline constexpr OptionRow option_table[] = {
    {"train", "model", Kind::text, {}, any, positional | remembered, "One of MODELS"},
    {"eval predict plan profile", "model", Kind::text, {}, any, positional | required, "One of MODELS"},
    {"bench", "model", Kind::texts, by("all"), any, positional, "Of MODELS"},
    {"ops", "op", Kind::text, {}, any, positional, "One operator, with its types"},
    {"train",
     "data",
     Kind::text,
     {},
     any,
     remembered,
     "shapes, mnist:DIR, cifar10:DIR (binary files, or a tree of images), folder:DIR (train/ and test/ inside, or "
     "--holdout), tensors:FILE.safetensors (tensors x and y), trec:FILE (questions, with --vocab), or text:FILE (a "
     "text a "
     "line, for bert_base_mlm)"},
    {"eval",
     "data",
     Kind::text,
     {},
     any,
     required,
     "shapes, mnist:DIR, cifar10:DIR, folder:DIR, tensors:FILE.safetensors, trec:FILE or text:FILE; the test part "
     "where "
     "there is one"},
    {"train", "test", Kind::text, {}, any, remembered, "Another file of questions or text, to evaluate on"},
    {"eval predict", "weights", Kind::text, {}, any, required, weights_formats},
    {"predict", "image", Kind::texts, {}, any, plain, "JPEG or PNG files"},
    {"predict",
     "text",
     Kind::texts,
     {},
     any,
     plain,
     "Texts, with --vocab; for bert_base_mlm with [MASK] where a word is to be told"},
    {"predict",
     "input",
     Kind::text,
     {},
     any,
     plain,
     "A safetensors file with the model's inputs by name (input_ids, ...), or x for the first"},
    {"predict", "output", Kind::text, {}, any, plain, "The safetensors file to write, with y"},
    {"convert", "in", Kind::text, {}, any, positional | required, weights_formats},
    {"convert", "out", Kind::text, {}, any, positional | required, "The safetensors file to write"},
    {"train eval predict plan profile", "device", Kind::text, is("cpu"), any, remembered,
     "The device (russet devices lists them)"},
    {"bench", "device", Kind::words, is("cpu"), any, plain, "Devices, such as cpu,mps"},
    {"ops", "device", Kind::text, by("all that are available"), any, plain, "One device"},
    {"train eval predict plan profile", "precision", Kind::text, is("fp32"), one_of("fp32, bf16, fp16"), remembered,
     "fp32, or bf16 or fp16: matrix work in bfloat16 or float16"},
    {"bench", "precision", Kind::text, by("fp32 and bf16"), one_of("fp32, bf16, fp16"), plain, "fp32, bf16 or fp16"},
    {"plan profile", "phase", Kind::text, is("train"), one_of("train, eval"), plain, "train or eval"},
    {"bench", "phase", Kind::text, by("both"), one_of("train, eval"), plain, "train or eval"},
    {"train", "epochs", Kind::integer, by("by model"), at_least(1), remembered, "How often to go through the data"},
    {"train", "steps", Kind::integer, {}, at_least(1), remembered, "How many steps to train, instead of --epochs"},
    {"train eval plan profile", "batch", Kind::integer, by("by model"), within(1, 1e6), remembered,
     "Samples in a batch"},
    {"bench", "batch", Kind::integers, by("by model"), within(1, 1e6), plain,
     "Samples in a batch; several sizes are measured one after the other: 1,2,4,8"},
    {"predict", "batch", Kind::integer, is("32"), at_least(1), plain, "Samples in a batch"},
    {"train", "accumulate", Kind::integer, is("1"), at_least(1), remembered, "Batches in a step of the optimizer"},
    {"train", "optimizer", Kind::text, by("by model"), one_of("OPTIMIZERS"), remembered, "One of OPTIMIZERS"},
    {"train", "lr", Kind::real, by("by model and optimizer"), at_least(0), remembered, "The learning rate"},
    {"train", "momentum", Kind::real, is("0.9"), share, remembered, "The momentum of sgd and lars"},
    {"train", "weight-decay", Kind::real, by("by model"), at_least(0), remembered, "The weight decay"},
    {"train", "schedule", Kind::text, is("cosine"), one_of("cosine, step, none"), remembered, "cosine, step or none"},
    {"train", "warmup", Kind::integer, by("by model"), at_least(0), remembered,
     "Steps in which the learning rate grows to its full size"},
    {"train", "clip-grad", Kind::real, is("0"), at_least(0), remembered,
     "The largest norm of all gradients together; 0: any"},
    {"train", "label-smoothing", Kind::real, is("0"), share, remembered,
     "The share of a target spread over all classes"},
    {"train", "mixup", Kind::real, is("0"), at_least(0), remembered,
     "MixUp: each sample is mixed with another one by a share drawn from Beta(alpha, alpha); 0: none"},
    {"train", "cutmix", Kind::real, is("0"), at_least(0), remembered,
     "CutMix: a box of each image is another one's, its area drawn from Beta(alpha, alpha); 0: none. With --mixup, "
     "each "
     "batch is mixed by one of both"},
    {"train", "temperature", Kind::real, by("0.5"), above(0, 100), remembered,
     "simclr_resnet18: what similarities are divided by in the loss"},
    {"train", "dropout", Kind::real, by("the model's own"), share, remembered, "The probability of dropout"},
    {"train bench plan profile", "width", Kind::real, by("1"), above(0, 8), remembered,
     "Multiplies the widths of the model's hidden layers, such as 0.125"},
    {"train",
     "freeze",
     Kind::text,
     {},
     one_of("encoder"),
     remembered,
     "encoder: train the classifier alone, and keep no activations of the rest"},
    {"train eval predict plan profile", "config", Kind::text, by("the model's own sizes"), any, remembered,
     "The sizes of BERT models, from a Hugging Face config.json"},
    {"train", "image-size", Kind::integer, by("by model"), within(1, 1e5), remembered,
     "Height and width to which images are scaled"},
    {"train", "augment", Kind::text, is("standard"), one_of("standard, none"), remembered,
     "standard: random crops and flips of folder: and cifar10: data; or none"},
    {"train eval", "samples", Kind::integer, by("all"), at_least(1), remembered,
     "The first N samples to train on; of folders, the first of each class in turn"},
    {"train", "holdout", Kind::real, by("0"), share, remembered,
     "The share of the training data that is kept for evaluation, by seed"},
    {"eval", "holdout", Kind::real, {}, share, plain, "Evaluate the share that train --holdout kept back"},
    {"train", "seed", Kind::integer, is("0"), at_least(0), remembered, "The seed of all that is random"},
    {"eval", "seed", Kind::integer, is("0"), at_least(0), plain, "The seed by which it was chosen"},
    {"train eval", "workers", Kind::integer, by("by the number of cores"), any, plain, "Threads that prepare batches"},
    {"train", "shuffle", Kind::flag, is("true"), any, remembered, "Go through the data in its own order"},
    {"train",
     "weights",
     Kind::text,
     {},
     any,
     remembered,
     "Weights to start from: safetensors, PyTorch's .pth, .pt or .bin, or the index of several files"},
    {"train", "classes", Kind::integer, by("as many as the data has"), within(1, 1e6), remembered,
     "Classes of the model; with --weights its last layer is a new one, and the others are loaded"},
    {"train", "out", Kind::text, by("runs/MODEL"), any, plain,
     "The folder of the run; an earlier run there is replaced"},
    {"train", "resume", Kind::text, {}, any, plain, "Go on with the run in this folder; its options hold"},
    {"train", "checkpoint-every", Kind::integer, by("an epoch"), at_least(1), plain, "Steps between checkpoints"},
    {"train",
     "memory",
     Kind::bytes,
     {},
     any,
     remembered,
     "The most memory to take on the device, such as 2.5GiB: activations are computed again where there is no room to "
     "keep them, then batches are computed in parts; what does not fit then is refused before anything runs"},
    {"train",
     "tensorboard",
     Kind::text,
     {},
     any,
     plain,
     "Write an event file for TensorBoard into this folder: loss, learning rate, accuracy; with --resume, a further "
     "one"},
    {"plan",
     "memory",
     Kind::bytes,
     {},
     any,
     plain,
     "Plan with so much memory, such as 2.5GiB: activations are computed again where there is no room to keep them"},
    {"tokenize",
     "vocab",
     Kind::text,
     {},
     any,
     required,
     "tokenizer.json, vocab.txt (WordPiece), or vocab.json with merges.txt beside it (byte-level BPE)"},
    {"train eval predict",
     "vocab",
     Kind::text,
     {},
     any,
     remembered,
     "For text: tokenizer.json, vocab.txt (WordPiece), or vocab.json with merges.txt beside it (byte-level BPE)"},
    {"train tokenize", "lowercase", Kind::flag, is("true"), any, remembered,
     "Keep capital letters and accents (vocab.txt)"},
    {"tokenize", "special-tokens", Kind::flag, is("true"), any, plain, "Leave out [CLS], [SEP] and their like"},
    {"train", "max-length", Kind::integer, by("128, or as the weights"), at_least(1), remembered,
     "The most ids of a text, special ones included; what is longer is cut"},
    {"tokenize", "max-length", Kind::integer, {}, at_least(0), plain, "The most ids in a line, special ones included"},
    {"bench", "seconds", Kind::real, is("4"), within(0, 3600), plain, "How long to measure each"},
    {"bench",
     "record",
     Kind::flag,
     {},
     any,
     plain,
     "Record each step, as a loop does without CapturedFunction; else a step that was recorded twice runs again"},
    {"bench", "memory", Kind::bytes, by("what the device has"), any, plain,
     "The most memory to take on a device, such as 2.5GiB: activations are computed again where there is no room to "
     "keep "
     "them; what does not fit then is refused"},
    {"bench",
     "suite",
     Kind::text,
     {},
     one_of("mission"),
     plain,
     "mission: all models, training and evaluation, fp32 and bf16, as a page of speed-ups under --out"},
    {"bench", "baseline", Kind::text, by("cpu"), any, plain,
     "With --suite: the device over which speed-ups are given, in the first precision"},
    {"bench",
     "out",
     Kind::text,
     {},
     any,
     plain,
     "The folder for bench.html: speed-ups with --suite, else curves by size of the batch"},
    {"plan",
     "chip",
     Kind::text,
     {},
     any,
     plain,
     "For --device mps or cuda: plan for the GPU of this chip (m1, m1-pro, ..., h200, rtx-4090, ...), and model what "
     "each step takes at least"},
    {"plan", "steps", Kind::flag, {}, any, plain, "List every step"},
    {"profile", "steps", Kind::integer, is("5"), within(1, 10'000), plain, "How many steps to profile"},
    {"profile", "top", Kind::integer, is("10"), at_least(1), plain, "How many of the dearest steps to print"},
    {"predict", "top", Kind::integer, is("3"), at_least(1), plain, "How many classes to print for an image"},
    {"profile", "trace", Kind::text, is("trace.json"), any, plain, "The chrome trace to write"},
    {"train eval predict convert bench plan profile devices ops",
     "json",
     Kind::flag,
     {},
     any,
     plain,
     "Answer in lines of JSON"},
};

constexpr bool is_listed(std::string_view name, std::optional<Kind> kind = {}) {
  for (const OptionRow& row : option_table) {
    if (row.name == name && (!kind || row.kind == *kind)) return true;
  }
  return false;
}

/// The name of an option in the table, of that kind if one is asked for: any other does not compile.
template <Kind... kind>
struct OptionName {
  consteval OptionName(const char* name) : text(name) {  // NOLINT: a name is written as a text
    if (!(is_listed(name, kind) && ... && is_listed(name))) throw "the table has no such option";
  }
  std::string_view text;
};

/// The options that a command was given, each checked against its row.
class Arguments {
 public:
  using Value =
      std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>, std::vector<std::int64_t>>;

  explicit Arguments(std::string_view command) : command_(command) {}

  /// Whether there is a value: given, or by default.
  bool has(OptionName<> name) const { return find(name.text).has_value(); }
  /// The value. An absent text is empty, an absent flag is off; absent numbers are the caller's mistake.
  std::string text(OptionName<Kind::text> name) const { return get<std::string>(name.text); }
  std::vector<std::string> texts(OptionName<Kind::texts> name) const {
    return get<std::vector<std::string>>(name.text);
  }
  std::vector<std::string> words(OptionName<Kind::words> name) const {
    return get<std::vector<std::string>>(name.text);
  }
  std::vector<std::int64_t> integers(OptionName<Kind::integers> name) const {
    return get<std::vector<std::int64_t>>(name.text);
  }
  std::int64_t integer(OptionName<Kind::integer> name) const { return std::get<std::int64_t>(*find(name.text)); }
  double real(OptionName<Kind::real> name) const { return std::get<double>(*find(name.text)); }
  std::uint64_t bytes(OptionName<Kind::bytes> name) const {
    return static_cast<std::uint64_t>(std::get<std::int64_t>(*find(name.text)));
  }
  bool flag(OptionName<Kind::flag> name) const { return get<bool>(name.text); }

  /// Throws ValueError, which names the option and its range or choices, for a value outside of them.
  void set(OptionName<> name, Value value) { set_checked(name.text, std::move(value)); }
  /// The same if nothing was given.
  void set_default(OptionName<> name, Value value) {
    if (!given_.contains(name.text)) set_checked(name.text, std::move(value));
  }
  /// These, and what `others` were given beside.
  Arguments over(const Arguments& others) const {
    Arguments both = *this;
    both.given_.insert(others.given_.begin(), others.given_.end());
    return both;
  }
  void remove(OptionName<> name) { given_.erase(name.text); }

  /// What a run remembers: the options that decide what it computes, as a JSON object, and back. Throws FileError for a
  /// text that is none.
  std::string to_json() const;
  static Arguments from_json(std::string_view command, std::string_view text);
  /// The same, as names and values for a person to read.
  std::vector<std::pair<std::string, std::string>> remembered_values() const;
  /// What to say about options that were given for a run that started with other ones: "--lr 0.1 (it was 0.05)", ...
  std::vector<std::string> differences(const Arguments& started) const;

 private:
  friend void add_options(CLI::App& command, Arguments& arguments);
  const OptionRow* row(std::string_view name) const;
  std::optional<Value> find(std::string_view name) const;
  template <class T>
  T get(std::string_view name) const {
    const std::optional<Value> value = find(name);
    return value ? std::get<T>(*value) : T{};
  }
  void set_checked(std::string_view name, Value value);

  std::string command_;
  std::map<std::string_view, Value> given_;  // names are the table's
};

/// Adds the options that the table has for the command; parsing sets them.
void add_options(CLI::App& command, Arguments& arguments);

/// docs/options.md.
std::string options_page();

/// "2.5GiB", "512 MB", "1000": bytes. Throws ValueError.
std::uint64_t parse_size(std::string_view text);
/// "2.50 GiB".
std::string format_size(std::uint64_t bytes);

}  // namespace russet::app
