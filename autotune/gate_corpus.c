/* The gate's texts: half of them Korean, then Japanese, Chinese, English and code. Written for this purpose. */
#include "gate.h"

const char *const gate_corpus[] = {
    "서울은 대한민국의 수도이고, 한강이 도시 한가운데를 흐른다. 봄이 오면 강가에 벚꽃이 피고 사람들은",
    "질문: 물은 몇 도에서 끓습니까?\n답: 물은 1기압에서 섭씨",
    "오늘 회의에서 정한 것은 세 가지입니다. 첫째, 다음 주 월요일까지 보고서를 냅니다. 둘째,",
    "김치를 담그려면 먼저 배추를 소금에 절이고, 고춧가루와 마늘과 생강으로 양념을 만든다. 그 다음에",
    "日本の首都は東京です。東京には多くの人が住んでいて、朝の電車は",
    "北京是中国的首都，故宫位于城市的中心。秋天的时候，",
    "The capital of France is Paris. The river that flows through it is called",
    "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n    if n < 2:\n        return n\n    return",
    0,
};
