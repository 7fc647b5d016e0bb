/* The verbs of the `quarry` program. Each reads its own arguments (argv[0] is the verb), writes results to stdout, facts
 * and errors to stderr, and returns the exit status: 0 done, 1 failed, 2 wrong usage. main.c holds the table. */
#ifndef Q_CMD_H
#define Q_CMD_H

int cmd_run(int argc, char **argv);
int cmd_chat(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_bench_url(int argc, char **argv);   /* bench with --url among its arguments */
/* The key of servers that are talked to, from the environment: QUARRY_API_KEY, or NULL. */
const char *cmd_api_key(void);
int cmd_show(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

#endif
