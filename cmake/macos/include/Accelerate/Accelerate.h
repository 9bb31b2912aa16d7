#pragma once
// What russet needs of Apple's header of that name, for compiling where there is no SDK of macOS (make macos). With
// ACCELERATE_NEW_LAPACK the functions' symbols have a suffix.
enum CBLAS_ORDER { CblasRowMajor = 101, CblasColMajor = 102 };
enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113 };
enum CBLAS_UPLO { CblasUpper = 121, CblasLower = 122 };
enum CBLAS_DIAG { CblasNonUnit = 131, CblasUnit = 132 };
enum CBLAS_SIDE { CblasLeft = 141, CblasRight = 142 };

extern "C" {
void cblas_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb, int m, int n, int k,
                 float alpha, const float* a, int lda, const float* b, int ldb, float beta, float* c,
                 int ldc) __asm__("_cblas_sgemm$NEWLAPACK");
void cblas_dgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb, int m, int n, int k,
                 double alpha, const double* a, int lda, const double* b, int ldb, double beta, double* c,
                 int ldc) __asm__("_cblas_dgemm$NEWLAPACK");
void cblas_strsm(enum CBLAS_ORDER order, enum CBLAS_SIDE side, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE ta, enum
                 CBLAS_DIAG diagonal, int m, int n, float alpha, const float* a, int lda, float* b, int ldb)
                 __asm__("_cblas_strsm$NEWLAPACK");
void spotrf_(const char* uplo, const int* n, float* a, const int* lda, int* info) __asm__("_spotrf$NEWLAPACK");
void sgetrf_(const int* m, const int* n, float* a, const int* lda, int* pivots, int* info)
             __asm__("_sgetrf$NEWLAPACK");
void sgeqrf_(const int* m, const int* n, float* a, const int* lda, float* tau, float* work, const int* size, int*
             info) __asm__("_sgeqrf$NEWLAPACK");
void sorgqr_(const int* m, const int* n, const int* k, float* a, const int* lda, const float* tau, float* work, const
             int* size, int* info) __asm__("_sorgqr$NEWLAPACK");
void ssyevd_(const char* job, const char* uplo, const int* n, float* a, const int* lda, float* w, float* work, const
             int* size, int* iwork, const int* isize, int* info) __asm__("_ssyevd$NEWLAPACK");
void sgesdd_(const char* job, const int* m, const int* n, float* a, const int* lda, float* s, float* u, const int*
             ldu, float* vt, const int* ldvt, float* work, const int* size, int* iwork, int* info)
             __asm__("_sgesdd$NEWLAPACK");
void cblas_dtrsm(enum CBLAS_ORDER order, enum CBLAS_SIDE side, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE ta, enum
                 CBLAS_DIAG diagonal, int m, int n, double alpha, const double* a, int lda, double* b, int ldb)
                 __asm__("_cblas_dtrsm$NEWLAPACK");
void dpotrf_(const char* uplo, const int* n, double* a, const int* lda, int* info) __asm__("_dpotrf$NEWLAPACK");
void dgetrf_(const int* m, const int* n, double* a, const int* lda, int* pivots, int* info)
             __asm__("_dgetrf$NEWLAPACK");
void dgeqrf_(const int* m, const int* n, double* a, const int* lda, double* tau, double* work, const int* size, int*
             info) __asm__("_dgeqrf$NEWLAPACK");
void dorgqr_(const int* m, const int* n, const int* k, double* a, const int* lda, const double* tau, double* work,
             const int* size, int* info) __asm__("_dorgqr$NEWLAPACK");
void dsyevd_(const char* job, const char* uplo, const int* n, double* a, const int* lda, double* w, double* work,
             const int* size, int* iwork, const int* isize, int* info) __asm__("_dsyevd$NEWLAPACK");
void dgesdd_(const char* job, const int* m, const int* n, double* a, const int* lda, double* s, double* u, const int*
             ldu, double* vt, const int* ldvt, double* work, const int* size, int* iwork, int* info)
             __asm__("_dgesdd$NEWLAPACK");
}
