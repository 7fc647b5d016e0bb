// Markdown as models write it, to nodes: paragraphs, headings, lists, quotes, rules, fenced code, tables. No HTML, no pictures,
// nothing that loads from elsewhere: `<b>` is shown as the three characters it is.
//
// An answer grows while it is shown. drawMarkdown() cuts the text into blocks and keeps those that did not change, so that only
// the last one is made anew, and what a reader selected above stays selected.
import { h, copyButton } from './dom.js';
import { inline } from './inline.js';

const ITEM = /^([ \t]*)([-*+]|\d{1,9}[.)])([ \t]+|$)/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const DEEPEST_BLOCK = 8;
// No expression here may try a line in more than one way: lines can be long.
const blank = (line) => line === undefined || /^\s*$/.test(line);

const width = (space) => [...space].reduce((n, c) => n + (c === '\t' ? 4 : 1), 0);
const indent = (line) => width(/^[ \t]*/.exec(line)[0]);

function dedent(line, columns) {
    let i = 0;
    for (let n = 0; n < columns && (line[i] === ' ' || line[i] === '\t'); i++) n += line[i] === '\t' ? 4 : 1;
    return line.slice(i);
}

/** {mark, language} of a line that opens fenced code, or null. */
function fenceOf(line) {
    const m = /^[ \t]*(`{3,}|~{3,})/.exec(line);
    const said = m && line.slice(m[0].length).trim();
    return m && !said.includes('`') ? { mark: m[1], language: said.split(/\s/)[0] } : null;
}

function cells(line) {
    const text = line.trim().replace(/^\|/, '').replace(/\|$/, ''), found = [''];
    for (let i = 0, code = false; i < text.length; i++) {
        if (text[i] === '`') code = !code;
        if (text[i] === '|' && !code && text[i - 1] !== '\\') found.push('');
        else found[found.length - 1] += text[i];
    }
    return found.map((cell) => cell.trim());
}

// ---- where blocks end: each function gets the lines and where its block begins, and returns the line after it ----

function closesFence(line, mark) {
    const text = line.trim();
    return text.length >= mark.length && text === mark[0].repeat(text.length);
}

function fenceEnd(lines, i) {
    const { mark } = fenceOf(lines[i]);
    for (i++; i < lines.length; i++) if (closesFence(lines[i], mark)) return i + 1;
    return lines.length;
}

function quoteEnd(lines, i) {
    while (i < lines.length && /^ {0,3}>/.test(lines[i])) i++;
    return i;
}

const startsTable = (lines, i) => lines[i].includes('|') && lines[i + 1]?.includes('|')
    && cells(lines[i + 1]).every((cell) => /^:?-+:?$/.test(cell));

function tableEnd(lines, i) {
    while (i < lines.length && lines[i].includes('|')) i++;
    return i;
}

const isOrdered = (marker) => /\d/.test(marker);
const sameList = (line, first) => {
    const item = ITEM.exec(line);
    return item && isOrdered(item[2]) === isOrdered(first[2]) && !RULE.test(line);
};

/** Up to a line that is neither indented, nor an item, nor the last paragraph's next line. A fence inside may hold anything. */
function listEnd(lines, i) {
    const first = ITEM.exec(lines[i]), base = width(first[1]);
    let end = i + 1, fence = null;
    for (let k = i; k < lines.length; k++) {
        const line = lines[k], mark = fenceOf(line)?.mark;
        if (fence) {
            if (closesFence(line, fence)) fence = null;
        } else if (blank(line)) {
            continue;
        } else if (indent(line) > base || sameList(line, first)) {
            fence = mark ?? null;
        } else if (blank(lines[k - 1]) || !isParagraph(lines, k)) {
            return end;
        }
        end = k + 1;
    }
    return end;
}

function isParagraph(lines, i) {
    const line = lines[i];
    const item = ITEM.exec(line);
    return !(blank(line) || fenceOf(line) || HEADING.test(line) || RULE.test(line) || /^ {0,3}>/.test(line) || startsTable(lines, i)
        || (item && item[3] && (!isOrdered(item[2]) || parseInt(item[2], 10) === 1)));
}

function paragraphEnd(lines, i) {
    for (i++; i < lines.length && isParagraph(lines, i);) i++;
    return i;
}

/** [kind, first line, line after the last]. */
function nextBlock(lines, i) {
    const line = lines[i];
    if (fenceOf(line)) return ['fence', i, fenceEnd(lines, i)];
    if (HEADING.test(line)) return ['heading', i, i + 1];
    if (RULE.test(line)) return ['rule', i, i + 1];
    if (/^ {0,3}>/.test(line)) return ['quote', i, quoteEnd(lines, i)];
    if (ITEM.test(line)) return ['list', i, listEnd(lines, i)];
    if (startsTable(lines, i)) return ['table', i, tableEnd(lines, i)];
    return ['paragraph', i, paragraphEnd(lines, i)];
}

function blocks(lines) {
    const found = [];
    for (let i = 0; i < lines.length;) {
        if (blank(lines[i])) {
            i++;
            continue;
        }
        const [kind, from, to] = nextBlock(lines, i);
        found.push({ kind, lines: lines.slice(from, to) });
        i = to;
    }
    return found;
}

// ---- what blocks look like ----

function drawFence(lines) {
    const { mark, language } = fenceOf(lines[0]), columns = indent(lines[0]);
    const closed = lines.length > 1 && closesFence(lines.at(-1), mark);
    const code = lines.slice(1, closed ? -1 : undefined).map((line) => dedent(line, columns)).join('\n');
    return h('div', { className: 'code' },
        h('div', { className: 'code-bar' }, h('span', null, language), copyButton(() => code)),
        h('pre', { tabIndex: 0 }, h('code', null, code)));
}

function drawHeading([line]) {
    const level = HEADING.exec(line)[1].length;
    let text = line.replace(HEADING, '').trimEnd(), n = text.length;
    while (text[n - 1] === '#') n--;
    if (n === 0 || text[n - 1] === ' ') text = text.slice(0, n).trimEnd();
    // The page's own title is its h1.
    return h('h' + Math.min(6, level + 1), null, inline(text));
}

function drawTable(lines) {
    const head = cells(lines[0]);
    const align = cells(lines[1]).map((rule) => (rule.endsWith(':') ? (rule.startsWith(':') ? 'center' : 'right') : ''));
    const row = (tag, texts) => h('tr', null, head.map((_, i) => h(tag, { className: align[i] ?? '' }, inline(texts[i] ?? ''))));
    return h('div', { className: 'wide-box', tabIndex: 0 }, h('table', null,
        h('thead', null, row('th', head)), h('tbody', null, lines.slice(2).map((line) => row('td', cells(line))))));
}

function drawList(lines, depth) {
    const first = ITEM.exec(lines[0]), base = width(first[1]), items = [];
    let inside = 0, fence = null;
    for (const line of lines) {
        const item = ITEM.exec(line), mark = fenceOf(line)?.mark;
        if (!fence && item && width(item[1]) <= base && sameList(line, first)) {
            inside = width(item[0]);
            items.push([line.slice(item[0].length)]);
        } else {
            items.at(-1).push(dedent(line, inside));
        }
        if (fence) fence = closesFence(line, fence) ? null : fence;
        else fence = mark ?? null;
    }
    const drawn = items.map((text) => h('li', null, drawItem(text, depth)));
    return isOrdered(first[2]) ? h('ol', { start: parseInt(first[2], 10) }, drawn) : h('ul', null, drawn);
}

/** One paragraph is only its text, so that lists stay tight. */
function drawItem(lines, depth) {
    lines[0] = lines[0].replace(/^\[([ xX])\][ \t]/, (_, c) => (c === ' ' ? '☐ ' : '☑ '));
    const found = blocks(lines);
    if (found[0]?.kind !== 'paragraph') return found.map((block) => draw(block, depth + 1));
    return [...inline(found[0].lines.map((line) => line.trim()).join('\n')), ...found.slice(1).map((block) => draw(block, depth + 1))];
}

function draw({ kind, lines }, depth = 0) {
    if (depth > DEEPEST_BLOCK) return h('p', null, lines.join('\n'));
    switch (kind) {
    case 'fence': return drawFence(lines);
    case 'heading': return drawHeading(lines);
    case 'rule': return h('hr');
    case 'quote': return h('blockquote', null, blocks(lines.map((line) => line.replace(/^ {0,3}> ?/, ''))).map((block) => draw(block, depth + 1)));
    case 'list': return drawList(lines, depth);
    case 'table': return drawTable(lines);
    default: return h('p', null, inline(lines.map((line) => line.trim()).join('\n')));
    }
}

const drawn = new WeakMap(); // element → the source of each of its children

/** Makes `el` show `text`, keeping the blocks that it shows already. */
export function drawMarkdown(el, text) {
    const next = blocks(text.split('\n')), sources = next.map((block) => block.kind + block.lines.join('\n'));
    const old = drawn.get(el) ?? [];
    let same = 0;
    while (same < old.length && old[same] === sources[same]) same++;
    while (el.childNodes.length > same) el.lastChild.remove();
    el.append(...next.slice(same).map((block) => draw(block)));
    drawn.set(el, sources);
}
