/* Memory of the machine that a program may still take. */
#ifndef Q_HOST_MEMORY_H
#define Q_HOST_MEMORY_H

#include <stddef.h>

/* Bytes that the system says are available, within what the program's control group is allowed; SIZE_MAX where neither tells. */
size_t host_memory_available(void);

#endif
