// One answer on its way: chunks into a message, with its times, and what to do about errors: wait and try again while the server is
// busy or loading, ask for the key; anything else ends it.
import { ask, pause } from './dom.js';
import { ApiError, loadingProgress, streamChat } from './api.js';
import { t } from './strings.js';
import { loadKey, saveKey } from './store.js';

export function emptyAnswer() {
    return { role: 'assistant', content: '', thinking: '', thinkMs: 0, calls: [], finish: null, stats: {} };
}

export const isEmpty = (m) => !m.content && !m.thinking && !m.calls.length;

function addCall(message, delta) {
    const call = (message.calls[delta.index ?? 0] ??= { id: '', name: '', arguments: '' });
    call.id = delta.id ?? call.id;
    call.name += delta.function?.name ?? '';
    call.arguments += delta.function?.arguments ?? '';
}

/** Takes chunks; its clock begins when the request is sent. */
class Intake {
    constructor(message) {
        this.message = message;
        this.began = performance.now();
        this.first = null;
    }

    delta(delta) {
        const m = this.message, now = performance.now();
        const said = delta.content || delta.reasoning_content || delta.tool_calls;
        if (said) this.first ??= now;
        if (said) this.last = now;
        if (delta.reasoning_content) {
            m.thinking += delta.reasoning_content;
            m.thinkMs = now - this.first;
        }
        m.content += delta.content ?? '';
        for (const call of delta.tool_calls ?? []) addCall(m, call);
    }

    take(chunk) {
        const choice = chunk.choices?.[0], m = this.message;
        if (choice?.delta) this.delta(choice.delta);
        if (choice?.finish_reason) m.finish = choice.finish_reason;
        if (chunk.usage) this.usage(chunk.usage);
        if (chunk.timings?.predicted_per_second) m.stats.rate = chunk.timings.predicted_per_second;
    }

    /** The server's own rate is better where it tells one: ours has the network in it. */
    usage(usage) {
        const { stats } = this.message, ms = this.last - this.first;
        stats.tokens = usage.completion_tokens;
        stats.prompt = usage.prompt_tokens;
        stats.cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
        if (this.first !== null) stats.firstMs = this.first - this.began;
        if (!stats.rate && stats.tokens > 1 && ms > 0) stats.rate = (1000 * (stats.tokens - 1)) / ms;
    }
}

/** One dialog, however many answers wait for the key. */
let asking = null;
export function askKey() {
    asking ??= ask(t(loadKey() ? 'keyWrong' : 'keyAsk'), { value: '', secret: true }).then((key) => {
        asking = null;
        if (key?.trim()) saveKey(key.trim());
        return Boolean(key?.trim());
    });
    return asking;
}

/** Waits until another try makes sense, telling by say(line); false: it does not. */
export async function recover(error, signal, say) {
    if (error.kind === 'key') return askKey();
    if (error.kind !== 'busy' && error.kind !== 'loading') return false;
    for (let left = error.kind === 'busy' ? error.retryAfter : 1; left > 0; left--) {
        say(error.kind === 'busy' ? t('busy', { seconds: left }) : t('loading', { percent: await loadingProgress() }));
        await pause(1000);
        if (signal?.aborted) throw new DOMException('stopped', 'AbortError');
    }
    return true;
}

export function describe(error) {
    if (error.kind === 'failed') return t('failed', { status: error.status, message: error.message });
    return t({ key: 'keyAsk', gone: 'gone', broken: 'broken' }[error.kind] ?? 'broken');
}

/** Fills `message`. `grown` is called after each chunk, `say` with lines for the user while waiting. Null, or the error that ended it. */
export async function fetchAnswer(request, message, signal, { grown, say }) {
    for (;;) {
        const intake = new Intake(message);
        try {
            await streamChat(request, loadKey(), signal, (chunk) => {
                intake.take(chunk);
                grown();
            });
            return null;
        } catch (error) {
            try {
                if (error instanceof ApiError && isEmpty(message) && await recover(error, signal, say)) continue;
            } catch { /* stopped while waiting */ }
            message.finish = 'stopped';
            return signal.aborted || !(error instanceof ApiError) ? null : error;
        }
    }
}
