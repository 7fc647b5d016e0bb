// The page: which conversation is shown, what is being answered, and the ways between them.
import { $, button, setChildren } from './dom.js';
import { modelName } from './api.js';
import { emptyAnswer, isEmpty, fetchAnswer, recover, describe } from './answer.js';
import { drawChats, exportChat, openSide, titleOf } from './chats.js';
import { MessageView } from './message.js';
import { applySettings, drawSettings, requestFields, systemMessages } from './settings.js';
import { t, translate } from './strings.js';
import { deleteChat, isChatEntry, loadChats, loadKey, newChat, saveChat } from './store.js';

let chats = loadChats();
let chat = newChat();     // the one that is shown; in `chats` from its first message on
let views = [];                 // of its messages
let follow = true;              // the log sticks to its end
let lastTop = 0;                // where it stood last
const runs = new Map();         // chat → {message, control}: answers on their way

// ---- what the server is sent ----

/** The messages of a conversation as the API takes them. Thinking goes along: whether the model sees it again is the template's choice. */
function toRequest(messages) {
    return messages.map((m) => {
        if (m.role === 'tool') return { role: 'tool', tool_call_id: m.callId, content: m.content };
        const out = { role: m.role, content: m.content };
        if (m.thinking) out.reasoning_content = m.thinking;
        const call = ({ id, name, arguments: text }) => ({ id, type: 'function', function: { name, arguments: text } });
        if (m.calls?.length) out.tool_calls = m.calls.map(call);
        return out;
    });
}

// ---- one line about what is wrong ----

let noticeBy = null;            // whose it is to take back: a conversation's, greet's, or nobody's

/** `of`: the conversation it belongs to; null: all. */
function notice(line, { of = null, by = of, action } = {}) {
    if (of && of !== chat) return;
    noticeBy = by;
    $('notice').replaceChildren(line ?? '', ...(action ? [' ', action] : []));
    $('notice').hidden = !line;
}

function keep(of) {
    of.updated = Date.now();
    const { kept, dropped } = saveChat(of);
    for (const old of dropped) chats = chats.filter((c) => c.id !== old.id);
    if (!kept) notice(t('full'));
    else if (dropped.length) notice(t('dropped', { title: dropped.map(titleOf).join(', ') }));
    if (dropped.length) drawSide();
}

// ---- drawing ----

function drawSide() {
    drawChats(chats, chat, (c) => runs.has(c), { choose, rename, save: (c) => exportChat(c, toRequest), remove });
}

function toEnd() {
    const log = $('log');
    if (follow) log.scrollTop = log.scrollHeight;
    lastTop = log.scrollTop;
    $('down').hidden = follow;
}

/** What a message's buttons may do: only the last question can be changed, only the last answer made again. */
function abilities(i) {
    const { messages } = chat, last = messages.length - 1;
    if (runs.has(chat)) return {};
    const can = {};
    if (messages[i].role === 'user' && messages.findLastIndex((m) => m.role === 'user') === i) can.edit = (text) => resend(i, text);
    if (messages[i].role === 'assistant' && i === last) can.results = (texts) => sendResults(i, texts);
    // A question that was left alone is asked again.
    if (i === last) can.regenerate = () => again(messages[i].role === 'assistant' ? i : i + 1);
    return can;
}

function drawLog() {
    const old = new Map(views.map((view) => [view.message, view])), run = runs.get(chat);
    views = chat.messages.map((m) => old.get(m) ?? new MessageView(m));
    views.forEach((view, i) => view.draw(abilities(i), view.message === run?.message));
    setChildren($('log'), views.map((view) => view.el));
    $('log').dataset.empty = views.length ? '' : t('empty');
    toEnd();
}

/** All that depends on whether an answer is on its way. */
function drawState() {
    const running = runs.has(chat), pressed = [$('send'), $('stop')].includes(document.activeElement);
    $('send').hidden = running;
    $('stop').hidden = !running;
    if (pressed) $(running ? 'stop' : 'send').focus();
    $('log').setAttribute('aria-busy', running);
    $('title').textContent = titleOf(chat);
    document.title = `${titleOf(chat)} · quarry`;
}

function drawAll() {
    applySettings();
    translate(document);
    drawSettings(drawAll);
    views = [];
    drawSide();
    drawLog();
    drawState();
}

/** At most once a frame, however fast tokens come. */
let drawPending = false;
function drawGrown(of) {
    if (of !== chat || drawPending) return;
    drawPending = true;
    requestAnimationFrame(() => {
        drawPending = false;
        const run = runs.get(chat), view = views.at(-1);
        if (run && view?.message === run.message) view.draw({}, true);
        toEnd();
    });
}

// ---- answers ----

/** Asks for an answer to what the conversation ends with. */
async function answer(of) {
    let request;
    try {
        request = { messages: [...systemMessages(), ...toRequest(of.messages)], ...requestFields() };
    } catch {
        notice(t('toolsBad'));
        return;
    }
    const run = { message: emptyAnswer(), control: new AbortController(), saved: Date.now() };
    runs.set(of, run);
    of.messages.push(run.message);
    follow = follow || of === chat;
    show(of);
    const grown = () => {
        if (noticeBy === of) notice(null);
        drawGrown(of);
        if (Date.now() - run.saved < 2000) return;
        run.saved = Date.now();
        keep(of);
    };
    const error = await fetchAnswer(request, run.message, run.control.signal, { grown, say: (line) => notice(line, { of }) });
    finish(of, run, error);
}

