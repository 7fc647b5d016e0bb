// Every text the page shows: [English, Korean]. `{name}` is filled in by t().
const strings = {
    // conversations
    newChat: ['New chat', '새 대화'],
    conversations: ['Conversations', '대화 목록'],
    untitled: ['New conversation', '새 대화'],
    rename: ['Rename', '이름 바꾸기'],
    renameAsk: ['Name of this conversation', '이 대화의 이름'],
    remove: ['Delete', '삭제'],
    removeAsk: ['Delete “{title}”? It cannot be brought back.', '“{title}” 대화를 삭제할까요? 되돌릴 수 없습니다.'],
    exportJson: ['Export', '내보내기'],
    kept: ['Conversations are kept in this browser only.', '대화는 이 브라우저에만 저장됩니다.'],
    // the log
    log: ['Messages', '메시지'],
    empty: ['Ask something.', '무엇이든 물어보세요.'],
    you: ['You', '나'],
    assistant: ['Assistant', '모델'],
    toolResult: ['Tool result', '도구 결과'],
    toBottom: ['To the newest message', '맨 아래로'],
    copy: ['Copy', '복사'],
    copied: ['Copied', '복사됨'],
    copyFailed: ['Not copied', '복사 실패'],
    edit: ['Edit', '수정'],
    saveAndSend: ['Send', '보내기'],
    regenerate: ['Regenerate', '다시 생성'],
    thinkingNow: ['Thinking… {seconds} s', '생각 중… {seconds}초'],
    thought: ['Thought for {seconds} s · {n} characters', '{seconds}초 동안 생각함 · {n}자'],
    toolCall: ['Calls {name}', '{name} 호출'],
    sendResults: ['Send results', '결과 보내기'],
    stopped: ['stopped', '중지됨'],
    cut: ['cut off at the token limit', '토큰 한도에서 잘림'],
    statTokens: ['{n} tokens', '토큰 {n}개'],
    statRate: ['{rate} tok/s', '초당 {rate}토큰'],
    statFirst: ['first after {seconds} s', '첫 토큰까지 {seconds}초'],
    statPrompt: ['prompt {n} ({cached} cached)', '프롬프트 {n} (캐시 {cached})'],
    // writing
    message: ['Message', '메시지'],
    messageHint: ['Message', '메시지를 입력하세요'],
    send: ['Send', '보내기'],
    stop: ['Stop', '중지'],
    close: ['Close', '닫기'],
    cancel: ['Cancel', '취소'],
    ok: ['OK', '확인'],
    // settings
    settings: ['Settings', '설정'],
    done: ['Done', '완료'],
    reset: ['Defaults', '기본값으로'],
    byServer: ['default', '기본값'],
    language: ['Language', '언어'],
    theme: ['Colours', '색상'],
    auto: ['Automatic', '자동'],
    light: ['Light', '밝게'],
    dark: ['Dark', '어둡게'],
    on: ['On', '켜기'],
    off: ['Off', '끄기'],
    thinking: ['Thinking', '생각하기'],
    system: ['System prompt', '시스템 프롬프트'],
    temperature: ['Temperature', '온도'],
    top_p: ['Top P', 'Top P'],
    top_k: ['Top K', 'Top K'],
    min_p: ['Min P', 'Min P'],
    max_tokens: ['Longest answer, tokens', '최대 답변 길이(토큰)'],
    seed: ['Seed', '시드'],
    tools: ['Tools (JSON list)', '도구 (JSON 목록)'],
    toolsBad: ['The tools in the settings are not a JSON list.', '설정의 도구가 JSON 목록이 아닙니다.'],
    key: ['API key', 'API 키'],
    // what may go wrong
    keyAsk: ['This server wants an API key. It is kept in this browser.', '이 서버에는 API 키가 필요합니다. 키는 이 브라우저에 저장됩니다.'],
    keyWrong: ['This API key is not known to the server.', '서버가 모르는 API 키입니다.'],
    busy: ['The server is busy; next try in {seconds} s.', '서버가 바쁩니다. {seconds}초 뒤에 다시 시도합니다.'],
    loading: ['The model is being loaded… {percent}', '모델을 불러오는 중… {percent}'],
    gone: ['The server does not answer.', '서버가 응답하지 않습니다.'],
    broken: ['The connection ended before the answer did.', '답변이 끝나기 전에 연결이 끊겼습니다.'],
    failed: ['The server refused ({status}): {message}', '서버가 거절했습니다({status}): {message}'],
    retry: ['Try again', '다시 시도'],
    full: ['The browser’s storage is full: this conversation is not kept.', '브라우저 저장 공간이 가득 차서 이 대화는 저장되지 않습니다.'],
    dropped: ['To make room, the oldest conversation was deleted: {title}', '공간을 확보하려고 가장 오래된 대화를 삭제했습니다: {title}'],
};

export const languages = { en: 'English', ko: '한국어' };
let column = 0;

/** `code` '' is the browser's own language. */
export function setLanguage(code) {
    const lang = code || (navigator.language.startsWith('ko') ? 'ko' : 'en');
    column = lang === 'ko' ? 1 : 0;
    document.documentElement.lang = lang;
}

export function t(key, values = {}) {
    return strings[key][column].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** Fills in what the page's own HTML names: data-t is a text, data-label what is said of a thing that shows no text, data-hint a placeholder. */
export function translate(root) {
    for (const el of root.querySelectorAll('[data-t]')) el.textContent = t(el.dataset.t);
    for (const el of root.querySelectorAll('[data-label]')) {
        el.setAttribute('aria-label', t(el.dataset.label));
        if (el.localName === 'button') el.title = t(el.dataset.label);
    }
    for (const el of root.querySelectorAll('[data-hint]')) el.placeholder = t(el.dataset.hint);
}
