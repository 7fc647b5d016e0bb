/* What sampling a request gets that names none: the model file's general.sampling.* keys, each on its own, else
 * temperature 0.7, top_p 0.8, top_k 20, no penalties: what the models' makers advise for answers without thinking. */
#ifndef S_DEFAULTS_H
#define S_DEFAULTS_H

#include "runtime/engine.h"

/* Q_EINPUT: a key of the file holds no usable value. */
int defaults_sampling(struct q_sampling_params *p, const struct q_engine *en, struct q_err *e);

#endif
