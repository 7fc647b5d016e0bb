/* The gate's short texts, in the order of its units (gate_texts.c): half of them Korean, then Japanese, Chinese, English, code and tool
 * calls; the long ones (gate_long.c) stand where they are read. All sentences were written for this purpose.
 *
 * Some end where an answer begins, as a chat template writes it, others in the middle of a sentence: so the first choices are sometimes
 * sure and sometimes not. */
#include "gate_texts.h"

#define SYSTEM(text) "<|im_start|>system\n" text "<|im_end|>\n"
#define USER(text) "<|im_start|>user\n" text "<|im_end|>\n"
#define ASSISTANT(text) "<|im_start|>assistant\n" text "<|im_end|>\n"
#define ANSWER "<|im_start|>assistant\n<think>\n\n</think>\n\n"
#define TOOLS(list) "# Tools\n\nYou have access to the following functions:\n\n<tools>\n" list "\n</tools>\n\nIf you call a function, answer as follows:\n\n" \
    "<tool_call>\n<function=name>\n<parameter=name>\nvalue\n</parameter>\n</function>\n</tool_call>"

const struct gate_corpus gate_corpus[] = {
    { "ko-facts", USER("우리나라에서 가장 긴 강은 무엇이고, 어디에서 시작해 어디로 흘러갑니까? 두 문장으로 답해 주세요.") ANSWER },

    { "ko-chat", SYSTEM("당신은 친절한 도서관 사서입니다. 짧고 분명하게 답합니다.")
                 USER("빌린 책을 잃어버렸어요. 어떻게 해야 하나요?")
                 ASSISTANT("먼저 도서관에 알려 주세요. 같은 책을 사서 가져오시거나, 책값을 내시면 됩니다.")
                 USER("그 책은 이제 서점에서 팔지 않는다고 해요. 그럼 어떻게 하죠?") ANSWER },
    { "ja-facts", USER("梅雨とは何ですか。いつごろ始まり、どのくらい続きますか。小学生にも分かるように説明してください。") ANSWER },
    { "en-facts", USER("Why does bread dough rise, and why does it stop rising when it is baked? Explain it to a ten-year-old.") ANSWER },

    { "ko-register", 0 },

    { "ko-story", "겨울이 끝나갈 무렵, 할머니는 다락방에서 낡은 상자 하나를 꺼내 오셨다. 상자 안에는 빛이 바랜 편지와 작은 열쇠가 들어 있었다. "
                  "\"이 열쇠는 네 할아버지가 만드신 거란다.\" 할머니는 한참 동안 창밖을 바라보시다가 말씀을 이으셨다. \"그해 봄에 우리는 바닷가 마을에 살았는데," },
    { "c-list", "/* A list of intervals [from, to), sorted, none touching another. */\n"
                "struct interval {\n    long from, to;\n    struct interval *next;\n};\n\n"
                "/* Adds [from, to) and joins what touches it. Returns the new head; `fresh` is used or left alone. */\n"
                "struct interval *interval_add(struct interval *head, struct interval *fresh, long from, long to)\n{\n"
                "    struct interval **at = &head;\n    while (*at && (*at)->to < from)\n        at = &(*at)->next;\n    if (!*at || (*at)->from > to) {\n" },

    { "ko-recipe", USER("두부 한 모, 애호박 반 개, 달걀 두 개, 대파 한 대가 있습니다. 매운 것을 못 먹는 아이와 함께 먹을 저녁 반찬을 하나 정하고, 만드는 순서를 번호로 적어 주세요.") ANSWER },
    { "zh-facts", USER("请用三句话说明为什么秋天树叶会变黄，并举两个在城市里常见的例子。") ANSWER },
    { "tool-call", SYSTEM(TOOLS("{\"name\": \"find_train\", \"description\": \"Trains between two stations\", \"parameters\": {\"type\": \"object\", \"properties\": "
                                "{\"from\": {\"type\": \"string\"}, \"to\": {\"type\": \"string\"}, \"after\": {\"type\": \"string\"}}, \"required\": [\"from\", \"to\"]}}"))
                   USER("I have to be in Busan before noon tomorrow. Which train from Daejeon should I take?")
                   "<|im_start|>assistant\n<think>\n\n</think>\n\n<tool_call>\n<function=find_train>\n<parameter=from>\n" },
    { "ko-sum", USER("민지는 사과 스물네 개를 샀습니다. 세 친구에게 다섯 개씩 나누어 주고, 남은 사과의 3분의 1로 잼을 만들었습니다. 지금 남은 사과는 몇 개입니까? 풀이를 차례로 쓰세요.") ANSWER },

    { "ko-letter", "보낸 사람: 관리사무소\n받는 사람: 302동 입주민\n제목: 수도관 교체 공사 안내\n\n안녕하십니까. 다음 주 화요일 오전 9시부터 오후 4시까지 지하 수도관을 교체합니다. "
                   "공사하는 동안에는 물이 나오지 않으니 미리 받아 두시기 바랍니다. 또한" },
    { "ko-news", "남해안의 작은 섬 마을에 삼십 년 만에 새 학교가 문을 열었다. 학생은 모두 열한 명이고, 교사는 세 명이다. 교장은 개교식에서 \"아이들이 바다를 건너지 않고도 배울 수 있게 되었다\"고 말했다. 주민들은" },
    { "ja-mail", "件名：会議の日程変更について\n\n営業部の皆様\n\nお疲れ様です。来週木曜日に予定しておりました月例会議ですが、会場の都合により、金曜日の午後二時からに変更いたします。資料につきましては、" },
    { "zh-story", "老陈在巷口修了四十年的自行车。每天早上六点，他把工具箱搬到那棵槐树下，先烧一壶水，再等第一个客人。那天来的是一个背着书包的小姑娘，她说：“" },
    { "en-story", "The lighthouse keeper had two rules: never let the lamp go out, and never open the green door. For nineteen years she kept both. "
                  "On the night of the great storm the lamp went out, and when she ran down the stairs to fetch oil, the green door stood" },
    { "py-table", "import csv\nfrom collections import defaultdict\n\n\ndef monthly_totals(path):\n    \"\"\"Sums of column `amount` by month, from a CSV file with columns `date` "
                  "(2024-05-31) and `amount`.\n\n    Rows whose amount is empty are left out; a wrong date raises ValueError with the line's number.\n    \"\"\"\n"
                  "    totals = defaultdict(float)\n    with open(path, newline=\"\", encoding=\"utf-8\") as f:\n" },
    { "tool-answer", SYSTEM(TOOLS("{\"name\": \"weather\", \"parameters\": {\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\"}}}}"))
                     USER("제주도에 내일 우산을 가져가야 할까?")
                     "<|im_start|>assistant\n<tool_call>\n<function=weather>\n<parameter=city>\n제주\n</parameter>\n</function>\n</tool_call><|im_end|>\n"
                     "<|im_start|>user\n<tool_response>\n{\"city\": \"제주\", \"tomorrow\": {\"rain_mm\": 14, \"wind_kmh\": 38, \"high\": 17}}\n</tool_response><|im_end|>\n" ANSWER },
    { "ko-dialog", "가: 이번 주말에 시간 있어요?\n나: 토요일은 괜찮아요. 왜요?\n가: 뒷산에 단풍이 한창이래요. 도시락 싸서 같이 가요.\n나: 좋아요. 그런데 저는 무릎이 조금 아파서" },

    { "ko-rules", "제1조(목적) 이 규칙은 마을 공동 텃밭의 이용에 필요한 사항을 정함을 목적으로 한다.\n제2조(이용 자격) 텃밭은 마을에 주소를 둔 사람이 이용할 수 있다. 한 가구는 한 구획만 이용한다.\n"
                  "제3조(이용 기간) 이용 기간은 매년 3월 1일부터 11월 30일까지로 한다.\n제4조(금지 사항) 이용자는 다음 각 호의 행위를 하여서는 아니 된다.\n1. 농약을 뿌리는 행위\n2." },

    { "ko-diary", 0 },
    { "mixed", 0 },
};

const int gate_corpus_n = sizeof gate_corpus / sizeof *gate_corpus;
