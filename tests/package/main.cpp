#include <russet/tensor.h>
#include <russet/version.h>
#include <iostream>

int main() {
  const russet::Tensor x = russet::Tensor::from<float>({1, 2, 3}, {3});
  x.add_(russet::Scalar(1));
  std::cout << "russet " << russet::version() << ": " << russet::to_string(x) << "\n";
  return x.to_vector<float>() == std::vector<float>{2, 3, 4} && russet::version() == russet::version_string ? 0 : 1;
}