function finish(of, run, error) {
    runs.delete(of);
    if (noticeBy === of) notice(null);
    if (isEmpty(run.message) && run.message.finish === 'stopped') of.messages.splice(of.messages.indexOf(run.message), 1);
    if (chats.includes(of)) keep(of);
    show(of);
    const retry = () => {
        if (of.messages.at(-1) === run.message) of.messages.pop();
        notice(null);
        answer(of);
    };
    if (error) notice(describe(error), { of, action: button(t('retry'), retry) });
}

/** Draws `of` if it is the conversation on the screen. */
function show(of) {
    drawSide();
    if (of !== chat) return;
    drawLog();
    drawState();
}

function send(text) {
    if (!text.trim() || runs.has(chat)) return false;
    if (!chat.title) chat.title = text.trim().replace(/\s+/g, ' ').slice(0, 60);
    chat.messages.push({ role: 'user', content: text });
    chats = [chat, ...chats.filter((c) => c !== chat)];
    notice(null);
    keep(chat);
    answer(chat);
    return true;
}

function resend(i, text) {
    chat.messages.length = i;
    send(text);
}

function again(i) {
    chat.messages.length = i;
    notice(null);
    answer(chat);
}

function sendResults(i, texts) {
    chat.messages.push(...chat.messages[i].calls.map((call, k) => ({ role: 'tool', callId: call.id, content: texts[k] })));
    notice(null);
    answer(chat);
}

function stop() {
    runs.get(chat)?.control.abort();
}

// ---- conversations ----

function choose(next) {
    if (document.body.classList.contains('side-open')) openSide(false);
    chat = next;
    follow = true;
    notice(null);
    drawSide();
    drawLog();
    drawState();
}

function rename(of, title) {
    of.title = title;
    keep(of);
    show(of);
}

function remove(of) {
    runs.get(of)?.control.abort();
    deleteChat(of.id);
    chats = chats.filter((c) => c !== of);
    choose(chats[0] ?? newChat());
}

/** Another window of this browser changed something. What is being answered here is newer than what is stored. */
function onStorage({ key }) {
    if (!isChatEntry(key)) return;
    const here = [...runs.keys()];
    const stored = loadChats().filter((c) => !here.some((mine) => mine.id === c.id));
    chats = [...here, ...stored].sort((a, b) => b.updated - a.updated);
    if (chats.includes(chat)) return drawSide();
    const same = chats.find((c) => c.id === chat.id);
    if (same) chat = same;
    show(chat);
}

// ---- the composer ----

function fit() {
    const input = $('input');
    input.style.height = 'auto';
    input.style.height = `${input.scrollHeight + 2}px`;
}

function submit() {
    if (!send($('input').value)) return;
    $('input').value = '';
    fit();
}

/** Enter sends, with shift it is a new line; where there is no shift (fingers) it is always a new line. While an input method
 * composes, as for Hangul, Enter ends the syllable and belongs to it. */
function onKey(event) {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key !== 'Enter' || event.shiftKey || matchMedia('(pointer: coarse)').matches) return;
    event.preventDefault();
    submit();
}

/** Going up, however little, leaves the end: a finger moves by few pixels at a time. Coming down, near the end is enough. */
function onScroll() {
    const log = $('log'), below = log.scrollHeight - log.scrollTop - log.clientHeight;
    if (log.scrollTop < lastTop) follow = below < 2;
    else if (below < 40) follow = true;
    lastTop = log.scrollTop;
    $('down').hidden = follow;
}

function listen() {
    $('composer').onsubmit = (event) => {
        event.preventDefault();
        submit();
        $('input').focus();
    };
    $('input').onkeydown = onKey;
    $('input').oninput = fit;
    $('stop').onclick = stop;
    $('new').onclick = () => choose(newChat());
    $('side-open').onclick = () => openSide(true);
    $('side-close').onclick = $('shade').onclick = () => openSide(false);
    $('settings-open').onclick = () => {
        drawSettings(drawAll);
        $('settings').showModal();
    };
    $('log').onscroll = onScroll;
    // The log is less high while a notice stands below it.
    new ResizeObserver(toEnd).observe($('log'));
    $('down').onclick = () => {
        follow = true;
        toEnd();
    };
    document.addEventListener('keydown', (event) => {
        if (event.key !== 'Escape' || event.isComposing || document.querySelector('dialog[open]')) return;
        if (document.body.classList.contains('side-open')) openSide(false);
        else stop();
    });
    addEventListener('storage', onStorage);
    addEventListener('pagehide', () => { for (const of of runs.keys()) keep(of); });
}

/** Says who answers, once somebody does. */
async function greet() {
    for (;;) {
        try {
            $('model').textContent = await modelName(loadKey());
            if (noticeBy === greet) notice(null);
            return;
        } catch (error) {
            if (await recover(error, null, (line) => notice(line, { by: greet }))) continue;
            notice(describe(error), { by: greet, action: button(t('retry'), greet) });
            return;
        }
    }
}

listen();
drawAll();
greet();
$('input').focus();
