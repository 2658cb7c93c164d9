# cmake -DSOURCE=FOLDER -DGIT=git -DCOMMIT=... -DOUTPUT=FILE.h -P: writes the commit that is built, and leaves the file
# alone where it says so already. COMMIT where the sources are no clone (-DSHARDSCOPE_COMMIT=...).
set(commit "${COMMIT}")
if(NOT commit AND GIT AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --abbrev=12 --dirty=\ with\ changes --exclude=*
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit)
  set(commit "unknown")
endif()
set(text "#define SHARDSCOPE_COMMIT \"${commit}\"\n")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT text STREQUAL "${before}")
  file(WRITE "${OUTPUT}" "${text}")
endif()
