// Elements by function calls. Text only ever becomes text nodes: nothing on this page is parsed as HTML after it was loaded.
import { t } from './strings.js';

export const $ = (id) => document.getElementById(id);

/** Properties are set as such (onclick, className, hidden …), names with a dash and `role` as attributes; children: nodes, strings, null, lists. */
export function h(tag, props, ...children) {
    const el = document.createElement(tag);
    for (const [name, value] of Object.entries(props ?? {})) {
        if (name.includes('-') || name === 'role') el.setAttribute(name, value);
        else el[name] = value;
    }
    el.append(...children.flat().filter((child) => child != null));
    return el;
}

export function button(label, onclick, className = '') {
    return h('button', { type: 'button', className, onclick }, label);
}

/** The clipboard's interface exists only on https and localhost; a page on the local net has the old way. */
async function copyText(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const area = h('textarea', { value: text, className: 'away' });
    (document.querySelector('dialog[open]') ?? document.body).append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    if (!done) throw new Error('not copied');
}

export function copyButton(text) {
    const b = button(t('copy'), async () => {
        b.textContent = await copyText(text()).then(() => t('copied'), () => t('copyFailed'));
        setTimeout(() => { b.textContent = t('copy'); }, 1500);
    }, 'copy');
    return b;
}

/** Asks in a dialog. `value` undefined: yes or no (true or null); else a line of text (string or null). */
export function ask(question, { value, secret, yes = t('ok') } = {}) {
    const field = value === undefined ? null : h('input', { value, type: secret ? 'password' : 'text', autocomplete: 'off', 'aria-label': question });
    const dialog = h('dialog', { 'aria-label': question },
        h('form', { method: 'dialog' },
            h('p', null, question), field,
            h('p', { className: 'buttons' }, button(t('cancel'), () => dialog.close()), h('button', { className: 'main', value: 'yes' }, yes))));
    document.body.append(dialog);
    dialog.showModal();
    return new Promise((resolve) => {
        dialog.onclose = () => {
            dialog.remove();
            resolve(dialog.returnValue !== 'yes' ? null : field ? field.value : true);
        };
    });
}

/** Makes `els` the children of `el` and leaves those alone that are in their place, so that scrolling and selection stay. */
export function setChildren(el, els) {
    els.forEach((child, i) => { if (el.childNodes[i] !== child) el.insertBefore(child, el.childNodes[i] ?? null); });
    while (el.childNodes.length > els.length) el.lastChild.remove();
}

/** Hands a file to the user. */
export function download(name, text, type) {
    const url = URL.createObjectURL(new Blob([text], { type }));
    h('a', { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
