#pragma once
// Task: a data set made ready for a model, and the model made to fit it.
#include <russet/data.h>
#include <russet/io/weights.h>
#include <russet/models.h>
#include <russet/train/objective.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "options.h"

namespace russet::app {

/// How images become inputs.
struct ImageForm {
  std::int64_t size = 0;  // height and width
  int channels = 3;
  std::vector<float> mean{};
  std::vector<float> std{};
  bool operator==(const ImageForm&) const = default;
};

/// How text becomes token ids, besides the vocabulary.
struct TextForm {
  std::int64_t max_length = 128;  // of a sample, special tokens included
  bool lowercase = true;          // of vocab.txt, which does not say it
  bool operator==(const TextForm&) const = default;
};

/// What must be known to use a model's weights; kept in the metadata of the files that hold them.
struct Card {
  std::string model;
  std::int64_t num_classes = 0;
  std::optional<std::int64_t> in_channels{};
  std::optional<std::int64_t> image_size{};
  std::optional<double> width{};  // see models::ModelOptions
  std::map<std::string, std::int64_t> config{};
  std::optional<ImageForm> image{};
  std::optional<TextForm> text{};
  std::vector<std::string> class_names{};
  bool regression = false;
  /// The weights came without a card: what their shapes do not tell is the usual, and may be otherwise.
  bool assumed = false;

  models::ModelOptions model_options(Device device = {}) const;
  train::Objective objective() const;
};

/// As metadata of a safetensors file.
io::Metadata to_metadata(const Card& card);
/// The card in such metadata, or nothing. Throws FileError, naming the file `name`, for one that cannot be read.
std::optional<Card> card_in(const io::Metadata& metadata, const std::string& name);
/// Whether the head, a model's last layer, comes from the weights too, or is a new one for other classes.
enum class Head : std::uint8_t { loaded, replaced };

/// The card of a file of weights; without one (a file from elsewhere), what the shapes of `model`'s tensors tell and
/// the usual normalisation. Of a head that is replaced it says nothing. Throws ValueError if the file was trained for
/// another model, FileError if it is damaged.
Card card_of(const io::WeightsFile& file, const std::string& model, Head head = Head::loaded);

struct Task {
  data::DatasetPtr train;
  data::DatasetPtr test;  // null: nothing is evaluated
  /// The samples of `train` as `test` has its own, one view of each: the images whose classes are known, for models
  /// that learn without classes. Null for others.
  data::DatasetPtr bank;
  Card card;
};

/// Opens the data as the arguments say: transforms, parts, classes. `card`: what a file of weights says; the data must
/// fit it then, but for the classes of a new head (--classes). Throws ValueError, FileError or ShapeError.
Task open_task(const Arguments& arguments, const std::optional<Card>& card = {});

/// What turns image files into inputs, with or without augmentation.
data::Transforms transforms_of(const ImageForm& form, bool augment);
/// SimCLR's augmentations: two views of each image. As in the paper, small images are not blurred.
data::Transforms views_of(const ImageForm& form);

/// Copies the weights of a file into the model. Throws FileError or ValueError, which names all tensors that are
/// missing, unexpected or of another shape.
void load_weights(models::Model& model, const io::WeightsFile& file, Device device, Head head = Head::loaded);
/// The model of the card with the weights of a file. Throws as load_weights.
models::Model load_model(const Card& card, const io::WeightsFile& file, Device device);

}  // namespace russet::app
