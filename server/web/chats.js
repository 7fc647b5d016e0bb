// The list of conversations at the side: choose, rename, delete, export. On a phone it is a drawer.
import { $, h, button, ask, download } from './dom.js';
import { t } from './strings.js';

export const titleOf = (chat) => chat.title || t('untitled');

/** In the form that the API takes, so that it can be sent again by other means. */
export function exportChat(chat, toRequest) {
    const { title, created, updated } = chat;
    const whole = { format: 'quarry-chat-1', title, created: new Date(created), updated: new Date(updated), messages: toRequest(chat.messages) };
    const name = titleOf(chat).replace(/[^\p{L}\p{N} _-]/gu, '').slice(0, 60).trim() || 'chat';
    download(`${name}.json`, JSON.stringify(whole, null, 2) + '\n', 'application/json');
}

function item(chat, chosen, running, act) {
    const choose = button(titleOf(chat) + (running ? ' …' : ''), () => act.choose(chat), 'choose');
    choose.setAttribute('aria-current', chosen);
    const row = h('li', { className: chosen ? 'chosen' : '' }, choose);
    if (!chosen) return row;
    row.append(h('p', { className: 'buttons small' },
        button(t('rename'), async () => {
            const title = await ask(t('renameAsk'), { value: titleOf(chat) });
            if (title?.trim()) act.rename(chat, title.trim());
        }),
        button(t('exportJson'), () => act.save(chat)),
        button(t('remove'), async () => { if (await ask(t('removeAsk', { title: titleOf(chat) }), { yes: t('remove') })) act.remove(chat); })));
    return row;
}

/** `act`: {choose, rename, save, remove}. */
export function drawChats(chats, chosen, isRunning, act) {
    $('chats').replaceChildren(...chats.map((chat) => item(chat, chat === chosen, isRunning(chat), act)));
}

export function openSide(open) {
    document.body.classList.toggle('side-open', open);
    $('side-open').setAttribute('aria-expanded', open);
    $(open ? 'new' : 'side-open').focus();
}
