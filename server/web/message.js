// How one message looks. An answer is drawn again and again while it grows; draw() changes only what is new.
import { h, button, copyButton } from './dom.js';
import { drawMarkdown } from './markdown.js';
import { t } from './strings.js';

const seconds = (ms) => (ms / 1000).toFixed(1);

/** The numbers below an answer, as far as they are known. */
function statsLine({ stats, finish }) {
    const parts = [];
    if (finish === 'stopped') parts.push(t('stopped'));
    if (finish === 'length') parts.push(t('cut'));
    if (stats?.tokens !== undefined) parts.push(t('statTokens', { n: stats.tokens }));
    if (stats?.rate) parts.push(t('statRate', { rate: stats.rate.toFixed(1) }));
    if (stats?.firstMs !== undefined) parts.push(t('statFirst', { seconds: seconds(stats.firstMs) }));
    if (stats?.prompt !== undefined) parts.push(t('statPrompt', { n: stats.prompt, cached: stats.cached ?? 0 }));
    return parts.join(' · ');
}

/** Arguments as they came, indented where they are whole JSON. Numbers keep their digits: nothing is parsed and printed unless it stays the same. */
function shownArguments(text) {
    try {
        const value = JSON.parse(text);
        return JSON.stringify(value) === text.replace(/\s*([{}[\]:,])\s*/g, '$1') ? JSON.stringify(value, null, 2) : text;
    } catch {
        return text;
    }
}

class CallView {
    constructor() {
        this.name = h('summary');
        this.text = h('code');
        this.el = h('details', { className: 'call' }, this.name, h('pre', { tabIndex: 0 }, this.text));
    }

    draw(call) {
        this.name.textContent = t('toolCall', { name: call.name });
        this.text.textContent = shownArguments(call.arguments);
    }
}

class AnswerView {
    constructor(message) {
        this.message = message;
        this.thoughtHead = h('summary');
        this.thoughtText = h('div', { className: 'plain' });
        this.thought = h('details', { className: 'thought', hidden: true }, this.thoughtHead, this.thoughtText);
        this.content = h('div', { className: 'content' });
        this.calls = h('div');
        this.callViews = [];
        this.stats = h('p', { className: 'dim stats' });
        this.el = h('div', null, this.thought, this.content, this.calls, this.stats);
    }

    drawThought(running) {
        const { thinking = '', thinkMs = 0, content, calls } = this.message;
        const still = running && !content && !calls?.length;
        this.thought.hidden = !thinking;
        if (this.thoughtShown !== thinking.length) {
            this.thoughtShown = thinking.length;
            this.thoughtText.textContent = thinking;
            this.characters = [...thinking].length;
        }
        this.thoughtHead.textContent = t(still ? 'thinkingNow' : 'thought', { seconds: seconds(thinkMs), n: this.characters });
    }

    draw(running) {
        this.drawThought(running);
        drawMarkdown(this.content, this.message.content);
        for (const [i, call] of (this.message.calls ?? []).entries()) {
            this.callViews[i] ??= new CallView();
            this.callViews[i].draw(call);
            this.calls.append(this.callViews[i].el);
        }
        this.stats.textContent = running ? '' : statsLine(this.message);
        this.el.classList.toggle('running', running);
    }
}

/** Replaces the text by a field; `send(text)` gets what was written. */
function editInPlace(body, text, send, back) {
    const field = h('textarea', { value: text, rows: Math.min(12, text.split('\n').length + 1), 'aria-label': t('edit') });
    body.replaceChildren(field, h('p', { className: 'buttons' },
        button(t('cancel'), back), button(t('saveAndSend'), () => { if (field.value.trim()) send(field.value); }, 'main')));
    field.focus();
}

/** Fields for what the called tools would say. */
function resultForm(calls, send) {
    const label = (call) => `${t('toolResult')}: ${call.name}`;
    const fields = calls.map((call) => h('textarea', { rows: 1, 'aria-label': label(call), placeholder: label(call) }));
    return h('div', { className: 'results' }, fields,
        h('p', { className: 'buttons' }, button(t('sendResults'), () => send(fields.map((field) => field.value)), 'main')));
}

export class MessageView {
    constructor(message) {
        this.message = message;
        const { role } = message;
        this.answer = role === 'assistant' ? new AnswerView(message) : null;
        this.body = this.answer?.el ?? h('div', { className: 'plain' }, message.content);
        this.buttons = h('p', { className: 'buttons small' });
        this.foot = h('div');
        const who = t({ user: 'you', assistant: 'assistant', tool: 'toolResult' }[role]);
        this.el = h('article', { className: `message ${role}`, 'aria-label': who }, role === 'tool' ? h('p', { className: 'dim' }, who) : null,
            this.body, this.buttons, this.foot);
    }

    startEdit() {
        this.buttons.hidden = true;
        editInPlace(this.body, this.message.content, (text) => this.can.edit?.(text), () => {
            this.body.replaceChildren(this.message.content);
            this.buttons.hidden = false;
        });
    }

    /** `can`: {edit(text), regenerate(), results(texts)}, each only where it is possible. */
    draw(can, running) {
        this.can = can;
        this.answer?.draw(running);
        const { message } = this, buttons = [];
        if (message.content) buttons.push(copyButton(() => message.content));
        if (can.edit) buttons.push(button(t('edit'), () => this.startEdit()));
        if (can.regenerate) buttons.push(button(t(this.answer ? 'regenerate' : 'retry'), can.regenerate));
        this.buttons.replaceChildren(...(running ? [] : buttons));
        this.foot.replaceChildren(...(!running && can.results && message.calls?.length ? [resultForm(message.calls, can.results)] : []));
    }
}
