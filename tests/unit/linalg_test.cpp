// Linear algebra beyond golden values: errors at the read, properties of large factorisations, what is left open by
// definition.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/error.h>
#include <russet/functional.h>

#include <cmath>
#include <limits>

namespace russet {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

class Linalg : public testing::TestWithParam<const char*> {
 protected:
  const Device device{GetParam()};

  Tensor matrix(const std::vector<double>& values, const Shape& sizes, DType dtype = DType::float64) const {
    return Tensor::from(values, sizes, Device(DeviceType::cpu)).to(dtype).to(device);
  }
  Tensor numbers(const Shape& sizes, DType dtype = DType::float64) const {
    Generator generator(5);
    return randn(sizes, {}, &generator).to(dtype).to(device);
  }
  /// How far columns are from orthonormal ones.
  static double departure(const Tensor& columns) {
    const Tensor products = matmul(columns.transpose(-1, -2), columns);
    const Tensor one = eye(columns.size(-1), {}, {.dtype = columns.dtype(), .device = columns.device()});
    return amax(abs(products - one)).item();
  }
  /// The largest difference, against the largest number.
  static double distance(const Tensor& a, const Tensor& b) {
    return amax(abs(a - b)).item() / std::max(1e-300, amax(abs(b)).item());
  }
};

TEST_P(Linalg, BadMatricesAreErrorsOfTheirOwnAtTheRead) {
  const Tensor singular = matrix({1, 2, 2, 4}, {2, 2});
  const Tensor indefinite = matrix({1, 2, 2, 1}, {2, 2});
  const Tensor nothing = matrix({1, NAN, NAN, 1}, {2, 2});
  const std::vector<Tensor> results{linalg_solve(singular, ones({2}, {.dtype = DType::float64, .device = device})),
                                    inverse(singular),
                                    matrix_power(singular, -2),
                                    linalg_cholesky(indefinite),
                                    linalg_cholesky(nothing),
                                    linalg_svdvals(nothing),
                                    linalg_eigh(nothing).eigenvalues};
  const Tensor other = inverse(indefinite);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_THROW(results[i].to_vector<double>(), LinAlgError) << i;
    EXPECT_THROW((results[i] + 1).to_vector<double>(), LinAlgError) << i;
  }
  EXPECT_NEAR(other[0][0].item(), -1.0 / 3, 1e-12);  // what does not depend on them is computed
}

TEST_P(Linalg, ErrorsNameTheMatrix) {
  const Tensor batch = stack({eye(2, {}, {.device = device}), matrix({1, 1, 1, 1}, {2, 2}, DType::float32)});
  try {
    inverse(batch).to_vector<float>();
    FAIL();
  } catch (const LinAlgError& error) {
    EXPECT_NE(std::string(error.what()).find("matrix 1 of 2 is singular"), std::string::npos) << error.what();
  }
}

TEST_P(Linalg, SingularMatricesThatAreNoErrors) {
  const Tensor singular = matrix({1, 2, 2, 4}, {2, 2});
  EXPECT_EQ(det(singular).item(), 0);
  EXPECT_EQ(slogdet(singular).sign.item(), 0);
  EXPECT_EQ(slogdet(singular).logabsdet.item(), -infinity);
  EXPECT_EQ(linalg_cond(singular, 1).item(), infinity);
  EXPECT_EQ(linalg_matrix_rank(singular).item<std::int64_t>(), 1);
  EXPECT_LT(distance(matmul(matmul(singular, linalg_pinv(singular)), singular), singular), 1e-12);
}

TEST_P(Linalg, FactorsGiveTheMatrixBack) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const double bound = dtype == DType::float32 ? 2e-5 : 1e-13;
    for (const Shape& sizes : {Shape{40, 40}, Shape{60, 25}, Shape{25, 60}, Shape{2, 3, 12, 9}}) {
      SCOPED_TRACE(to_string(sizes));
      const Tensor a = numbers(sizes, dtype);
      for (const char* const mode : {"reduced", "complete"}) {
        const QrResult f = linalg_qr(a, mode);
        EXPECT_LT(distance(matmul(f.q, f.r), a), bound);
        EXPECT_LT(departure(f.q), bound);
      }
      for (const bool full : {false, true}) {
        const SvdResult f = linalg_svd(a, full);
        const std::int64_t k = f.s.size(-1);
        const Tensor u = f.u.narrow(-1, 0, k);
        EXPECT_LT(distance(matmul(u * f.s.unsqueeze(-2), f.vh.narrow(-2, 0, k)), a), bound);
        EXPECT_LT(departure(f.u), bound);
        EXPECT_LT(departure(f.vh.transpose(-1, -2)), bound);
      }
    }
    const Tensor a = numbers({2, 30, 30}, dtype);
    const Tensor symmetric = a + a.transpose(-1, -2);
    const EighResult f = linalg_eigh(symmetric);
    const Tensor& v = f.eigenvectors;
    EXPECT_LT(distance(matmul(v * f.eigenvalues.unsqueeze(-2), v.transpose(-1, -2)), symmetric), bound);
    const Tensor positive = matmul(a, a.transpose(-1, -2)) + eye(30, {}, {.dtype = dtype, .device = device});
    const Tensor l = linalg_cholesky(positive);
    EXPECT_LT(distance(matmul(l, l.transpose(-1, -2)), positive), bound);
    EXPECT_LT(distance(matmul(positive, linalg_solve(positive, a)), a), 100 * bound);
  }
}

