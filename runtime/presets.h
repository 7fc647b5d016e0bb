/* The model shapes known by name. The table is printed by gen/presets.lua out of gen/models/ when quarry is built;
 * config_from_preset is the way to read it. */
#ifndef Q_PRESETS_H
#define Q_PRESETS_H

#include "config.h"

extern const struct q_config q_presets[];
extern const int q_n_presets;

#endif
