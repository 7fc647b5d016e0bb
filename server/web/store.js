// What the browser keeps: one entry a conversation, one for the settings, one for the key. Without a working localStorage
// (private windows, full disks) the page works the same and forgets when it is closed.
//
// A conversation: {id, title, created, updated (ms), messages}. A message: {role, content} and, of an answer, {thinking, thinkMs,
// calls: [{id, name, arguments}], finish, stats}; role 'tool' has {callId} too.

const CHAT = 'quarry.chat.', SETTINGS = 'quarry.settings', KEY = 'quarry.key';
// Browsers give a site about five million characters.
const MOST = 4_000_000;

class Memory extends Map {
    getItem(name) { return this.get(name) ?? null; }

    setItem(name, text) { this.set(name, text); }

    removeItem(name) { this.delete(name); }
}

function findStorage() {
    try {
        localStorage.setItem('quarry.try', '1');
        localStorage.removeItem('quarry.try');
        return localStorage;
    } catch {
        return new Memory();
    }
}

const storage = findStorage();
const names = () => (storage instanceof Memory ? [...storage.keys()] : Object.keys(storage)).filter((name) => name.startsWith(CHAT));

function parse(text) {
    try {
        return JSON.parse(text);
    } catch {
        return null;
    }
}

function isMessage(m) {
    return ['user', 'assistant', 'tool'].includes(m?.role) && typeof m.content === 'string' && (m.calls === undefined || Array.isArray(m.calls));
}

function isChat(chat) {
    return typeof chat?.id === 'string' && typeof chat.title === 'string' && Array.isArray(chat.messages) && chat.messages.every(isMessage);
}

/** All of them, the one used last first. Damaged entries are left alone and not shown. */
export function loadChats() {
    return names().map((name) => parse(storage.getItem(name))).filter(isChat).sort((a, b) => b.updated - a.updated);
}

export function newChat() {
    const now = Date.now();
    return { id: `${now.toString(36)}-${Math.random().toString(36).slice(2, 8)}`, title: '', created: now, updated: now, messages: [] };
}

const size = () => names().reduce((n, name) => n + storage.getItem(name).length, 0);

/** {kept, dropped}: whether it was stored, and the conversations that were deleted for it, the oldest first. */
export function saveChat(chat) {
    const name = CHAT + chat.id, text = JSON.stringify(chat), dropped = [];
    if (text.length > MOST) return { kept: false, dropped };
    const others = loadChats().filter((other) => other.id !== chat.id);
    let room = MOST - text.length - size() + (storage.getItem(name)?.length ?? 0);
    for (;;) {
        if (room >= 0) {
            try {
                storage.setItem(name, text);
                return { kept: true, dropped };
            } catch { /* another page of this site fills it: make more room */ }
        }
        const oldest = others.pop();
        if (!oldest) return { kept: false, dropped };
        room += storage.getItem(CHAT + oldest.id).length;
        deleteChat(oldest.id);
        dropped.push(oldest);
    }
}

export function deleteChat(id) {
    storage.removeItem(CHAT + id);
}

export const isChatEntry = (name) => name === null || name.startsWith(CHAT);

export function loadSettings() {
    return parse(storage.getItem(SETTINGS)) ?? {};
}

function put(name, text) {
    try {
        if (text) storage.setItem(name, text);
        else storage.removeItem(name);
    } catch { /* it holds until the page is closed */ }
}

export const saveSettings = (settings) => put(SETTINGS, JSON.stringify(settings));
export const loadKey = () => storage.getItem(KEY) ?? '';
export const saveKey = (key) => put(KEY, key);
