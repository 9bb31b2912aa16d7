// A program that uses the library registers a model of its own. (A process of its own: a registered model stays.)
#include <gtest/gtest.h>
#include <russet/functional.h>
#include <russet/models.h>
#include <russet/nn.h>

namespace russet {
namespace {

class Doubled : public nn::Module {
 public:
  explicit Doubled(std::int64_t classes) : fc_(register_module("fc", nn::Linear(4, classes))) {}
  Tensor forward(const Tensor& x) override { return fc_(x) * 2.0; }

 private:
  nn::Linear fc_;
};

TEST(RegisterModel, MakesItKnownByName) {
  models::ModelSpec spec{
      .name = "doubled",
      .make = [](const models::ModelOptions& options) -> nn::AnyModule { return Doubled(*options.num_classes); },
      .takes = models::InputKind::numbers,
      .inputs = [](const models::ModelOptions&) { return std::vector<models::Input>{{.name = "x", .shape = {4}}}; },
      .num_classes = 5};
  EXPECT_THROW(models::register_model({.name = "nothing"}), ValueError);
  const std::size_t before = models::list_models().size();
  EXPECT_TRUE(models::register_model(spec));
  EXPECT_THROW(models::register_model(spec), ValueError);
  EXPECT_EQ(models::list_models().size(), before + 1);
  models::Model model = models::get_model("doubled", {.num_classes = 2});
  EXPECT_EQ(model.num_classes(), 2);
  EXPECT_EQ(model.spec().name, "doubled");
  EXPECT_EQ(model(zeros({3, 4})).sizes(), (Shape{3, 2}));
}

}  // namespace
}  // namespace russet
