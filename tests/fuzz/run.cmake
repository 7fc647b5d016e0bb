# Runs one fuzz target for SECONDS over a copy of its corpus, so that new inputs never land in the tree.
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/seeds ${WORK}/found)
if(IS_DIRECTORY ${CORPUS})
  file(COPY ${CORPUS}/ DESTINATION ${WORK}/seeds)
endif()
execute_process(COMMAND ${PROGRAM} -max_total_time=${SECONDS} -rss_limit_mb=2048 -timeout=10 -print_final_stats=1
  -artifact_prefix=${WORK}/ ${WORK}/found ${WORK}/seeds RESULT_VARIABLE rc WORKING_DIRECTORY ${WORK})
if(rc)
  message(FATAL_ERROR "${PROGRAM} failed (${rc}); the input is in ${WORK}")
endif()