TEST_P(Linalg, OneTriangleIsRead) {
  const Tensor whole = matrix({4, 1, 1, 3}, {2, 2});
  const Tensor lower = matrix({4, NAN, 1, 3}, {2, 2});
  const Tensor upper = matrix({4, 1, NAN, 3}, {2, 2});
  EXPECT_EQ(distance(linalg_cholesky(lower), linalg_cholesky(whole)), 0);
  EXPECT_EQ(distance(linalg_eigvalsh(lower), linalg_eigvalsh(whole)), 0);
  EXPECT_EQ(distance(linalg_eigvalsh(upper, "U"), linalg_eigvalsh(whole)), 0);
}

TEST_P(Linalg, TheDeterminantOfASingularMatrixHasItsGradient) {
  Tensor a = matrix({1, 2, 2, 4}, {2, 2}).requires_grad_();
  det(a).backward();
  const std::vector<double> cofactors{4, -2, -2, 1};
  EXPECT_LT(distance(a.grad(), matrix(cofactors, {2, 2})), 1e-12);
}

TEST_P(Linalg, CompleteFactorsHaveNoGradient) {
  const Tensor a = numbers({4, 2}).requires_grad_();
  EXPECT_THROW(sum(linalg_qr(a, "complete").q).backward(), AutogradError);
}

TEST_P(Linalg, ExponentialsOfLargeMatrices) {
  // exp of a rotation's generator: the cosine and the sine of the angle.
  const double angle = 50;
  const Tensor turned = matrix_exp(matrix({0, -angle, angle, 0}, {2, 2}));
  const std::vector<double> expected{std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle)};
  EXPECT_LT(distance(turned, matrix(expected, {2, 2})), 1e-12);
}

TEST_P(Linalg, WrongCallsAreRefusedAtOnce) {
  const Tensor wide = numbers({2, 3});
  const Tensor square = numbers({3, 3});
  EXPECT_THROW(inverse(wide), ShapeError);
  EXPECT_THROW(det(numbers({3})), ShapeError);
  EXPECT_THROW(linalg_solve(square, numbers({2, 2})), ShapeError);
  EXPECT_THROW(linalg_solve_triangular(square, numbers({2, 2}), {.upper = true}), ShapeError);
  EXPECT_THROW(linalg_qr(wide, "raw"), ValueError);
  EXPECT_THROW(linalg_eigh(square, "X"), ValueError);
  EXPECT_THROW(linalg_matrix_norm(square, "two"), ValueError);
  EXPECT_THROW(linalg_matrix_norm(square, 3), ValueError);
  EXPECT_THROW(linalg_lstsq(square, numbers({3, 1}), {}, {.driver = "qr"}), ValueError);
  EXPECT_THROW(linalg_multi_dot({square}), ValueError);
  EXPECT_THROW(inverse(square.to(DType::float16)), TypeError);
  EXPECT_THROW(inverse(square.to(DType::int64)), TypeError);
}

TEST_P(Linalg, EmptyMatrices) {
  const Tensor none = numbers({2, 0, 0});
  EXPECT_EQ(inverse(none).sizes(), (Shape{2, 0, 0}));
  EXPECT_EQ(det(none).to_vector<double>(), (std::vector<double>{1, 1}));
  EXPECT_EQ(linalg_svd(numbers({0, 3}), false).u.sizes(), (Shape{0, 0}));
  EXPECT_EQ(linalg_svd(numbers({3, 0})).u.sizes(), (Shape{3, 3}));
  EXPECT_EQ(linalg_qr(numbers({3, 0}), "complete").q.sizes(), (Shape{3, 3}));
}

INSTANTIATE_TEST_SUITE_P(Devices, Linalg, testing::Values("cpu", "reference"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace russet
