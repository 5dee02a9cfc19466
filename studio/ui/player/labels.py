"""The player's words, English and Chinese. The keys are stable; `{…}` are filled in by the page.

The browser picks the table of its own language, as `gr.I18n` does; an app with a `gr.I18n` of its
own may take these in.
"""

from __future__ import annotations

from typing import Final

WORDS: Final[dict[str, dict[str, str]]] = {
    "en": {
        "player": "Player",
        "ready": "Ready",
        "waiting": "Number {position} in line, about {seconds} s",
        "next": "Next in line",
        "starting": "Starting",
        "speaking": "Speaking",
        "catching_up": "Waiting for more sound",
        "blocked": "Your browser keeps the sound off.",
        "wake": "Turn the sound on",
        "paused": "Paused",
        "finished": "Finished",
        "length": "Stopped: the length limit was reached",
        "runaway": "Stopped: it would not end. Try another seed.",
        "incomplete": "Part of the text may be missing. Try another seed.",
        "cancelled": "Stopped",
        "lost": "The connection to the server was lost.",
        "retry": "Try again",
        "error": "Something went wrong. Try again.",
        "stop": "Stop",
        "pause": "Pause",
        "resume": "Resume",
        "volume": "Volume",
        "first": "Latency",
        "speed": "Speed",
        "lead": "Buffered",
        "milliseconds": "{value} ms",
        "seconds": "{value} s",
        "times": "{value}× real time",
    },
    "zh": {
        "player": "播放器",
        "ready": "就绪",
        "waiting": "排队第 {position} 位，约 {seconds} 秒",
        "next": "下一位",
        "starting": "即将开始",
        "speaking": "正在朗读",
        "catching_up": "等待更多声音",
        "blocked": "浏览器关闭了声音。",
        "wake": "开启声音",
        "paused": "已暂停",
        "finished": "已完成",
        "length": "已停止：达到长度上限",
        "runaway": "已停止：语音没有结束，请换一个种子再试。",
        "incomplete": "部分文本可能没有读出，请换一个种子再试。",
        "cancelled": "已停止",
        "lost": "与服务器的连接已断开。",
        "retry": "重试",
        "error": "出错了，请重试。",
        "stop": "停止",
        "pause": "暂停",
        "resume": "继续",
        "volume": "音量",
        "first": "延迟",
        "speed": "速度",
        "lead": "已缓冲",
        "milliseconds": "{value} 毫秒",
        "seconds": "{value} 秒",
        "times": "{value} 倍实时",
    },
}
