#include "absent.h"
#include <string.h>

static const struct {
    const char *path;        /* a path that ends with '*' stands for all that begin so */
    const char *why;
} table[] = {
    {"embedding*", "embeddings are not supported: this server generates text"},
    {"rerank*", "reranking is not supported: this server generates text"},
    {"score", "scoring is not supported: this server generates text"},
    {"classify", "classification is not supported: this server generates text"},
    {"pooling", "embeddings are not supported: this server generates text"},
    {"audio/*", "audio is not supported: this server reads and writes text"},
    {"realtime*", "realtime sessions are not supported: stream a chat completion instead"},
    {"images/*", "images are not made here: this server generates text"},
    {"videos*", "videos are not made here: this server generates text"},
    {"moderations", "moderation is not supported: this server generates text"},
    {"files*", "files are not stored here: send their text in the messages"},
    {"uploads*", "files are not stored here: send their text in the messages"},
    {"batches*", "batches are not supported: send the requests at once, they share the engine"},
    {"messages/batches*", "batches are not supported: send the requests at once, they share the engine"},
    {"fine_tuning/*", "fine-tuning is not supported: this server runs models as they are"},
    {"vector_stores*", "vector stores are not supported: this server keeps nothing"},
    {"assistants*", "assistants are not supported: this server keeps nothing; use chat completions"},
    {"threads*", "threads are not supported: this server keeps nothing; use chat completions"},
    {"conversations*", "conversations are not supported: this server keeps nothing; use chat completions"},
    {"completion", "llama.cpp's own form is not spoken here: use /v1/completions, with max_tokens for n_predict"},
    {"infill", "fill-in-the-middle is not supported: put its control tokens into /v1/completions"},
    {"lora-adapters", "adapters are not supported"},
    {"load_lora_adapter", "adapters are not supported"},
    {"unload_lora_adapter", "adapters are not supported"},
    {"models/load", "one model is served, named at start"},
    {"models/unload", "one model is served, named at start"},
    {"api/*", "Ollama's protocol is not spoken here: use /v1/chat/completions"},
};

static int matches(const char *pattern, const char *path)
{
    size_t n = strlen(pattern);
    return pattern[n - 1] == '*' ? !strncmp(pattern, path, n - 1) : !strcmp(pattern, path);
}

const char *absent_why(const char *path)
{
    path += *path == '/';
    if (!strncmp(path, "v1/", 3)) path += 3;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (matches(table[i].path, path)) return table[i].why;
    return NULL;
}
