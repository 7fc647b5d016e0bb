// The server, asked: requests with the key, errors as one kind, server-sent events. Paths are relative, so that the page works
// behind a proxy that puts it into a folder.

/** `kind`: 'key' (401), 'busy' (429), 'loading' (503), 'gone' (no answer), 'broken' (an answer that ended early), 'failed' (any other). */
export class ApiError extends Error {
    constructor(kind, { status = 0, message = '', retryAfter = 2 } = {}) {
        super(message || kind);
        Object.assign(this, { kind, status, retryAfter });
    }
}

async function errorOf(response) {
    const { status } = response;
    const body = await response.json().catch(() => null);
    const message = body?.error?.message ?? `HTTP ${status}`;
    const retryAfter = Math.min(60, Math.max(1, Number(response.headers.get('Retry-After')) || 2));
    const shuttingDown = body?.error?.code === 'shutting_down';
    const kind = status === 401 ? 'key' : status === 429 ? 'busy' : status === 503 && !shuttingDown ? 'loading' : 'failed';
    return new ApiError(kind, { status, message, retryAfter });
}

/** An aborted request throws what fetch throws: an AbortError. */
async function request(path, key, options = {}) {
    const headers = { ...options.headers };
    if (key) headers.Authorization = `Bearer ${key}`;
    let response;
    try {
        response = await fetch(path, { ...options, headers });
    } catch (error) {
        throw error.name === 'AbortError' ? error : new ApiError('gone');
    }
    if (!response.ok) throw await errorOf(response);
    return response;
}

/** The name of the one model that is served. */
export async function modelName(key) {
    const response = await request('v1/models', key);
    const body = await response.json().catch(() => null);
    return body?.data?.[0]?.id ?? '';
}

/** How far loading is: '' or a percentage. The endpoint answers 503 meanwhile. */
export async function loadingProgress() {
    const body = await fetch('health').then((response) => response.json()).catch(() => null);
    const part = body?.progress;
    return typeof part === 'number' ? `${Math.floor(100 * part)} %` : '';
}

/** The data of each event. Comments, which keep the connection alive, and other fields are passed over. */
async function* events(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '', data = [];
    try {
        for (;;) {
            const { value, done } = await reader.read();
            if (done) return;
            // A CR at the end may be half of a CRLF: it waits for what follows.
            const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
            rest = lines.pop();
            for (const line of lines) {
                if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
                if (line !== '' || !data.length) continue;
                yield data.join('\n');
                data = [];
            }
        }
    } finally {
        reader.cancel().catch(() => {});
    }
}

/** Calls take(chunk) for each chunk of a streamed chat completion. Returns after its last; throws ApiError. */
export async function streamChat(fields, key, signal, take) {
    const body = JSON.stringify({ ...fields, stream: true, stream_options: { include_usage: true } });
    const response = await request('v1/chat/completions', key, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body, signal });
    try {
        for await (const data of events(response.body)) {
            if (data === '[DONE]') return;
            const chunk = JSON.parse(data);
            if (chunk.error) throw new ApiError('failed', { status: chunk.error.code ?? chunk.error.type, message: chunk.error.message });
            take(chunk);
        }
    } catch (error) {
        if (error instanceof ApiError || error.name === 'AbortError') throw error;
    }
    throw new ApiError('broken');
}
