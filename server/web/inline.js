// Markdown inside a line: code, emphasis, links. Returns nodes; whatever is not understood stays the text it is.
//
// Model text is long and hostile at times, so time must stay linear: every search is bounded, or remembers that it failed (a
// closing mark that is not found from here is not found from further on either), and nesting stops at a depth.
import { h } from './dom.js';

const MARKS = /\\[!-/:-@[-`{-~]|`+|\*+|_+|~~|!?\[|\n|https?:\/\/[\x21-\x7e]{1,2000}/g;
const DEEPEST = 6;
const LONGEST_LABEL = 500;
const LONGEST_URL = 4000;
const isWord = (c) => c !== undefined && /[\p{L}\p{N}]/u.test(c);
const isSpace = (c) => c === undefined || /\s/.test(c);

/** Other schemes (javascript:, data:, file: …) are not links. */
function link(url, children) {
    if (!/^(https?:\/\/|mailto:)/i.test(url)) return null;
    return h('a', { href: url, rel: 'noopener noreferrer nofollow', target: '_blank' }, children);
}

/** Where the run of exactly `n` backticks begins that closes one before `from`; -1. */
function closeCode(text, from, n) {
    const runs = /`+/g;
    runs.lastIndex = from;
    for (let m; (m = runs.exec(text));) if (m[0].length === n) return m.index;
    return -1;
}

/** The same for emphasis by `n` of `mark`, passing over code. After a space or inside a word_with_lines nothing closes. */
function closeEmphasis(text, from, mark, n) {
    const runs = mark === '~' ? /`+|~~/g : mark === '*' ? /`+|\*+/g : /`+|_+/g;
    runs.lastIndex = from;
    for (let m; (m = runs.exec(text));) {
        const end = m.index + m[0].length;
        if (m[0][0] === '`') {
            const close = closeCode(text, end, m[0].length);
            if (close >= 0) runs.lastIndex = close + m[0].length;
        } else if (m[0].length >= n && (n > 1 || m[0].length !== 2) && m.index > from) {
            if (!isSpace(text[m.index - 1]) && !(mark === '_' && isWord(text[end]))) return end - n;
        }
    }
    return -1;
}

/** `[label](url)` from the bracket at `at`: {label, url, end} or null. */
function readLink(text, at) {
    let depth = 0, close = at;
    const last = Math.min(text.length, at + LONGEST_LABEL);
    for (; close < last; close++) {
        if (text[close] === '[') depth++;
        else if (text[close] === ']' && --depth === 0) break;
    }
    if (close >= last || text[close + 1] !== '(') return null;
    const inside = /^\(\s*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)/.exec(text.slice(close + 1, close + LONGEST_URL));
    return inside && { label: text.slice(at + 1, close), url: inside[1], end: close + 1 + inside[0].length };
}

class Reader {
    constructor(text, depth) {
        this.text = text;
        this.depth = depth;
        this.nodes = [];
        this.at = 0;        // up to here all is in nodes
        this.failed = new Set();
    }

    put(from, to, node) {
        if (from > this.at) this.nodes.push(this.text.slice(this.at, from));
        if (node) this.nodes.push(node);
        this.at = to;
    }

    code(at, run) {
        const n = run.length, key = '`' + n;
        const close = this.failed.has(key) ? -1 : closeCode(this.text, at + n, n);
        if (close < 0) {
            this.failed.add(key);
            return at + n;
        }
        const inside = this.text.slice(at + n, close);
        this.put(at, close + n, h('code', null, /^ .*[^ ].* $/s.test(inside) ? inside.slice(1, -1) : inside));
        return this.at;
    }

    emphasis(at, run) {
        const mark = run[0], n = mark === '~' ? 2 : Math.min(run.length, 3), key = mark + n, from = at + run.length;
        if (this.failed.has(key) || isSpace(this.text[from]) || (mark === '_' && isWord(this.text[at - 1]))) return from;
        const close = closeEmphasis(this.text, from, mark, n);
        if (close < 0) {
            this.failed.add(key);
            return from;
        }
        const inside = inline(this.text.slice(from, close), this.depth + 1);
        const node = mark === '~' ? h('del', null, inside) : n === 1 ? h('em', null, inside) : n === 2 ? h('strong', null, inside)
            : h('strong', null, h('em', null, inside));
        this.put(from - n, close + n, node);
        return this.at;
    }

    link(at, mark) {
        const found = readLink(this.text, at + mark.length - 1);
        const node = found && link(found.url, inline(found.label || found.url, this.depth + 1));
        if (!node) return at + mark.length;
        this.put(at, found.end, node);
        return this.at;
    }

    /** Punctuation after an address belongs to the sentence, and so does a bracket that the address did not open. */
    address(at, url) {
        url = url.replace(/[<>"`].*$/, '');
        let n = url.length;
        while (/[.,;:!?'*_~\]]/.test(url[n - 1]) || (url[n - 1] === ')' && !url.slice(0, n).includes('('))) n--;
        this.put(at, at + n, link(url.slice(0, n), url.slice(0, n)));
        return this.at;
    }

    mark(at, m) {
        if (m[0] === '\\') this.put(at, at + 2, m[1]);
        else if (m === '\n') this.put(at, at + 1, h('br'));
        else if (m[0] === '`') return this.code(at, m);
        else if (m[0] === 'h') return this.address(at, m);
        else if (m.endsWith('[')) return this.link(at, m);
        else return this.emphasis(at, m);
        return this.at;
    }
}

export function inline(text, depth = 0) {
    if (depth > DEEPEST) return [text];
    const r = new Reader(text, depth);
    MARKS.lastIndex = 0;
    for (let m; (m = MARKS.exec(text));) {
        // The expression is shared with the nested calls.
        const next = r.mark(m.index, m[0]);
        MARKS.lastIndex = next;
    }
    r.put(text.length, text.length);
    return r.nodes;
}
