// The settings: what they are, their form, and what they put into a request. What is left empty is the server's choice.
import { $, h } from './dom.js';
import { languages, setLanguage, t } from './strings.js';
import { loadKey, loadSettings, saveKey, saveSettings } from './store.js';

const SAMPLING = [
    { name: 'temperature', min: 0, max: 10, step: 'any' },
    { name: 'top_p', min: 0, max: 1, step: 'any' },
    { name: 'top_k', min: -1, max: 1e6, step: 1 },
    { name: 'min_p', min: 0, max: 1, step: 'any' },
    { name: 'max_tokens', min: 1, max: 1e6, step: 1 },
    { name: 'seed', min: 0, max: 2 ** 53 - 1, step: 1 },
];

export const settings = loadSettings();

/** Everything that follows from language and colours at once. */
export function applySettings() {
    setLanguage(settings.language ?? '');
    document.documentElement.dataset.theme = settings.theme ?? '';
}

/** The request's fields. Throws what JSON.parse throws when the tools are none. */
export function requestFields() {
    const fields = {};
    for (const { name } of SAMPLING) if (settings[name] !== undefined) fields[name] = settings[name];
    if (settings.thinking) fields.chat_template_kwargs = { enable_thinking: settings.thinking === 'on' };
    const tools = settings.tools?.trim() ? JSON.parse(settings.tools) : [];
    if (!Array.isArray(tools)) throw new SyntaxError('no list');
    if (tools.length) fields.tools = tools;
    return fields;
}

export function systemMessages() {
    return settings.system?.trim() ? [{ role: 'system', content: settings.system }] : [];
}

/** `value` undefined or '' is the default, which is not kept. */
function set(name, value) {
    if (value === undefined || value === '') delete settings[name];
    else settings[name] = value;
    saveSettings(settings);
}

function labelled(name, field) {
    field.id = `set-${name}`;
    return h('label', { htmlFor: field.id }, h('span', null, t(name)), field);
}

function numberField({ name, min, max, step }) {
    const field = h('input', { type: 'number', inputMode: 'decimal', min, max, step, placeholder: t('byServer'), value: settings[name] ?? '' });
    field.oninput = () => { if (field.validity.valid) set(name, field.value === '' ? '' : Number(field.value)); };
    return labelled(name, field);
}

function choiceField(name, choices, changed = () => {}) {
    const field = h('select', null, choices.map(([value, label]) => h('option', { value }, label)));
    field.value = settings[name] ?? '';
    field.onchange = () => {
        set(name, field.value);
        changed();
    };
    return labelled(name, field);
}

function textField(name, rows) {
    const field = h('textarea', { rows, value: settings[name] ?? '', spellcheck: name === 'system' });
    field.oninput = () => set(name, field.value);
    return labelled(name, field);
}

function keyField() {
    const field = h('input', { type: 'password', autocomplete: 'off', value: loadKey() });
    field.oninput = () => saveKey(field.value.trim());
    return labelled('key', field);
}

/** `changed` is called when texts must be drawn anew. */
export function drawSettings(changed) {
    const focused = document.activeElement?.id;
    const auto = ['', t('auto')];
    $('fields').replaceChildren(
        choiceField('language', [auto, ...Object.entries(languages)], changed),
        choiceField('theme', [auto, ['light', t('light')], ['dark', t('dark')]], changed),
        choiceField('thinking', [auto, ['on', t('on')], ['off', t('off')]]),
        ...SAMPLING.map(numberField),
        textField('system', 3), textField('tools', 2), keyField());
    $('reset').onclick = () => {
        for (const { name } of SAMPLING) set(name, '');
        for (const name of ['thinking', 'system', 'tools']) set(name, '');
        drawSettings(changed);
    };
    if (focused) $(focused)?.focus();
}
