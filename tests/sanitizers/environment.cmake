# Environment of tests under a sanitizer, with what is known of the libraries below left out.
set(here ${CMAKE_CURRENT_LIST_DIR})
if(RUSSET_SANITIZE MATCHES "thread")
  # Libraries are not instrumented: they run on one thread, and russet's own loops on std::thread. The simulated GPU's
  # checks need address space that the sanitizer takes: its kernels run without, the host's code round them is checked.
  list(APPEND russet_test_environment
       "TSAN_OPTIONS=suppressions=${here}/thread.supp:second_deadlock_stack=1:allocator_may_return_null=1"
       "OMP_NUM_THREADS=1" "OPENBLAS_NUM_THREADS=1" "RUSSET_SIMULATOR=unchecked")
else()
  list(APPEND russet_test_environment "ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=1"
       "LSAN_OPTIONS=suppressions=${here}/leak.supp" "UBSAN_OPTIONS=print_stacktrace=1")
endif()
