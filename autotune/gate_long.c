/* The gate's long texts: entries and paragraphs that follow one another by a fixed rule, and a question about one of them at the end. What is
 * asked lies far back, so attention over all of it and the delta net's whole state are needed for the answer.
 *
 * Lists have lengths without a common factor, and each is gone through in a stride of its own: no entry comes twice in a text. */
#define _GNU_SOURCE
#include "gate_texts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
#define ANSWER "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"

/* A number of four digits for entry i, nothing that can be guessed. */
static int code_of(int i) { return 1000 + (int)((unsigned)(i + 1) * 2654435761u >> 8) % 9000; }

/* --- a register of parcels, in Korean ---------------------------------------------------------------------------------- */

static const char *const senders[] = { "한빛 서점", "골목 빵집", "푸른 약국", "새마을 철물점", "은하 문구", "대청 과일", "솔밭 찻집" };
static const char *const goods[] = { "참기름 두 병", "겨울 이불", "아이 신발", "말린 표고", "벽시계", "붓과 먹", "감자 한 상자", "자전거 바퀴", "유리 꽃병", "쌀 십 킬로그램", "사전 세 권" };
static const char *const people[] = { "김순영", "박도현", "이하늘", "최만수", "정유진", "오세라", "한지훈", "윤봄이", "강태오", "서미래", "문정숙", "임가람", "노을기" };
static const char *const places[] = { "정문 옆", "이층 복도", "경비실", "창고 뒤", "우편함 아래" };

static void parcels(FILE *f, int n)
{
    fputs("<|im_start|>user\n아래는 우리 아파트의 택배 장부입니다.\n\n", f);
    for (int i = 0; i < n; i++) {
        fprintf(f, "%d번: %s에서 %s 씨에게 %s. ", i + 1, senders[i * 3 % COUNT(senders)], people[i * 5 % COUNT(people)], goods[i * 4 % COUNT(goods)]);
        fprintf(f, i % 3 == 2 ? "받는 이가 없어 %s에 두었고, 확인 번호는 %d.\n" : "%s에 두었다. 확인 번호 %d.\n", places[i * 2 % COUNT(places)], code_of(i));
    }
    fprintf(f, "\n%d번 택배는 누가 받을 것이며, 확인 번호는 몇입니까?" ANSWER, n / 5 + 1);
}

/* --- a diary, in Korean ------------------------------------------------------------------------------------------------ */

static const char *const weathers[] = { "맑음", "비", "흐림", "안개", "눈", "바람", "소나기" };
static const char *const mornings[] = {
    "새벽에 닭이 울기 전에 일어나 마당을 쓸었다. 감나무 잎이 밤새 많이 떨어져 있었다.",
    "아침에 우체부가 와서 누나의 편지를 주고 갔다. 서울은 벌써 춥다고 한다.",
    "어머니와 함께 장에 갔다. 고등어 두 마리와 무 세 개를 사고, 남은 돈으로 연필을 샀다.",
    "물이 끊겨서 우물까지 세 번이나 다녀왔다. 돌아오는 길에 물을 반이나 쏟았다.",
    "학교에서 지도를 그렸다. 나는 산맥을 갈색으로, 강을 파란색으로 칠했다.",
    "아버지가 배를 고치시는 것을 도왔다. 못을 드리고 톱밥을 쓸어 모았다.",
    "기차 소리에 잠이 깼다. 처음 보는 긴 화물차가 다리를 천천히 건너고 있었다.",
    "이웃집 송아지가 울타리를 넘어와 배추를 먹었다. 주인이 미안하다며 감자를 가져왔다.",
};
static const char *const evenings[] = {
    "저녁에는 모두 둘러앉아 옥수수를 먹으며 옛날이야기를 들었다.",
    "해가 지고 나서 동생과 반딧불이를 보러 개울까지 걸었다.",
    "밤에는 바람이 세게 불어 문풍지가 울었고, 나는 쉽게 잠들지 못했다.",
    "숙제를 마치고 라디오를 켰는데, 내일은 기온이 더 내려간다고 했다.",
    "할아버지가 바둑을 가르쳐 주셨다. 아홉 점을 깔고도 졌다.",
    "등잔불 아래에서 책을 읽다가 그대로 엎드려 잠이 들었다.",
    "마을 회관에서 영화를 보여 주었다. 화면이 두 번이나 끊겼지만 아무도 집에 가지 않았다.",
    "달이 밝아서 마당에서도 글씨를 읽을 수 있었다.",
    "형이 돌아와 바다 건너 도시에서 본 것들을 늦게까지 이야기했다.",
};

static void diary(FILE *f, int n)
{
    fputs("<|im_start|>user\n다음 일기를 읽고 물음에 답하세요.\n\n", f);
    for (int i = 0; i < n; i++)
        fprintf(f, "%d월 %d일, %s. %s %s 오늘까지 모은 조개껍데기는 %d개다.\n\n", 3 + i / 28, 1 + i % 28, weathers[i * 2 % COUNT(weathers)],
                mornings[i * 3 % COUNT(mornings)], evenings[i * 4 % COUNT(evenings)], 12 + 3 * i);
    fprintf(f, "%d월 %d일의 날씨는 어땠고, 그날까지 모은 조개껍데기는 몇 개입니까?" ANSWER, 3 + n / 3 / 28, 1 + n / 3 % 28);
}

/* --- notes in English, Japanese, Chinese and code ------------------------------------------------------------------------- */

static const char *const notes[] = {
    "Station %d reported a leaking valve in the cooling loop. The night shift closed it, wrote the reading down and asked for a spare "
    "part. Ticket %d.\n\n",
    "第%d観測所では、昨夜の風で屋根の一部がはがれた。応急の修理は済んだが、来月までに板を替える必要がある。受付番号は%d。\n\n",
    "第%d号仓库昨天收到一批木箱，其中两只受潮，已经单独存放，等待检查。登记号码是%d。\n\n",
    "```python\ndef check_%d(reading, limit=%d):\n    \"\"\"True while the reading stays below its limit; None is no reading.\"\"\"\n"
    "    return reading is not None and reading < limit\n```\n\n",
    "{\"site\": %d, \"code\": %d, \"status\": \"ok\", \"tags\": [\"weekly\", \"pump\"], \"note\": null}\n\n",
    "The bridge at site %d was closed for two hours so that the old lamps could be replaced; the work order was %d, and nobody complained.\n\n",
    "現場%dの担当者によると、新しい発電機は静かで、燃料も少なくて済むという。整理番号は%d である。\n\n",
    "In the garden behind house %d the children found a tin box with a key in it and the number %d scratched into the lid.\n\n",
    "%d路公交车今天改道，乘客可以在河边的临时车站上车。通知编号为%d。\n\n",
};

static void mixed(FILE *f, int n)
{
    fputs("<|im_start|>user\nHere are notes from many places. Read them, then answer.\n\n", f);
    for (int i = 0; i < n; i++) fprintf(f, notes[i * 2 % COUNT(notes)], 101 + i, code_of(1000 + i));
    fprintf(f, "Which number belongs to %d, and what happened there? Answer in one sentence." ANSWER, 101 + n / 4);
}

/* --- by name --------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*write)(FILE *f, int n);
} longs[] = { { "ko-register", parcels }, { "ko-diary", diary }, { "mixed", mixed } };

char *gate_long(const char *name, int n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    for (int i = 0; f && i < COUNT(longs); i++)
        if (!strcmp(longs[i].name, name)) longs[i].write(f, n);
    if (!f || fclose(f) || !size) {
        free(text);
        return NULL;
    }
    return text;
}
