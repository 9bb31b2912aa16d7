// Gradients of gradients: Newton's method on a function of two numbers, its Hessian row by row.
#include <russet/autograd.h>
#include <russet/functional.h>

#include <cstdio>
#include <vector>

using namespace russet;

/// Rosenbrock's valley, smallest at (1, 1).
Tensor valley(const Tensor& p) {
  const Tensor x = p[0];
  const Tensor y = p[1];
  return square(1.0 - x) + 100.0 * square(y - x * x);
}

int main() {
  Tensor p = Tensor::from<double>({-1.2, 1.0}, {2}, {}, true);
  for (int step = 0; step < 8; ++step) {
    const Tensor value = valley(p);
    const Tensor slope = autograd::grad({value}, {p}, {}, {.create_graph = true})[0];
    const std::vector<double> g = slope.to_vector<double>();
    const std::vector<double> h0 = autograd::grad({slope[0]}, {p}, {}, {.retain_graph = true})[0].to_vector<double>();
    const std::vector<double> h1 = autograd::grad({slope[1]}, {p})[0].to_vector<double>();
    std::printf("step %d: f(%.6f, %.6f) = %.3e\n", step, p[0].item(), p[1].item(), value.item());

    const double determinant = h0[0] * h1[1] - h0[1] * h1[0];
    const double dx = (g[0] * h1[1] - g[1] * h0[1]) / determinant;
    const double dy = (g[1] * h0[0] - g[0] * h1[0]) / determinant;
    const NoGrad guard;
    p.sub_(Tensor::from<double>({dx, dy}, {2}));
  }
  return 0;
}
