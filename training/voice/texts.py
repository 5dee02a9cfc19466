"""Sentences for a person to read, and others for the model to be held to and judged by.

All are general, without numbers or names. English and Chinese are here; for other languages the
recordings' own words are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

ENGLISH = (
    "The birch canoe slid on the smooth planks of the old jetty.",
    "A warm breeze carried the smell of bread across the square.",
    "Would you mind closing the window before the rain begins?",
    "She measured the flour twice, then threw in a pinch of salt.",
    "Our neighbour's dog barks whenever the postman rings the bell.",
    "The judge thought the argument was clever, but not convincing.",
    "Bring me the yellow envelope from the top of the cupboard.",
    "They usually take the early train, because it is quiet.",
    "I have never seen such a large fish in so small a pond.",
    "The children laughed as the clown juggled six green apples.",
    "It is easy to measure the depth of a well with a stone.",
    "Please choose a chair near the fire and warm your hands.",
    "The museum shows maps that were drawn before anyone sailed there.",
    "Fresh snow covered the path, so nobody knew where to walk.",
    "He fixed the old radio with nothing but wire and patience.",
    "What a pleasure it is to hear your voice after all these years!",
    "The garden needs water in July, and shade in August.",
    "A good teacher explains the same thing in three different ways.",
    "The ship's bell rang through the fog, slow and hollow.",
    "Both brothers enjoy cooking, though neither will wash the dishes.",
    "Could you tell me which road leads back to the village?",
    "The oil lamp threw strange shadows over the kitchen wall.",
    "We should leave at once if we want to catch the ferry.",
    "Her vision of the future was neither gloomy nor foolish.",
    "The mouse chewed a hole through the edge of the rough cloth.",
    "Every visitor is asked to sign the thick leather book.",
    "The weather changed so quickly that we forgot our coats.",
    "You may keep the change, said the man, and closed the door.",
    "A thousand small lights shone on the dark water of the bay.",
    "Nothing grows well in this soil except onions and thyme.",
    "The boys enjoyed the noisy voyage around the southern point of the island.",
    "There was an unusual pleasure in measuring the treasure by candlelight.",
    "Although the path was smooth, they both breathed heavily at the top.",
    "How about a round of cards after supper, now that the house is quiet?",
    "The zoo keeper poured fresh water for the zebras and the lazy lions.",
    "Those three brothers gathered feathers by the northern shore.",
    "Charles watched the church clock, which had reached a quarter to six.",
    "The young huge engine hummed, hissed, and then suddenly stopped.",
    "She sewed a soft grey scarf for her sister, who was shivering.",
    "Put the good wooden hook where the cook usually looks for it.",
    "Few people knew the new music, yet the whole room began to hum.",
    "The guard was calm, and the dark yard far too large to cross.",
    "Thirty birds turned over the earth and circled the first farm.",
    "Our cat caught a small ball and brought it across the hall.",
    "Wait eight days, they say, and the rain will fade away.",
    "I might try to find a bright light, if the night stays dry.",
    "Don't go home alone over the frozen road when the wind blows.",
    "What a clear idea, and how near we are to the real answer!",
    "Is it fair that the bear has nowhere to sleep but the cold stairs?",
    "I am sure that the tourists were cured by the pure mountain air.",
    "Yes, you may use the yellow umbrella, but bring it back tomorrow.",
    "Well, that was rather more than any of us had expected to see.",
    "First boil the eggs, then peel them, and cut each one into quarters.",
    "No, I would rather walk, thank you; the exercise will do me good.",
    "The singer sang along with a strong young king from long ago.",
    "Jack and Jill judged the jam, the jelly, and the orange juice.",
    "Quick, quiet steps crossed the square, and someone knocked twice.",
    "Please speak up, because the people in the last row cannot hear.",
    "Just beyond the bridge a narrow lane climbs between high walls.",
    "The visitors admired the vivid velvet curtains above the stove.",
    "If only we had known that earlier, we would have stayed at home.",
    "The captain shouted an order, and the sails came rattling down.",
    "Nothing pleased my aunt so much as an afternoon without guests.",
    "It was the third of those thin cloths that she threw on the fire.",
    "Sooner or later the truth comes out, whether you like it or not.",
    "He whistled while he washed the white wheels of the old wagon.",
    "Can anybody explain why the lights are on and the doors open?",
    "The doctor took her pulse, nodded, and wrote a short note.",
    "A gentle breeze bent the tall grass beside the winding river.",
    "We laughed until we cried, and then we started all over again.",
)
CHINESE = (
    "今天天气很好，我们一起去公园散步吧。",
    "窗外下着小雨，屋里飘着热茶的香气。",
    "请把桌子上的那本红色的书递给我。",
    "他昨天晚上睡得很晚，所以今天起不来。",
    "这条路一直往前走，就能看到车站。",
    "孩子们在草地上放风筝，笑声传得很远。",
    "你能不能慢一点说，我还没有听清楚？",
    "奶奶做的饺子，是我吃过最好吃的。",
    "冬天的夜晚，湖面结了一层薄薄的冰。",
    "我们约好下午三点在图书馆门口见面。",
    "他用了整整一年的时间，学会了弹钢琴。",
    "远处的山在云雾里若隐若现，像一幅画。",
    "别着急，先喝口水，再把事情慢慢告诉我。",
    "这家小店虽然不大，但是东西很便宜。",
    "飞机就要起飞了，请大家系好安全带。",
    "老师鼓励我们多读书，多提问题。",
    "春风吹过田野，油菜花开得一片金黄。",
    "请问，您是从哪个城市来的？",
    "他把雨伞忘在出租车上了，真是太粗心。",
    "我们小区门口新开了一家水果店。",
    "奇怪，钥匙明明放在抽屉里，怎么不见了？",
    "只要坚持锻炼，身体就会越来越健康。",
    "姐姐在厨房里切菜，弟弟在客厅里写作业。",
    "哇，这么大的西瓜，我还是第一次见到！",
    "月亮从云层后面慢慢露出了脸。",
    "那位司机很热心，一直把我们送到旅馆。",
    "虽然路途遥远，但是一路上的风景很美。",
    "请您稍等一下，经理马上就出来。",
    "森林里住着一只聪明的小松鼠。",
    "昨天的足球比赛，双方踢成了平局。",
    "你喜欢喝绿茶，还是喜欢喝咖啡？",
    "儿子穿上新鞋子，高兴得跳了起来。",
    "学而时习之，不亦说乎，这句话人人都熟悉。",
    "列车员提醒旅客，不要忘记随身的物品。",
    "他说话的语气很平静，听不出是喜是怒。",
    "窗台上的花该浇水了，叶子都有点发黄。",
    "算了吧，这件事情以后再商量。",
    "群山环绕着一座安静的小村庄。",
)
GENERAL_ENGLISH = (
    "The tall ship waited for the tide outside the harbour wall.",
    "Nobody in the office could remember who had ordered the cake.",
    "If the door is locked, look for the key beneath the flower pot.",
    "Most of the apples had fallen before the storm arrived.",
    "How far is it from here to the nearest station?",
    "The teacher smiled and handed back the papers one by one.",
    "A thin layer of dust covered the shelves in the attic.",
    "My sister prefers tea, while her husband drinks only coffee.",
    "The river bends sharply to the left below the castle.",
    "You should have told me earlier that the shop was closed.",
    "Several birds were singing in the hedge behind the church.",
    "Thank you for the beautiful flowers on the kitchen table!",
    "The engine coughed twice, shook, and finally came to life.",
    "In winter the lake freezes, and the children learn to skate.",
    "Her voice was quiet, yet everyone in the hall could hear it.",
    "The farmer counted his sheep and found that one was missing.",
    "Which of these two pictures do you like better?",
    "He wrote a long letter, read it again, and threw it away.",
    "The soup is far too hot, so let it cool for a while.",
    "Behind the curtain stood a narrow table with three legs.",
    "We walked along the beach until the sun went down.",
    "It would be wise to check the brakes before a long journey.",
    "The young doctor listened carefully and asked few questions.",
    "Please turn off the light when you leave the room.",
)
GENERAL_CHINESE = (
    "河边的柳树已经发芽了，春天真的来了。",
    "请问去最近的地铁站应该怎么走？",
    "她把旧照片一张一张地整理好，放进盒子里。",
    "这本小说我读了两遍，每次都有新的感受。",
    "早上的市场很热闹，到处都是新鲜的蔬菜。",
    "如果明天下雨，我们就在家里看电影。",
    "爷爷坐在院子里，一边喝茶一边讲故事。",
    "他的声音不大，但是大家都听得很清楚。",
    "火车晚点了，站台上的人越来越多。",
    "谢谢你送我的花，我把它放在窗台上了。",
    "这道菜太辣了，能不能给我一杯水？",
    "夜深了，街上只剩下几盏昏黄的路灯。",
)
READ = {"english": ENGLISH, "chinese": CHINESE}
GENERAL = {"english": GENERAL_ENGLISH, "chinese": GENERAL_CHINESE}


def general_texts(language: str, recorded: Sequence[str], count: int) -> list[str]:
    """Sentences that the model is held to. A language without any takes those `recorded`."""
    return _spread(GENERAL.get(_spoken(language, recorded), recorded), count)


def judged_texts(language: str, recorded: Sequence[str], count: int) -> list[str]:
    """Sentences to judge a voice by: neither the recordings' words nor those that it is held by,
    except in languages that there are no others in."""
    taken = {text.casefold() for text in recorded}
    known = READ.get(_spoken(language, recorded), recorded)
    return _spread([text for text in known if text.casefold() not in taken] or recorded, count)


def _spoken(language: str, recorded: Sequence[str]) -> str:
    """The language; "auto" is told by the letters of the recordings' words."""
    if language.lower() != "auto":
        return language.lower()
    wide = sum(any(ord(mark) > 0x2E80 for mark in text) for text in recorded)
    return "chinese" if wide > len(recorded) / 2 else "english"


def _spread(texts: Iterable[str], count: int) -> list[str]:
    """`count` texts, evenly spread over all of them."""
    found = list(texts)
    if len(found) <= count:
        return found
    return [found[number * len(found) // count] for number in range(count)]
