# cmake -DBUILD=... -DPROGRAM=... -P programs_test.cmake: fails unless `programs` builds bin/PROGRAM.
execute_process(COMMAND ninja -C ${BUILD} -t query programs OUTPUT_VARIABLE inputs RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "ninja -t query programs: ${result}")
endif()
if(NOT inputs MATCHES "\n *bin/${PROGRAM}\n")
  message(FATAL_ERROR "the target `programs` does not build bin/${PROGRAM}")
endif()
