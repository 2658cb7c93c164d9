message(STATUS "Shardscope ${PROJECT_VERSION}: ${CMAKE_BUILD_TYPE}, warnings as errors ${SHARDSCOPE_WERROR}, "
               "sanitizers '${SHARDSCOPE_SANITIZE}', CUDA ${SHARDSCOPE_HAS_CUDA}, NVTX ${SHARDSCOPE_NVTX}, dashboard ${SHARDSCOPE_GUI}, "
               "tests ${SHARDSCOPE_TESTS}")
