# cmake -DSOURCE=FOLDER -DGIT=git -DCOMMIT=... -DOUTPUT=FILE.h -P: writes the commit that is built to FILE.h. COMMIT is
# needed if the sources are not a git clone (-DSHARDSCOPE_COMMIT=...).
set(commit "${COMMIT}")
if(NOT commit AND GIT AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit)
  set(commit "unknown")
endif()
file(WRITE "${OUTPUT}" "#define SHARDSCOPE_COMMIT \"${commit}\"\n")
