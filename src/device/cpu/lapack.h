#pragma once
// LAPACK's routines, one name for float and double. Matrices are column-major. Sizes of workspace are asked for by a
// size of -1, as LAPACK has it.
#ifdef __APPLE__
#include <Accelerate/Accelerate.h>
#else
#include <cblas.h>
#endif
#include <cstddef>
#include <type_traits>

#ifndef __APPLE__
// OpenBLAS's header has no LAPACK. Fortran passes the lengths of words behind all other arguments.
extern "C" {
void spotrf_(const char* uplo, const int* n, float* a, const int* lda, int* info, std::size_t uplo_length);
void dpotrf_(const char* uplo, const int* n, double* a, const int* lda, int* info, std::size_t uplo_length);
void sgetrf_(const int* m, const int* n, float* a, const int* lda, int* pivots, int* info);
void dgetrf_(const int* m, const int* n, double* a, const int* lda, int* pivots, int* info);
void sgeqrf_(const int* m, const int* n, float* a, const int* lda, float* tau, float* work, const int* size, int* info);
void dgeqrf_(const int* m, const int* n, double* a, const int* lda, double* tau, double* work, const int* size,
             int* info);
void sorgqr_(const int* m, const int* n, const int* k, float* a, const int* lda, const float* tau, float* work,
             const int* size, int* info);
void dorgqr_(const int* m, const int* n, const int* k, double* a, const int* lda, const double* tau, double* work,
             const int* size, int* info);
void ssyevd_(const char* job, const char* uplo, const int* n, float* a, const int* lda, float* w, float* work,
             const int* size, int* iwork, const int* isize, int* info, std::size_t job_length, std::size_t uplo_length);
void dsyevd_(const char* job, const char* uplo, const int* n, double* a, const int* lda, double* w, double* work,
             const int* size, int* iwork, const int* isize, int* info, std::size_t job_length, std::size_t uplo_length);
void sgesdd_(const char* job, const int* m, const int* n, float* a, const int* lda, float* s, float* u, const int* ldu,
             float* vt, const int* ldvt, float* work, const int* size, int* iwork, int* info, std::size_t job_length);
void dgesdd_(const char* job, const int* m, const int* n, double* a, const int* lda, double* s, double* u,
             const int* ldu, double* vt, const int* ldvt, double* work, const int* size, int* iwork, int* info,
             std::size_t job_length);
}
#endif

namespace russet::cpu::lapack {

/// Calls a routine of Fortran, which takes the length of each word (all are 1) behind the other arguments. Accelerate's
/// routines do not.
template <class Routine, class... Arguments>
void call(Routine* routine, Arguments... arguments) {
  constexpr std::size_t length = 1;
  if constexpr (std::is_invocable_v<Routine*, Arguments..., std::size_t>) {
    routine(arguments..., length);
  } else if constexpr (std::is_invocable_v<Routine*, Arguments..., std::size_t, std::size_t>) {
    routine(arguments..., length, length);
  } else {
    routine(arguments...);
  }
}

/// Of the lower triangle. Returns LAPACK's info: the order of the first minor that is not positive, or 0.
inline int potrf(int n, float* a) {
  int info = 0;
  call(spotrf_, "L", &n, a, &n, &info);
  return info;
}
inline int potrf(int n, double* a) {
  int info = 0;
  call(dpotrf_, "L", &n, a, &n, &info);
  return info;
}

/// Returns the number of the first pivot that is 0, or 0.
inline int getrf(int n, float* a, int* pivots) {
  int info = 0;
  sgetrf_(&n, &n, a, &n, pivots, &info);
  return info;
}
inline int getrf(int n, double* a, int* pivots) {
  int info = 0;
  dgetrf_(&n, &n, a, &n, pivots, &info);
  return info;
}

inline void geqrf(int m, int n, float* a, float* tau, float* work, int size) {
  int info = 0;
  sgeqrf_(&m, &n, a, &m, tau, work, &size, &info);
}
inline void geqrf(int m, int n, double* a, double* tau, double* work, int size) {
  int info = 0;
  dgeqrf_(&m, &n, a, &m, tau, work, &size, &info);
}

/// The first k columns of the product of k reflections.
inline void orgqr(int m, int k, float* a, const float* tau, float* work, int size) {
  int info = 0;
  sorgqr_(&m, &k, &k, a, &m, tau, work, &size, &info);
}
inline void orgqr(int m, int k, double* a, const double* tau, double* work, int size) {
  int info = 0;
  dorgqr_(&m, &k, &k, a, &m, tau, work, &size, &info);
}

/// Of the lower triangle, which eigenvectors replace if `vectors`. Not 0 if it does not converge.
inline int syevd(bool vectors, int n, float* a, float* w, float* work, int size, int* iwork, int isize) {
  int info = 0;
  call(ssyevd_, vectors ? "V" : "N", "L", &n, a, &n, w, work, &size, iwork, &isize, &info);
  return info;
}
inline int syevd(bool vectors, int n, double* a, double* w, double* work, int size, int* iwork, int isize) {
  int info = 0;
  call(dsyevd_, vectors ? "V" : "N", "L", &n, a, &n, w, work, &size, iwork, &isize, &info);
  return info;
}

/// u: [m, k], vt: [k, n], k = min(m, n); not read without `vectors`. Not 0 if it does not converge.
inline int gesdd(bool vectors, int m, int n, float* a, float* s, float* u, float* vt, float* work, int size,
                 int* iwork) {
  int info = 0;
  const int k = m < n ? m : n;
  call(sgesdd_, vectors ? "S" : "N", &m, &n, a, &m, s, u, &m, vt, &k, work, &size, iwork, &info);
  return info;
}
inline int gesdd(bool vectors, int m, int n, double* a, double* s, double* u, double* vt, double* work, int size,
                 int* iwork) {
  int info = 0;
  const int k = m < n ? m : n;
  call(dgesdd_, vectors ? "S" : "N", &m, &n, a, &m, s, u, &m, vt, &k, work, &size, iwork, &info);
  return info;
}

/// X with A X = B in place of B; column-major.
inline void trsm(bool upper, bool unit, int n, int columns, const float* a, float* b) {
  cblas_strsm(CblasColMajor, CblasLeft, upper ? CblasUpper : CblasLower, CblasNoTrans, unit ? CblasUnit : CblasNonUnit,
              n, columns, 1, a, n, b, n);
}
inline void trsm(bool upper, bool unit, int n, int columns, const double* a, double* b) {
  cblas_dtrsm(CblasColMajor, CblasLeft, upper ? CblasUpper : CblasLower, CblasNoTrans, unit ? CblasUnit : CblasNonUnit,
              n, columns, 1, a, n, b, n);
}

}  // namespace russet::cpu::lapack
